"""What nothing needs any more: files of tables that no version refers to, and files of the lake
that no pointer and no kept release leads to.

Killed merges, index builds and drops leave files in tables. Such a file may go when no version of
its table refers to it and it was written before a given moment. Lance's own clean-up removes them,
too, but only after seven days, or at once and while a writer is at work.

What the lake needs is found from what is written down: pointers (`latest*.json`) and the manifests
of releases name sets by their digests, and a set that is a JSON file names its layers. A file is
needed if a digest in its path was named. Removing another costs a little time at most: it is made
again from what is never removed, the vectors and the LLM replies."""

import json
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pegboard.errors import StoreError
from pegboard.store.database import store_errors
from pegboard.store.releases import Release
from tasks.lake.files import Lake
from tasks.lake.places import HALF_WRITTEN, place_at
from tasks.maintain import lance_options, open_dataset

if TYPE_CHECKING:
    from lance import LanceDataset

RELEASE_TAG = re.compile(r"([0-9a-f]{12,64})-v(\d+)")
"""The tags by which releases protect what they pin (see `tasks/publish.py`). Others are people's
own, and stay.
"""
TABLE_FOLDERS = ("data/", "_deletions/", "_indices/", "_transactions/")
LAKE_FOLDERS = (
    "snapshots",
    "documents",
    "shards",
    "records",
    "edges",
    "generated",
    "enriched",
    "filtered",
    "gates",
    "maps",
    "collisions",
)
"""Folders of the lake that can be made again. The ledger and the vectors are not among them."""
DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Leftovers:
    """How many versions or files were removed, or would be, and their bytes."""

    count: int = 0
    bytes: int = 0

    def __add__(self, other: "Leftovers") -> "Leftovers":
        return Leftovers(self.count + other.count, self.bytes + other.bytes)


def superseded(dataset: "LanceDataset", before: datetime, pinned: Collection[int]) -> list[int]:
    """Return the versions that were replaced before a moment and that nothing pins.

    The newest version is never among them.
    """
    versions = sorted(dataset.versions(), key=lambda version: version["version"])
    return [
        old["version"]
        for old, new in pairwise(versions)
        if old["version"] not in pinned and _utc(new["timestamp"]) <= before
    ]


def written_at(dataset: "LanceDataset") -> datetime:
    """Return when the newest version was written."""
    return max(_utc(version["timestamp"]) for version in dataset.versions())


def remove_versions(dataset: "LanceDataset", versions: list[int], *, dry_run: bool) -> Leftovers:
    """Remove versions with the files that no other version has; tagged ones stay."""
    if not versions:
        return Leftovers()
    if dry_run:
        sizes, users = _files(dataset), _users(dataset)
        gone = set(versions)
        freed = (size for path, (size, _) in sizes.items() if path in users and users[path] <= gone)
        return Leftovers(len(versions), sum(freed))
    stats = dataset.cleanup_old_versions(versions=versions, error_if_tagged_old_versions=False)
    return Leftovers(stats.old_versions, stats.bytes_removed)


def remove_orphans(uri: str, table: str, before: datetime, *, dry_run: bool) -> Leftovers:
    """Remove the files of a table that no version refers to, written before a moment."""
    # In this order: what a writer commits in between is then among what is referred to.
    files = _files(open_dataset(uri, table))
    dataset = open_dataset(uri, table)
    users = _users(dataset)
    indices: set[str] | None = None
    orphans: dict[str, int] = {}
    for path, (size, written) in files.items():
        if path in users or written > before or not path.startswith(TABLE_FOLDERS):
            continue
        if path.startswith("_indices/"):
            # An index is known by its folder: not every kind lists its files.
            indices = _index_folders(dataset, users) if indices is None else indices
            if path.split("/")[1] in indices:
                continue
        orphans[path] = size
    if orphans and not dry_run:
        _delete(uri, dataset, orphans)
    return Leftovers(len(orphans), sum(orphans.values()))


def remove_unused_files(
    uri: str, releases: Iterable[Release], *, before: datetime, unused: datetime, dry_run: bool
) -> Leftovers:
    """Remove what nothing needs from the lake of the board at `uri`.

    Args:
        before: half-written files from before then go: their writers have ended.
        unused: sets from before then go, if nothing leads to them.
    """
    lake, now = Lake(uri), datetime.now(UTC)
    with store_errors(uri):
        listing = place_at(lake.uri).walk("")
    files = {path: (size, now - timedelta(seconds=age)) for path, (size, age) in listing.items()}
    needed = _needed(lake, files, releases)
    removed: dict[str, int] = {}
    for path, (size, written) in files.items():
        half_written = path.endswith(HALF_WRITTEN) and written <= before
        digests = set(DIGEST.findall(path)) if _is_set(path) else set[str]()
        if half_written or (digests and written <= unused and not needed & digests):
            removed[path] = size
    if not dry_run:
        for path in removed:
            lake.delete(path)
    return Leftovers(len(removed), sum(removed.values()))


def _delete(uri: str, dataset: "LanceDataset", paths: Iterable[str]) -> None:
    from lance.file import LanceFileSession

    session = LanceFileSession(dataset.uri, storage_options=lance_options(uri))
    for path in paths:
        try:
            session.delete_file(path)
        except OSError as error:
            if "not found" not in str(error).lower():  # or else another prune was faster
                raise


def _files(dataset: "LanceDataset") -> dict[str, tuple[int, datetime]]:
    """Every file of a table: its bytes, and when it was written."""
    files: Any = _list_files(dataset)
    columns = [files.column(name).to_pylist() for name in ("path", "size_bytes", "last_modified")]
    return {path: (size, written) for path, size, written in zip(*columns, strict=True)}


def _list_files(dataset: "LanceDataset", attempts: int = 5) -> Any:
    """All files. A writer's temporary files can vanish during the listing; then it is repeated."""
    for _ in range(attempts - 1):
        try:
            return dataset.all_files().read_all()
        except OSError:
            continue
    return dataset.all_files().read_all()


def _users(dataset: "LanceDataset") -> dict[str, set[int]]:
    """The versions that refer to a file, by its path."""
    files: Any = dataset.tracked_files().read_all()
    columns = [files.column(name).to_pylist() for name in ("path", "version")]
    users: dict[str, set[int]] = {}
    for path, version in zip(*columns, strict=True):
        users.setdefault(path, set()).add(version)
    return users


def _index_folders(dataset: "LanceDataset", users: Collection[str]) -> set[str]:
    folders = {path.split("/")[1] for path in users if path.startswith("_indices/")}
    for version in dataset.versions():
        for index in dataset.checkout_version(version["version"]).describe_indices():
            folders |= {str(segment.uuid) for segment in index.segments}
    return folders


def _utc(stamp: Any) -> datetime:
    return stamp.astimezone(UTC)  # pylance returns naive local time


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
        return set()  # Another prune was faster.


def _is_set(path: str) -> bool:
    return path.split("/")[0] in LAKE_FOLDERS and not _is_pointer(path)


def _is_pointer(path: str) -> bool:
    return path.rpartition("/")[2].startswith("latest")
