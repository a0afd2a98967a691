"""Step 7: what nobody needs any more is removed; what was computed or paid for (lake/vectors,
lake/ledger) never is.

A release is wanted if a channel names it or would go back to it, if it is among the newest, or
young. One that is no longer wanted
is marked first, in lake/prune.json, and removed by a later prune when the grace period is over and
it still is not: a reader that looks seldom keeps what it reads. Everything else goes by its age.

The order of removal is that of publishing, backwards: the release's row, its tags, the versions
that nothing pins, files to which no version refers, sets of the lake. So a prune that is killed
leaves every wanted release whole, and the next one finishes."""

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from pegboard.errors import BoardError, StoreError
from pegboard.store.database import open_table, sql_literals, store_errors, table_names
from pegboard.store.releases import Channel, Pin, Release, ReleaseStore
from tasks.lake.files import Lake
from tasks.lake.leftovers import (
    RELEASE_TAG,
    Leftovers,
    remove_orphans,
    remove_unused_files,
    remove_versions,
    superseded,
    written_at,
)
from tasks.maintain import maintain, open_dataset
from tasks.publish import protect
from tasks.report.storage import remove_reports
from tasks.settings.configuration import KeepSettings

logger = logging.getLogger(__name__)

MARKS = "prune.json"
"""The file of the lake that says since when a release or a table is not wanted, and which releases
are being removed.
"""
OWN_TABLES = ("releases", "channels")
READING = timedelta(minutes=10)
"""Readers take the newest version of these two, without a tag, and everyone writes to them: what
was just replaced or is just being written stays, however short the grace period is."""
NOTHING = Leftovers()


@dataclass(frozen=True, slots=True)
class PruneResult:
    """What a prune did, or would do.

    Attributes:
        kept: the releases that are wanted.
        marked: those that are not, and that a later prune removes unless they are wanted again.
        removed: those that are gone.
        tables: the tables that are gone because no release has them.
        versions, files, lake, reports: what went of tables, of the lake and of reports, with bytes.
    """

    kept: tuple[str, ...] = ()
    marked: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    versions: Leftovers = NOTHING
    files: Leftovers = NOTHING
    lake: Leftovers = NOTHING
    reports: Leftovers = NOTHING
    dry_run: bool = False

    @property
    def bytes(self) -> int:
        """All bytes together."""
        return self.versions.bytes + self.files.bytes + self.lake.bytes + self.reports.bytes

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON values."""
        return {**asdict(self), "bytes": self.bytes}


def prune_board(
    uri: str, keep: KeepSettings, now: datetime | None = None, *, dry_run: bool = False
) -> PruneResult:
    """Remove what is not wanted of the board at `uri`. Safe while readers search and while runs
    publish.

    Args:
        now: the moment by which ages are measured.
        dry_run: only say what would go.

    Raises BoardNotFound if there is no board.
    """
    now = now or datetime.now(UTC)
    before = now - timedelta(hours=keep.grace_hours)
    store = ReleaseStore(uri)
    store.all()
    marks = _Marks(Lake(uri), dry_run=dry_run)
    if not dry_run:
        _finish(store, marks)
    releases, channels = store.all(), store.channels()
    kept = kept_releases(releases, channels, keep, now)
    unwanted = [one for one in releases if one.id not in kept]
    due = [one for one in unwanted if marks.due("releases", one.id, before)]
    gone = due if dry_run else _remove_releases(store, marks, due)
    marks.mark("releases", [one.id for one in unwanted if one not in gone], now)
    staying = [one for one in releases if one not in gone] if dry_run else store.all()
    tables, versions, files = _prune_tables(store, marks, staying, now, before, dry_run=dry_run)
    marks.save()
    age = max(timedelta(days=keep.days), timedelta(hours=keep.grace_hours))
    return PruneResult(
        kept=tuple(one.id for one in releases if one.id in kept),
        marked=tuple(one.id for one in unwanted if one not in gone),
        removed=tuple(one.id for one in gone),
        tables=tables,
        versions=versions,
        files=files,
        lake=remove_unused_files(uri, staying, before=before, unused=now - age, dry_run=dry_run),
        reports=remove_reports(uri, {one.id for one in staying}, before=before, dry_run=dry_run),
        dry_run=dry_run,
    )


def kept_releases(
    releases: Sequence[Release], channels: Iterable[Channel], keep: KeepSettings, now: datetime
) -> set[str]:
    """The ids of the releases that are wanted.

    Args:
        releases: newest first.
    """
    there = {one.id for one in releases}
    kept = {one.id for one in releases[: keep.releases]}
    kept |= {one.id for one in releases if now - one.created_at < timedelta(days=keep.days)}
    for channel in channels:
        history = [one for one in channel.history if one in there and one != channel.release]
        # What the channel names and what a rollback takes, however few are to be kept.
        kept |= {channel.release, *history[: max(1, keep.releases - 1)]}
    return kept & there


class _Marks:
    """Since when releases and tables are not wanted, and the releases whose removal has begun."""

    def __init__(self, lake: Lake, *, dry_run: bool) -> None:
        self._lake, self._dry_run = lake, dry_run
        stored: Mapping[str, Any] = lake.read_json(MARKS) or {}
        self._since: dict[str, dict[str, str]] = {
            kind: dict(stored.get(kind, {})) for kind in ("releases", "tables")
        }
        self.going = [_release_of(record) for record in stored.get("going", [])]

    def due(self, kind: str, name: str, before: datetime) -> bool:
        """Whether an earlier prune marked it, before that moment."""
        since = self._since[kind].get(name)
        return since is not None and datetime.fromisoformat(since) <= before

    def mark(self, kind: str, names: Collection[str], now: datetime) -> None:
        """Mark what is not wanted now; what is wanted again loses its mark."""
        since = self._since[kind]
        self._since[kind] = {name: since.get(name, now.isoformat()) for name in names}

    def save(self) -> None:
        """Write the marks, unless this is a dry run."""
        if not self._dry_run:
            self._lake.write_json(
                MARKS, {**self._since, "going": [_record_of(one) for one in self.going]}
            )


def _remove_releases(store: ReleaseStore, marks: _Marks, due: Sequence[Release]) -> list[Release]:
    named = {channel.release for channel in store.channels()}
    marks.going = [one for one in due if one.id not in named]
    # On the disk before the rows go: killed now, the next prune has what it needs to put back one
    # that was promoted meanwhile.
    marks.save()
    begun = list(marks.going)
    _finish(store, marks)
    there = {one.id for one in store.all()}
    return [one for one in begun if one.id not in there]


def _finish(store: ReleaseStore, marks: _Marks) -> None:
    """Remove the rows of the releases that are going, and then their tags; but put back what a
    channel names after all.
    """
    if not marks.going:
        return
    named = {channel.release for channel in store.channels()}
    doomed = [one for one in marks.going if one.id not in named]
    if doomed:
        with store_errors(store.uri):
            rows = open_table(store.database, "releases", store.uri)
            rows.delete(f"release IN ({sql_literals(one.id for one in doomed)})")
    named = {channel.release for channel in store.channels()}
    for one in marks.going:
        if one.id in named:
            store.add(one)
            protect(store, one)
            logger.warning("Release %s was promoted while it was to be pruned; it stays.", one.id)
    recorded = {one.id for one in store.all()}
    for one in marks.going:
        if one.id not in recorded:
            _untag(store, one)
    marks.going = []
    marks.save()


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
    store: ReleaseStore,
    marks: _Marks,
    releases: Sequence[Release],
    now: datetime,
    before: datetime,
    *,
    dry_run: bool,
) -> tuple[tuple[str, ...], Leftovers, Leftovers]:
    """The tables that were dropped, and the versions and files that were removed from the
    others.
    """
    pins: dict[str, dict[str, int]] = {name: {} for name in OWN_TABLES}
    for release in releases:
        for pin in release.tables.values():
            pins.setdefault(pin.table, {})[f"{release.id}-v{pin.version}"] = pin.version
    with store_errors(store.uri):
        names = table_names(store.database)
    dropped: list[str] = []
    versions, files = Leftovers(), Leftovers()
    for name in names:
        if name not in pins:
            if (
                marks.due("tables", name, before)
                and (freed := _drop(store, name, before, dry_run=dry_run)) is not None
            ):
                dropped.append(name)
                files += freed
            continue
        replaced = min(before, datetime.now(UTC) - READING) if name in OWN_TABLES else before
        with store_errors(store.uri):
            versions += _prune_versions(store, name, pins[name], replaced, dry_run=dry_run)
            files += remove_orphans(store.uri, name, replaced, dry_run=dry_run)
    marks.mark("tables", [name for name in names if name not in pins and name not in dropped], now)
    return tuple(dropped), versions, files


def _prune_versions(
    store: ReleaseStore, name: str, pins: Mapping[str, int], before: datetime, *, dry_run: bool
) -> Leftovers:
    """Remove the versions of a table that are not pinned: `pins` are the tags that there should be,
    with their versions.
    """
    dataset = open_dataset(store.uri, name)
    tags = cast("Mapping[str, Any]", dataset.tags.list())
    staying = set(pins.values())
    there = (
        {version["version"] for version in dataset.versions()}
        if pins.keys() - tags.keys()
        else set[int]()
    )
    for tag in sorted(pins.keys() - tags.keys()):
        if pins[tag] not in there:
            logger.warning(
                "Release %s is not whole: table '%s' has no version %s.",
                tag.split("-")[0],
                name,
                pins[tag],
            )
        elif not dry_run:
            dataset.tags.create(tag, pins[tag])
    for tag, told in tags.items():
        # A young one may be of a release that is recorded only now.
        if tag in pins or not RELEASE_TAG.fullmatch(tag) or told["updated_at"] > before:
            staying.add(told["version"])
        elif not dry_run:
            dataset.tags.delete(tag)
    freed = remove_versions(dataset, superseded(dataset, before, staying), dry_run=dry_run)
    if name in OWN_TABLES and not dry_run:
        _tidy(store, name)
    return freed


def _tidy(store: ReleaseStore, name: str) -> None:
    """Join the fragments of `releases` or `channels`, of which every publishing adds one."""
    try:
        with store_errors(store.uri):
            table = open_table(store.database, name, store.uri)
            maintain(table, store.uri, table.count_rows())
    except StoreError as error:
        logger.info("Table '%s' stays as it is, since someone else writes to it: %s", name, error)


def _drop(store: ReleaseStore, name: str, before: datetime, *, dry_run: bool) -> Leftovers | None:
    """Drop a table that no release has; None if a run is at work on it. What a killed drop left is
    no table, but goes too.
    """
    try:
        open_table(store.database, name, store.uri)
    except BoardError:
        freed = Leftovers()
    else:
        with store_errors(store.uri):
            dataset = open_dataset(store.uri, name)
            tags = cast("Mapping[str, Any]", dataset.tags.list())
            tagged = [told["updated_at"] for told in tags.values()]
            if max([written_at(dataset), *tagged]) > before:
                return None
            files: Any = dataset.all_files().read_all()
            freed = Leftovers(files.num_rows, sum(files.column("size_bytes").to_pylist()))
    # Asked again at the last moment: a run may have published it meanwhile.
    if any(pin.table == name for release in store.all() for pin in release.tables.values()):
        return None
    if not dry_run:
        with store_errors(store.uri):
            cast("Any", store.database).drop_table(name, ignore_missing=True)
    return freed


def _record_of(release: Release) -> dict[str, Any]:
    return {**asdict(release), "created_at": release.created_at.isoformat()}


def _release_of(record: Mapping[str, Any]) -> Release:
    tables = {name: Pin(**pin) for name, pin in record["tables"].items()}
    return Release(
        **{**record, "created_at": datetime.fromisoformat(record["created_at"]), "tables": tables}
    )
