"""Unreferenced files of the lake.

What the lake needs is found from what is written down: pointers (`latest*.json`) and the manifests
of releases name sets by their digests, and a set that is a JSON file names its layers. A file is
needed if a digest in its path was named. Removing another costs a little time at most: it is made
again from what is never removed, the vectors and the LLM replies."""

import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from pegboard.errors import StoreError
from pegboard.store.releases import Release
from tasks.lake.files import Lake
from tasks.lake.places import HALF_WRITTEN

LAKE_FOLDERS = (
    "snapshots",
    "documents",
    "records",
    "edges",
    "generated",
    "gates",
)
"""Folders of the lake that can be made again. The ledger and the vectors are not among them."""
DIGEST = re.compile(r"[0-9a-f]{64}")


def remove_unused_files(
    uri: str, releases: Iterable[Release], *, before: datetime, unused: datetime, dry_run: bool
) -> int:
    """Remove unreferenced files from the lake of the board at `uri`; returns their bytes.

    Args:
        before: half-written files that are older are removed; their writers have ended.
        unused: unreferenced sets that are older are removed.
    """
    lake = Lake(uri)
    now = datetime.now(UTC)
    files = {
        path: (size, now - timedelta(seconds=age)) for path, (size, age) in lake.walk().items()
    }
    needed = _needed(lake, files, releases)
    removed: dict[str, int] = {}
    for path, (size, written) in files.items():
        half_written = path.endswith(HALF_WRITTEN) and written <= before
        digests = set(DIGEST.findall(path)) if _is_set(path) else set[str]()
        if half_written or (digests and written <= unused and not needed & digests):
            removed[path] = size
    if not dry_run:
        lake.delete(*removed)
    return sum(removed.values())


def _needed(lake: Lake, files: Iterable[str], releases: Iterable[Release]) -> set[str]:
    """The digests that pointers and releases name, directly or through sets that name others."""
    named: set[str] = set()
    for release in releases:
        named |= set(DIGEST.findall(json.dumps(dict(release.manifest))))
    sets: dict[str, list[str]] = {}
    for path in files:
        if not path.endswith(".json"):
            continue
        if _is_pointer(path):
            named |= _digests_in(lake, path)
        else:
            for digest in DIGEST.findall(path):
                sets.setdefault(digest, []).append(path)
    needed = set[str]()
    while named:
        needed |= named
        paths = [path for digest in named for path in sets.get(digest, ())]
        named = {digest for path in paths for digest in _digests_in(lake, path)} - needed
    return needed


def _digests_in(lake: Lake, path: str) -> set[str]:
    try:
        return set(DIGEST.findall(lake.read_text(path)))
    except StoreError:
        return set()  # A concurrent prune removed the file.


def _is_set(path: str) -> bool:
    return path.split("/")[0] in LAKE_FOLDERS and not _is_pointer(path)


def _is_pointer(path: str) -> bool:
    return path.rpartition("/")[2].startswith("latest")
