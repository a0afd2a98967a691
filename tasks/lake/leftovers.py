"""Files and folders of the tables that belong to nothing: what killed merges, index builds and
drops left behind.

A file counts as forgotten when no version of its table refers to it and it was written before a
given moment. Lance's own clean-up knows such files, too, but only after seven days, or at once and
from under the hands of a writer at work."""

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
"""The tags by which releases protect what they pin (see `tasks/publish.py`). All others are
people's own, and stay.
"""
TABLE_FOLDERS = ("data/", "_deletions/", "_indices/", "_transactions/")


@dataclass(frozen=True, slots=True)
class Leftovers:
    """What was removed, or would be: how many versions or files, and their bytes."""

    count: int = 0
    bytes: int = 0

    def __add__(self, other: "Leftovers") -> "Leftovers":
        return Leftovers(self.count + other.count, self.bytes + other.bytes)


def superseded(dataset: "LanceDataset", before: datetime, pinned: Collection[int]) -> list[int]:
    """The versions that were replaced before that moment and that nothing pins; the newest is never
    among them.
    """
    versions = sorted(dataset.versions(), key=lambda version: version["version"])
    return [
        old["version"]
        for old, new in pairwise(versions)
        if old["version"] not in pinned and _moment(new["timestamp"]) <= before
    ]


def written_at(dataset: "LanceDataset") -> datetime:
    """When the newest version was written."""
    return max(_moment(version["timestamp"]) for version in dataset.versions())


def remove_versions(dataset: "LanceDataset", versions: list[int], *, dry_run: bool) -> Leftovers:
    """Remove versions with the files that no other version has; tagged ones stay whatever is
    asked.
    """
    if not versions:
        return Leftovers()
    if dry_run:
        sizes, users = _sizes(dataset), _users(dataset)
        gone = set(versions)
        freed = (size for path, (size, _) in sizes.items() if path in users and users[path] <= gone)
        return Leftovers(len(versions), sum(freed))
    stats = dataset.cleanup_old_versions(versions=versions, error_if_tagged_old_versions=False)
    return Leftovers(stats.old_versions, stats.bytes_removed)


def remove_orphans(uri: str, table: str, before: datetime, *, dry_run: bool) -> Leftovers:
    """Remove the files that were written before a moment and to which no version of the table
    refers.
    """
    dataset = open_dataset(uri, table)
    # In this order: what a writer commits in between is then among what is referred to.
    sizes = _sizes(dataset)
    dataset = open_dataset(uri, table)
    users = _users(dataset)
    indices: set[str] | None = None
    orphans: dict[str, int] = {}
    for path, (size, written) in sizes.items():
        if path in users or written > before or not path.startswith(TABLE_FOLDERS):
            continue
        if path.startswith("_indices/"):
            # An index is known by its folder: not every kind lists its files.
            indices = _index_folders(dataset, users) if indices is None else indices
            if path.split("/")[1] in indices:
                continue
        orphans[path] = size
    if orphans and not dry_run:
        from lance.file import LanceFileSession

        session = LanceFileSession(dataset.uri, storage_options=lance_options(uri))
        for path in orphans:
            try:
                session.delete_file(path)
            except OSError as error:
                if "not found" not in str(error).lower():  # or else another prune was faster
                    raise
    return Leftovers(len(orphans), sum(orphans.values()))


def _sizes(dataset: "LanceDataset") -> dict[str, tuple[int, datetime]]:
    """Every file of a table: its bytes, and when it was written."""
    files: Any = _listing(dataset)
    columns = [files.column(name).to_pylist() for name in ("path", "size_bytes", "last_modified")]
    return {path: (size, written) for path, size, written in zip(*columns, strict=True)}


def _listing(dataset: "LanceDataset", attempts: int = 5) -> Any:
    """All files. A writer's passing files can go from under the hands of whoever lists them; then
    once more.
    """
    for _ in range(attempts - 1):
        try:
            return dataset.all_files().read_all()
        except OSError:
            continue
    return dataset.all_files().read_all()


def _users(dataset: "LanceDataset") -> dict[str, set[int]]:
    """The versions that refer to a file, by its path."""
    files: Any = dataset.tracked_files().read_all()
    users: dict[str, set[int]] = {}
    for path, version in zip(
        files.column("path").to_pylist(), files.column("version").to_pylist(), strict=True
    ):
        users.setdefault(path, set()).add(version)
    return users


def _index_folders(dataset: "LanceDataset", users: Collection[str]) -> set[str]:
    folders = {path.split("/")[1] for path in users if path.startswith("_indices/")}
    for version in dataset.versions():
        for index in dataset.checkout_version(version["version"]).describe_indices():
            folders |= {str(segment.uuid) for segment in index.segments}
    return folders


def _moment(stamp: Any) -> datetime:
    return stamp.astimezone(UTC)  # pylance gives local time without saying so


LAKE_FOLDERS = (
    "snapshots",
    "documents",
    "records",
    "edges",
    "generated",
    "enriched",
    "filtered",
    "gates",
)
"""What can be made again. The ledger and the vectors are in no list of what may go."""
DIGEST = re.compile(r"[0-9a-f]{64}")


def remove_unused_files(
    uri: str, releases: Iterable[Release], *, before: datetime, unused: datetime, dry_run: bool
) -> Leftovers:
    """Remove what is not needed of the lake of the board at `uri`.

    Args:
        before: half-written files from before then go: whoever wrote them has ended.
        unused: sets from before then go, if nothing leads to them.
    """
    lake, now = Lake(uri), datetime.now(UTC)
    with store_errors(uri):
        place = place_at(lake.uri)
        files = {
            path: (size, now - timedelta(seconds=age))
            for path, (size, age) in place.walk("").items()
        }
    sets = {path for path in files if path.split("/")[0] in LAKE_FOLDERS and not _is_pointer(path)}
    needed = _needed(lake, files, releases)
    gone = {
        path: size
        for path, (size, written) in files.items()
        if (path.endswith(HALF_WRITTEN) and written <= before)
        or (
            path in sets
            and written <= unused
            and DIGEST.search(path)
            and not needed & set(DIGEST.findall(path))
        )
    }
    if not dry_run:
        for path in gone:
            lake.delete(path)
    return Leftovers(len(gone), sum(gone.values()))


def _needed(lake: Lake, files: Iterable[str], releases: Iterable[Release]) -> set[str]:
    """The digests to which pointers and releases lead, directly or through sets that name
    others.
    """
    named = {
        one for release in releases for one in DIGEST.findall(json.dumps(dict(release.manifest)))
    }
    sets: dict[str, list[str]] = {}
    for path in files:
        if not path.endswith(".json"):
            continue
        if _is_pointer(path):
            named |= _digests_in(lake, path)
        else:
            for one in DIGEST.findall(path):
                sets.setdefault(one, []).append(path)
    needed, ahead = set[str](), named
    while ahead:
        needed |= ahead
        ahead = {
            one for name in ahead for path in sets.get(name, ()) for one in _digests_in(lake, path)
        } - needed
    return needed


def _digests_in(lake: Lake, path: str) -> set[str]:
    try:
        return set(DIGEST.findall(lake.read_text(path)))
    except StoreError:
        return set()  # Another prune was faster.


def _is_pointer(path: str) -> bool:
    return path.rpartition("/")[2].startswith("latest")
