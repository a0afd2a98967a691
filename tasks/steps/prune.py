"""Remove releases, table versions and files that are no longer needed; never vectors or replies of
an LLM (lake/vectors, lake/ledger), which cost time or money.

A release is needed if a channel names it or would roll back to it, if it is one of the newest or
recent, or if its successor is younger than the grace period, so that a slow reader keeps what it
reads. Everything else is removed by age.

Removal is in the reverse order of publishing: the release's row, its tags, the versions that are
not pinned (by Lance's clean-up), row sets of the lake. So a killed prune leaves every needed
release intact, and the next prune completes it.

What is left besides releases (replaced versions, files of killed runs) is removed by age, so it is
looked for once in a grace period, and whenever a release is removed. Other prunes read the releases
and channels only."""

import logging
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

from pegboard.errors import BoardError, StoreError
from pegboard.store.database import sql_literals, store_errors
from pegboard.store.releases import Channel, Pin, Release, ReleaseStore
from pegboard.store.writing import EMPTY_TAG, open_table, set_tag, table_names
from tasks.lake.files import DamagedFile, Lake
from tasks.lake.leftovers import remove_unused_files
from tasks.lake.opening import check_lake
from tasks.public_lake.writing import prune_public_lake
from tasks.report.storage import remove_reports
from tasks.settings.configuration import KeepSettings
from tasks.steps.maintain import maintain, open_dataset
from tasks.steps.publish import protect

if TYPE_CHECKING:
    from lance import LanceDataset

logger = logging.getLogger(__name__)

JOURNAL = "prune.json"
"""Name of the lake's file with the releases that are being removed."""
LAST_PRUNE = "last-prune.json"
"""Name of the lake's file with the time and the settings of the last complete prune."""
RELEASE_TAG = re.compile(r"([0-9a-f]{12,64})-v(\d+)")
"""The tags by which releases protect what they pin (see `tasks/steps/publish.py`). Other tags
belong to channels and to people, and are kept.
"""
OWN_TABLES = ("releases", "channels")
"""Names of the tables that record releases and channels."""
READING = timedelta(minutes=10)
"""Smallest age of a replaced version of `OWN_TABLES` that is removed. Their versions have no tags,
readers open the newest one, and every run writes to them."""
ANY_AGE = timedelta(days=36_500)
"""An age that no version has, so that clean-up by age removes no version."""


@dataclass(frozen=True, slots=True)
class PruneResult:
    """What a prune removed, or would remove.

    Attributes:
        kept: ids of the releases that are needed.
        removed: ids of the removed releases.
        tables: names of the removed tables, which no release has.
        bytes: bytes of everything that was removed. A dry run does not count versions whose tags
            it would remove.
    """

    kept: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    bytes: int = 0
    dry_run: bool = False


def prune_board(
    uri: str,
    keep: KeepSettings,
    now: datetime | None = None,
    *,
    dry_run: bool = False,
    complete: bool = False,
) -> PruneResult:
    """Remove what the board at `uri` no longer needs; safe while readers search and runs publish.

    Args:
        now: the time from which ages are measured.
        dry_run: only return what would be removed.
        complete: look through tables and lake even if no release is to be removed and a complete
            prune with these settings ended within the grace period.

    Raises:
        BoardNotFound: there is no board.
        NewerFormat: a newer version of Pegboard wrote to the lake.
    """
    now = now or datetime.now(UTC)
    before = now - timedelta(hours=keep.grace_hours)
    store = ReleaseStore(uri)
    lake = Lake(uri)
    check_lake(uri)
    if not dry_run:
        _finish(store, lake)
    releases = store.all()
    channels = store.channels()
    kept = kept_releases(releases, channels, keep, now)
    removed = [release for release in releases if release.id not in kept]
    if not (removed or dry_run or complete) and _is_recent(lake, keep, now):
        return PruneResult(kept=tuple(release.id for release in releases))
    if dry_run:
        remaining = [release for release in releases if release.id in kept]
    else:
        for channel in channels:
            store.tag_channel(channel.name)
        removed = _remove_releases(store, lake, removed)
        remaining = store.all()
    tables, freed = _prune_tables(store, remaining, before, dry_run=dry_run)
    age = max(timedelta(days=keep.days), timedelta(hours=keep.grace_hours))
    freed += remove_unused_files(uri, remaining, before=before, unused=now - age, dry_run=dry_run)
    remaining_ids = {release.id for release in remaining}
    freed += remove_reports(uri, remaining_ids, before=before, dry_run=dry_run)
    if removed and not dry_run:
        prune_public_lake(uri)
    if not dry_run:
        lake.write_json(LAST_PRUNE, {"at": now.isoformat(), "keep": keep.model_dump()})
    return PruneResult(
        kept=tuple(release.id for release in releases if release.id in kept),
        removed=tuple(release.id for release in removed),
        tables=tables,
        bytes=freed,
        dry_run=dry_run,
    )


def _is_recent(lake: Lake, keep: KeepSettings, now: datetime) -> bool:
    """Whether a complete prune with these settings ended within the grace period."""
    try:
        last: Mapping[str, Any] = lake.read_json(LAST_PRUNE) or {}
    except DamagedFile:
        return False
    if last.get("keep") != keep.model_dump():
        return False
    age = now - datetime.fromisoformat(last["at"])
    return timedelta(0) <= age < timedelta(hours=keep.grace_hours)


def kept_releases(
    releases: Sequence[Release], channels: Iterable[Channel], keep: KeepSettings, now: datetime
) -> set[str]:
    """Return the ids of the releases that are needed.

    Args:
        releases: newest first.
    """
    grace = timedelta(hours=keep.grace_hours)
    existing = {release.id for release in releases}
    kept = {release.id for release in releases[: keep.releases]}
    kept |= {
        release.id for release in releases if now - release.created_at < timedelta(days=keep.days)
    }
    kept |= {
        release.id
        for successor, release in pairwise(releases)
        if now - successor.created_at < grace
    }
    for channel in channels:
        history = [
            release
            for release in channel.history
            if release in existing and release != channel.release
        ]
        # The channel's release and the target of a rollback, however few are to be kept.
        kept |= {channel.release, *history[: max(1, keep.releases - 1)]}
    return kept & existing


def _remove_releases(store: ReleaseStore, lake: Lake, unneeded: Sequence[Release]) -> list[Release]:
    """Remove releases, and return those that were removed."""
    if unneeded:
        # Durable before the rows are deleted: if this prune is killed, the next one can restore a
        # release that was promoted meanwhile.
        lake.write_json(JOURNAL, {"going": [_record_of(release) for release in unneeded]})
        _finish(store, lake)
    existing = {release.id for release in store.all()}
    return [release for release in unneeded if release.id not in existing]


def _finish(store: ReleaseStore, lake: Lake) -> None:
    """Remove the rows of the releases in the journal, then their tags. Restore releases that a
    channel names meanwhile.
    """
    try:
        journal: Mapping[str, Any] = lake.read_json(JOURNAL) or {}
    except DamagedFile:
        journal = {}
    releases = [_release_of(record) for record in journal.get("going", [])]
    if not releases:
        return
    current = {channel.release for channel in store.channels()}
    removable = [release for release in releases if release.id not in current]
    if removable:
        with store_errors(store.uri):
            rows = open_table(store.database, "releases", store.uri)
            rows.delete(f"release IN ({sql_literals(release.id for release in removable)})")
    current = {channel.release for channel in store.channels()}
    for release in releases:
        if release.id in current:
            store.add(release)
            protect(store, release)
            logger.warning(
                "Release %s was promoted while it was to be pruned; it stays.", release.id
            )
    recorded = {release.id for release in store.all()}
    for release in releases:
        if release.id not in recorded:
            _untag(store, release)
    lake.delete(JOURNAL)


def _untag(store: ReleaseStore, release: Release) -> None:
    for pin in release.tables.values():
        try:
            tags = open_table(store.database, pin.table, store.uri).tags
        except BoardError:
            continue  # The table is gone with its tags.
        with store_errors(store.uri):
            if (tag := f"{release.id}-v{pin.version}") in tags.list():
                tags.delete(tag)


def _prune_tables(
    store: ReleaseStore, releases: Sequence[Release], before: datetime, *, dry_run: bool
) -> tuple[tuple[str, ...], int]:
    """Drop unneeded tables and remove unneeded versions. Return the names of the dropped tables,
    and the bytes of all that was removed.
    """
    pins: dict[str, dict[str, int]] = {name: {} for name in OWN_TABLES}
    for release in releases:
        for pin in release.tables.values():
            pins.setdefault(pin.table, {})[f"{release.id}-v{pin.version}"] = pin.version
    with store_errors(store.uri):
        names = table_names(store.database)
    dropped: list[str] = []
    freed = 0
    for name in names:
        if name not in pins:
            if (size := _drop(store, name, before, dry_run=dry_run)) is not None:
                dropped.append(name)
                freed += size
            continue
        replaced_before = before
        if name in OWN_TABLES:
            replaced_before = min(before, datetime.now(UTC) - READING)
        with store_errors(store.uri):
            freed += _prune_versions(store, name, pins[name], replaced_before, dry_run=dry_run)
    return tuple(dropped), freed


def _prune_versions(
    store: ReleaseStore, name: str, pins: Mapping[str, int], before: datetime, *, dry_run: bool
) -> int:
    """Remove the versions of a table that are not pinned, and return their bytes.

    Args:
        pins: the expected tags of releases, with their versions. Missing tags are created.
        before: only versions that were replaced before this time are removed.
    """
    dataset = open_dataset(store.uri, name)
    try:
        tags = cast("Mapping[str, Any]", dataset.tags.list())
    except (OSError, RuntimeError, ValueError) as error:
        if EMPTY_TAG not in str(error) or dry_run:
            raise
        table = open_table(store.database, name, store.uri)
        for tag, version in pins.items():
            set_tag(table, tag, version)
        tags = cast("Mapping[str, Any]", dataset.tags.list())
    pinned = set(pins.values())
    missing_tags = sorted(pins.keys() - tags.keys())
    existing = set[int]()
    if missing_tags:
        existing = {version["version"] for version in dataset.versions()}
    for tag in missing_tags:
        if pins[tag] not in existing:
            logger.warning(
                "Release %s is incomplete: table '%s' has no version %s.",
                tag.split("-")[0],
                name,
                pins[tag],
            )
        elif not dry_run:
            dataset.tags.create(tag, pins[tag])
    for tag, tagged in tags.items():
        # A recent tag may belong to a release that is being recorded.
        if tag in pins or not RELEASE_TAG.fullmatch(tag) or tagged["updated_at"] > before:
            pinned.add(tagged["version"])
        elif not dry_run:
            dataset.tags.delete(tag)
    freed = _clean_up(dataset, superseded(dataset, before, pinned), dry_run=dry_run)
    if name in OWN_TABLES and not dry_run:
        _tidy(store, name)
    return freed


def superseded(dataset: "LanceDataset", before: datetime, pinned: Collection[int]) -> list[int]:
    """Return the versions that are not pinned and were replaced before a time, never the newest.

    Lance would choose by the age of a version, but a reader of `channels` may have opened an old
    version that was replaced a second ago.
    """
    versions = sorted(dataset.versions(), key=lambda version: version["version"])
    return [
        version["version"]
        for version, successor in pairwise(versions)
        if version["version"] not in pinned and _utc(successor["timestamp"]) <= before
    ]


def _clean_up(dataset: "LanceDataset", versions: list[int], *, dry_run: bool) -> int:
    """Remove versions with the files that only they have, and unreferenced files older than a week;
    tagged versions are kept. Return the removed bytes.
    """
    options: dict[str, Any] = {"versions": versions} if versions else {"older_than": ANY_AGE}
    options["error_if_tagged_old_versions"] = False
    if dry_run:
        return dataset.explain_cleanup_old_versions(**options).stats.bytes_removed
    return dataset.cleanup_old_versions(**options).bytes_removed


def _utc(timestamp: Any) -> datetime:
    return timestamp.astimezone(UTC)  # pylance returns naive local time.


def _tidy(store: ReleaseStore, name: str) -> None:
    """Compact `releases` or `channels`, to which every published release adds a fragment."""
    try:
        with store_errors(store.uri):
            table = open_table(store.database, name, store.uri)
            maintain(table, store.uri, table.count_rows())
    except StoreError as error:
        logger.info("Table '%s' is not compacted: another run writes to it: %s", name, error)


def _drop(store: ReleaseStore, name: str, before: datetime, *, dry_run: bool) -> int | None:
    """Drop a table that no release has, or what a killed drop left of it, and return its bytes;
    None if a run is writing to it.
    """
    try:
        open_table(store.database, name, store.uri)
    except BoardError:
        size = 0
    else:
        with store_errors(store.uri):
            dataset = open_dataset(store.uri, name)
            tags = cast("Mapping[str, Any]", dataset.tags.list())
            tag_times = [tag["updated_at"] for tag in tags.values()]
            version_times = [_utc(version["timestamp"]) for version in dataset.versions()]
            if max([*version_times, *tag_times]) > before:
                return None
            files: Any = dataset.all_files().read_all()
            size = sum(files.column("size_bytes").to_pylist())
    # Checked again just before the drop: a run may have published the table meanwhile.
    if any(pin.table == name for release in store.all() for pin in release.tables.values()):
        return None
    if not dry_run:
        with store_errors(store.uri):
            cast("Any", store.database).drop_table(name, ignore_missing=True)
    return size


def _record_of(release: Release) -> dict[str, Any]:
    return {**asdict(release), "created_at": release.created_at.isoformat()}


def _release_of(record: Mapping[str, Any]) -> Release:
    tables = {name: Pin(**pin) for name, pin in record["tables"].items()}
    return Release(
        **{**record, "created_at": datetime.fromisoformat(record["created_at"]), "tables": tables}
    )
