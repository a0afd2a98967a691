"""What the watch saw of each input, and what the last builds were made from.

A catalog is due while what was seen last of an input differs from what its last successful build
was made from. So a build that failed is repeated, and a watch that starts again continues.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from tasks.lake.files import Lake

PATH = "watch/looks.json"
"""The file of the lake with the looks that the last builds were made from."""


@dataclass(frozen=True, slots=True)
class Look:
    """An input at one moment.

    Attributes:
        digest: of its content; looks are equal if their digests are.
        etag: the header ETag of a document.
        modified: its header Last-Modified.
        since: when an entry of a registry was updated last.
    """

    digest: str
    etag: str = ""
    modified: str = ""
    since: str = ""


def read_looks(uri: str) -> dict[str, Look]:
    """Return the looks by input that the last builds of a board were made from."""
    stored: Any = Lake(uri).read_json(PATH) or {}
    names = {field.name for field in fields(Look)}
    return {
        key: Look(**{name: value for name, value in look.items() if name in names})
        for key, look in stored.get("looks", {}).items()
    }


def write_looks(uri: str, looks: Mapping[str, Look]) -> None:
    """Store the looks that the last builds of a board were made from."""
    Lake(uri).write_json(PATH, {"looks": {key: asdict(looks[key]) for key in sorted(looks)}})
