"""Source kind `make-targets`: the documented targets of a Makefile, one tool each.

    [catalogs.operations]
    type = "make-targets"
    path = "operations.mk"

A target is documented by a comment behind it: `restore-db: stop ## Restore the latest backup`.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from catalogs.shared.listing import ListingBuilder, SourceKind, SourceOptions
from pegboard.errors import SourceError

TARGET = re.compile(r"^(?P<name>[A-Za-z0-9][\w.-]*):[^=#]*##\s*(?P<description>.+)$")


class MakeTargetsOptions(SourceOptions):
    """The options of the catalog's table in pegboard.toml. `type` and `tags` are inherited."""

    path: str


def read(listing: ListingBuilder, options: MakeTargetsOptions) -> None:
    """Add the documented targets to the listing.

    Raises:
        SourceError: the file cannot be read. The catalog then keeps its last good tools.
    """
    path = listing.base / options.path
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"Cannot read {path}: {error}. Expected a Makefile in UTF-8.") from error
    agent = listing.agent(listing.catalog, kind="library", source=options.path)
    for number, line in enumerate(lines, start=1):
        if match := TARGET.match(line):
            # The builder validates: a second target of one name becomes a rejected row.
            listing.tool(
                agent,
                match["name"],
                where=f"{path.name} line {number}",
                raw=line,
                description=match["description"],
            )


def inputs(base: Path, options: MakeTargetsOptions) -> Sequence[Path]:
    """Return the files on which the listing depends; while they are unchanged, it is not read
    again.
    """
    return [base / options.path]


source = SourceKind(MakeTargetsOptions, read, inputs)
