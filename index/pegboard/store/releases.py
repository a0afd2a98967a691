"""Releases and channels: publishing, promotion and rollback.

A release is immutable: it pins a version of every table. A channel (`live`, `canary`, ...) names a
release; it is moved by compare-and-set on its generation, so no update is lost. Every operation
takes milliseconds and needs no pipeline, so that a service's operator can promote or roll back with
the library alone."""

import json
import logging
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pegboard.errors import (
    BoardError,
    BoardNotFound,
    ConfigurationError,
    PromotionConflict,
    StoreError,
)
from pegboard.store.checks import release_problem, rows_problem
from pegboard.store.contract import (
    CHECKSUM,
    TABLES_FOLDER,
    row_checksum,
    table_metadata,
    table_schema,
)
from pegboard.store.database import public_uri, sql_literals, store_errors
from pegboard.store.failures import REBUILD
from pegboard.store.reading import BoardTable, ReaderDatabase
from pegboard.store.writing import connect, open_table, set_tag, table_names

if TYPE_CHECKING:
    import pyarrow as pa
    from lancedb.db import DBConnection

HISTORY_KEPT = 50
"""Maximum number of earlier releases in a channel's history."""
CHANNEL_NAME = re.compile(
    r"(?![0-9a-f]{12,64}-v\d{1,20}$)(?!.{0,63}(?:\.\.|\.$|\.lock$))[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
)
"""Matches valid names of channels. A channel's name is also a Lance tag, so it must be valid as one
and differ from the tags that protect releases.
"""
VERSION_HINT = "latest_version_hint.json"
"""The file in which Lance records the newest version of a table."""
KEYS = {"releases": "release", "channels": "channel"}
"""The key column of each table of records."""
DIFFERS = "its values differ from its checksum"
"""The problem of a record that is damaged."""
logger = logging.getLogger("pegboard")


@dataclass(frozen=True, slots=True)
class Pin:
    """One table of a release.

    Attributes:
        table: the table's name in the database.
        version: the pinned version.
        rows: the number of rows.
        digest: over the digests of the rows, which identify what they were made from.
        checksum: over the checksums of the rows, which identify what they contain.
        search: for an embedding table, the Lance indices of this version and their search settings
            (see `tasks/steps/maintain.py`); None if it is searched without indices.
        columns: the checksums of the columns (`column_checksums`), by which readers check what they
            load; None for a table too large to be loaded.
    """

    table: str
    version: int
    rows: int
    digest: str
    checksum: str
    search: Mapping[str, Any] | None = None
    columns: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Release:
    """A published release.

    Attributes:
        tables: the pins of `tools`, `agents`, `edges`, `emb_<index>` and `agents_<index>`.
        manifest: the indexes with their encoders and fingerprints, the default index, the catalogs
            with their snapshots, counts, and the changes against the previous release.
    """

    id: str
    digest: str
    contract: int
    created_at: datetime
    tables: Mapping[str, Pin]
    manifest: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return the release's row as JSON values."""
        record = {**asdict(self), "created_at": self.created_at.isoformat()}
        return {"release": record.pop("id"), **record}


@dataclass(frozen=True, slots=True)
class Channel:
    """A name for a release.

    Attributes:
        generation: the number of times that the channel was moved.
        history: the ids of earlier releases, newest first.
        withdrawn: the ids of releases that were rolled back, which a build does not promote again.
            The table stores them at the end of `history`, each prefixed with `-`.
    """

    name: str
    release: str
    generation: int
    updated_at: datetime
    history: tuple[str, ...]
    withdrawn: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the channel as JSON values."""
        record = {**asdict(self), "updated_at": self.updated_at.isoformat()}
        return {"channel": record.pop("name"), **record}


class ReleaseStore:
    """The releases and channels of a board, and the tables that releases pin.

    Each row of `releases` and `channels` has a checksum, which is verified whenever it is read.

    Example:
        >>> store = ReleaseStore("./board")
        >>> store.rollback("live")
    """

    def __init__(self, uri: str, storage_options: Mapping[str, str] | None = None) -> None:
        if "\0" in uri:
            raise ConfigurationError(f"The board's address {uri!r} has a NUL character.")
        self.uri = uri
        self._options = storage_options
        self._database: DBConnection | None = None
        self._reader: ReaderDatabase | None = None

    @property
    def database(self) -> "DBConnection":
        """The writers' database, opened at first use. Raises BoardNotFound for a missing folder."""
        if self._database is None:
            self._expect_folder()
            self._database = connect(self.uri, self._options)
        return self._database

    def read_table(self, name: str, version: int | None = None) -> BoardTable:
        """Return a table for reading, pinned to a version if one is given.

        Raises BoardNotFound for a missing folder, table or version.
        """
        if self._reader is None:
            self._expect_folder()
            self._reader = ReaderDatabase(self.uri, self._options)
        return self._reader.open_table(name, version)

    def read_rows(
        self,
        pin: Pin,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        *,
        name: str | None = None,
    ) -> "pa.Table":
        """Return the rows of a release's table that pass a DataFusion condition, in no order.

        Args:
            name: the table's name in a release, by whose contract the columns are checked.

        Raises BoardNotFound if the table or its version is gone, StoreError if it is damaged.
        """
        table = self.read_table(pin.table, pin.version)
        with store_errors(self.uri, f"Table '{pin.table}'"):
            rows = table.read(columns, where)
            if name is not None and (problem := rows_problem(rows, name, columns)):
                raise StoreError(f"Table '{pin.table}' cannot be used: {problem}. {REBUILD}.")
            return rows

    def create(self) -> None:
        """Create empty tables `releases` and `channels` if they are missing."""
        if self._database is None:
            self._database = connect(self.uri, self._options)
        with store_errors(self.uri):
            existing = table_names(self._database)
            for name in KEYS:
                if name not in existing:
                    schema = table_schema(name).with_metadata(table_metadata(name))
                    self._database.create_table(name, schema=schema, exist_ok=True)

    def _check_newest(self) -> None:
        """Raise StoreError if the newest version of the table `channels` is missing. Checks boards
        in folders only.
        """
        if "://" in self.uri:
            return
        versions = Path(self.uri).expanduser() / TABLES_FOLDER / "channels.lance" / "_versions"
        try:
            hint = int(json.loads((versions / VERSION_HINT).read_text("utf-8"))["version"])
        except (OSError, ValueError, TypeError, KeyError):
            return  # the hint is optional: it only saves Lance a listing
        inverted = 2**64 - 1 - hint  # Lance names manifests so that the newest sorts first
        names = (f"{inverted}.manifest", f"{hint}.manifest")
        if hint > 0 and not any((versions / name).exists() for name in names):
            raise StoreError(
                f"Version {hint} of table 'channels' of the board at {public_uri(self.uri)} is "
                f"missing, the newest one: a channel would go back to an earlier release. Restore "
                f"{TABLES_FOLDER}/channels.lance/_versions/{inverted}.manifest, or move the "
                f"channel again: `pegboard promote RELEASE`."
            )

    def remove_damaged(self, name: str) -> list[str]:
        """Delete the damaged rows of `releases` or `channels`, and return their keys. The next
        build or `promote` records them again.
        """
        problems = [(row, record_problem(name, row)) for row in self._record_rows(name)]
        damaged = [(row, problem) for row, problem in problems if problem]
        for row, problem in damaged:
            logger.warning("%s", self._damaged(name, str(row[KEYS[name]]), problem))
            with store_errors(self.uri):
                condition = f"{CHECKSUM} = {sql_literals([row[CHECKSUM]])}"
                open_table(self.database, name, self.uri).delete(condition)
        return [str(row[KEYS[name]]) for row, _ in damaged]

    def _merge(self, name: str, row: "pa.Table", where: str | None = None) -> bool:
        """Insert a row unless its key exists; with a condition on `target`, replace the row with
        that key if it fulfils the condition. Return whether the row was written.
        """
        table = open_table(self.database, name, self.uri)
        with store_errors(self.uri):
            merge = table.merge_insert(KEYS[name])
            if where is None:
                return merge.when_not_matched_insert_all().execute(row).num_inserted_rows == 1
            return merge.when_matched_update_all(where=where).execute(row).num_updated_rows == 1

    def _rows(
        self, name: str, where: str | None = None, columns: Sequence[str] | None = None
    ) -> list[dict[str, Any]]:
        """Return rows of `releases` or `channels`. Raises StoreError if one is damaged."""
        rows = self._record_rows(name, where, columns)
        if columns is not None:
            return rows
        for row in rows:
            if problem := record_problem(name, row):
                raise self._damaged(name, str(row[KEYS[name]]), problem)
        return rows

    def _damaged(self, name: str, key: str, problem: str) -> StoreError:
        step = {
            "releases": "Run `pegboard build`: it records the release again. Until then `pegboard "
            "promote RELEASE` moves a channel to another one",
            "channels": "Move the channel again: `pegboard promote RELEASE --channel NAME`",
        }
        return StoreError(
            f"The row '{key:.80}' of table '{name}' of the board at {public_uri(self.uri)} is "
            f"damaged: {problem}. {step[name]}."
        )

    def _record_rows(
        self, name: str, where: str | None = None, columns: Sequence[str] | None = None
    ) -> list[dict[str, Any]]:
        try:
            table = self.read_table(name)
        except BoardNotFound:
            raise self._no_board() from None
        with store_errors(self.uri, f"Table '{name}'"):
            rows = table.read(columns, where)
            if problem := rows_problem(rows, name, columns):
                raise StoreError(
                    f"Table '{name}' of the board at {public_uri(self.uri)} is damaged: {problem}. "
                    f"Restore it from a copy of the board, or build the board anew."
                )
            return rows.to_pylist()

    def _expect_folder(self) -> None:
        if "://" not in self.uri and not os.path.isdir(os.path.join(self.uri, TABLES_FOLDER)):  # noqa: PTH112, PTH118
            raise self._no_board()

    def _no_board(self) -> BoardNotFound:
        return BoardNotFound(
            f"There is no board at {public_uri(self.uri)}. Expected a folder or an address that "
            f"`pegboard build` made. "
            "Check the address, or make one: `pegboard init`, then `pegboard build`."
        )

    def all(self) -> list[Release]:
        """Return all releases, newest first.

        Raises BoardNotFound if there is no board, StoreError if a row is damaged.
        """
        releases = [_release(row) for row in self._rows("releases")]
        return sorted(releases, key=lambda release: (release.created_at, release.id), reverse=True)

    def get(self, release: str) -> Release:
        """Return the release with that id, or the only one whose id begins with it.

        Raises BoardNotFound with the ids of the board's releases.
        """
        rows = self._rows(
            "releases", f"starts_with(release, '{release}')" if _is_id(release) else "false"
        )
        if len(rows) == 1:
            return _release(rows[0])
        ids = [release.id for release in self.all()]
        what = "several releases whose ids begin with" if rows else "no release"
        raise BoardNotFound(
            f"The board at {public_uri(self.uri)} has {what} '{release}'. "
            f"It has: {', '.join(ids[:10]) or 'none'}{' ...' if len(ids) > 10 else ''}. "
            f"`pegboard releases list` shows what its table 'releases' holds."
        )

    def named(self, name: str) -> Release:
        """Return the release of the channel with that name; without such a channel, the release
        whose id begins with the name.
        """
        channel = self.channel(name)
        if channel is None:
            return self.get(name)
        try:
            return self.get(channel.release)
        except BoardNotFound as error:
            raise StoreError(
                f"Channel '{name}' of the board at {public_uri(self.uri)} names the release "
                f"{channel.release}, which its table 'releases' does not hold. `pegboard releases "
                f"list` shows what it holds; `pegboard promote RELEASE` takes one of them."
            ) from error

    def previous(self, channel: str) -> Release:
        """Return a channel's previous release. Raises BoardNotFound if there is none."""
        current = self.channel(channel)
        recorded = self._recorded(current.history) if current else ()
        if not recorded:
            raise self._no_previous(channel, current)
        return self.get(recorded[0])

    def channels(self) -> list[Channel]:
        """Return all channels, ordered by name. Raises StoreError as `channel` does."""
        self._check_newest()
        channels = map(_channel, self._rows("channels"))
        return sorted(channels, key=lambda channel: channel.name)

    def channel(self, name: str = "live") -> Channel | None:
        """Return the channel of that name; None if no release was ever promoted to it.

        Raises StoreError if its row is damaged, or if the newest version of the table is missing,
        which would move the channel back to an earlier release.
        """
        self._check_newest()
        return self._stored_channel(name)

    def existing_channel(self, name: str) -> Channel:
        """Return the channel of that name. Raises BoardNotFound with the board's channels."""
        channel = self.channel(name)
        if channel is None:
            names = ", ".join(existing.name for existing in self.channels()) or "none"
            raise BoardNotFound(
                f"The board at {public_uri(self.uri)} has no channel '{name}'; it has: {names}. "
                "`pegboard promote RELEASE --channel NAME` makes one."
            )
        return channel

    def _stored_channel(self, name: str) -> Channel | None:
        rows = self._rows("channels", f"channel = {sql_literals([name])}")
        if len(rows) > 1:
            raise self._damaged("channels", name, f"there are {len(rows)} rows of that name")
        return _channel(rows[0]) if rows else None

    def add(self, release: Release) -> bool:
        """Record a release whose tables are complete; return False if its id is recorded."""
        return self._merge("releases", _release_row(release))

    def update(self, release: Release) -> bool:
        """Replace the manifest of a release; return False if no release with its id and digest is
        recorded.
        """
        same_digest = f"target.digest = {sql_literals([release.digest])}"
        return self._merge("releases", _release_row(release), same_digest)

    def promote(
        self, release: str, channel: str = "live", *, expected: int | None = None
    ) -> Channel:
        """Move a channel to a release, and return the new state of the channel.

        Args:
            release: an id or the beginning of one.
            expected: the channel's generation when the caller decided to move it; 0 if the channel
                did not exist. The current generation if None.

        Raises PromotionConflict, and changes nothing, if the channel has another generation and
        names another release.
        """
        if not re.fullmatch(CHANNEL_NAME, channel):
            raise ConfigurationError(
                f"A channel cannot be named '{channel}': expected letters, digits, '_', '-' and "
                f"single dots between them, at most 64, and no name of a release's tag."
            )
        identity = self.get(release).id
        self.remove_damaged("channels")
        current = self._stored_channel(channel)
        generation = current.generation if current else 0
        if expected is None:
            expected = generation
        if current is not None and current.release == identity:
            self.tag_channel(channel)
            return current
        history = (current.release, *current.history) if current else ()
        moved = Channel(
            channel,
            identity,
            expected + 1,
            datetime.now(UTC),
            tuple(old for old in history if old != identity)[:HISTORY_KEPT],
            tuple(old for old in (current.withdrawn if current else ()) if old != identity),
        )
        if self._compare_and_set(moved, expected):
            self.tag_channel(channel)
            return moved
        winner = self._stored_channel(channel)
        if winner is not None and winner.release == identity:
            return winner
        raise self._conflict(channel, identity, expected)

    def _conflict(self, channel: str, release: str, expected: int) -> PromotionConflict:
        current = self.channel(channel)
        generation = current.generation if current else 0
        named = f" (release {current.release})" if current else ""
        return PromotionConflict(
            f"Channel '{channel}' was to move to release {release} from generation {expected}, "
            f"but it is at generation {generation}{named}: another publisher moved it. Nothing "
            f"was changed. Run again to build on that release, or `pegboard promote {release}` "
            f"to replace it."
        )

    def rollback(
        self, channel: str = "live", accepts: Callable[[Release], bool] | None = None
    ) -> Channel:
        """Move a channel to its latest earlier release that is still recorded, and return the
        channel.

        The release that it named becomes withdrawn: a build that makes the same release again does
        not promote it.

        Args:
            accepts: whether to go back to a release; releases that it does not accept are skipped.

        Raises BoardNotFound if there is no earlier release, or none is accepted.
        """
        current = self.channel(channel)
        history = self._recorded(current.history) if current else ()
        if current is None or not history:
            raise self._no_previous(channel, current)
        if accepts is not None:
            skipped = list(takewhile(lambda old: not accepts(self.get(old)), history))
            history = history[len(skipped) :]
            if not history:
                raise BoardNotFound(
                    f"Channel '{channel}' of the board at {public_uri(self.uri)} has no earlier "
                    f"release that passed its gate; these did not: {', '.join(skipped[:10])}. "
                    "`pegboard releases list` shows all releases; `pegboard promote` takes any."
                )
        withdrawn = [old for old in current.withdrawn if old not in (current.release, history[0])]
        moved = Channel(
            channel,
            history[0],
            current.generation + 1,
            datetime.now(UTC),
            history[1:],
            (current.release, *withdrawn)[:HISTORY_KEPT],
        )
        if not self._compare_and_set(moved, current.generation):
            raise PromotionConflict(
                f"Channel '{channel}' moved while it was rolled back from generation "
                f"{current.generation}. Nothing was changed. See `pegboard releases list`, and "
                f"run again."
            )
        self.tag_channel(channel)
        return moved

    def tag_channel(self, name: str) -> None:
        """Tag the versions that a channel's release pins with the channel's name, for programs that
        use LanceDB directly.

        The table `channels` is authoritative. Tags have no compare-and-set, so the channel is read
        again after tagging, and a failure is only logged: the next publication, promotion or prune
        sets the tags again.
        """
        try:
            channel = self._stored_channel(name)
            while channel is not None:
                self._set_tags(channel)
                tagged_generation = channel.generation
                channel = self._stored_channel(name)
                if channel is not None and channel.generation == tagged_generation:
                    return
        except BoardError as error:
            logger.warning("Channel '%s' moved, but its tags did not: %s", name, error)

    def _set_tags(self, channel: Channel) -> None:
        pins = {pin.table: pin.version for pin in self.get(channel.release).tables.values()}
        # Version 0: only an earlier release has the table, so its tag is removed.
        for release in self._recorded((*channel.history[:1], *channel.withdrawn[:1])):
            for pin in self.get(release).tables.values():
                pins.setdefault(pin.table, 0)
        for name, version in pins.items():
            table = open_table(self.database, name, self.uri)
            with store_errors(self.uri):
                if version:
                    set_tag(table, channel.name, version)
                elif channel.name in table.tags.list():
                    table.tags.delete(channel.name)

    def _no_previous(self, channel: str, current: Channel | None) -> BoardNotFound:
        pruned = ""
        if current and current.history:
            pruned = f"; those it had before were pruned: {', '.join(current.history[:10])}"
        return BoardNotFound(
            f"Channel '{channel}' of the board at {public_uri(self.uri)} has no earlier release"
            f"{pruned}. `pegboard releases list` shows all releases; `pegboard promote` and "
            f"`pegboard releases diff` take any of them."
        )

    def _recorded(self, releases: Sequence[str]) -> tuple[str, ...]:
        """Return the releases that are still recorded, in the same order."""
        if not releases:
            return ()
        rows = self._rows("releases", f"release IN ({sql_literals(releases)})", ["release"])
        recorded = {row["release"] for row in rows}
        return tuple(release for release in releases if release in recorded)

    def _compare_and_set(self, moved: Channel, expected: int) -> bool:
        row = record_row(
            "channels",
            channel=moved.name,
            release=moved.release,
            generation=moved.generation,
            updated_at=moved.updated_at,
            history=[*moved.history, *(f"-{release}" for release in moved.withdrawn)],
        )
        condition = f"target.generation = {int(expected)}" if expected else None
        was_written = self._merge("channels", row, condition)
        # Lance retries a commit whose response was lost, and then conflicts with itself.
        return was_written or self._stored_channel(moved.name) == moved


def record_row(name: str, **values: Any) -> "pa.Table":
    """Return a row of `releases` or `channels`, with its checksum."""
    import pyarrow as pa

    row = {**values, CHECKSUM: row_checksum(values)}
    return pa.Table.from_pylist([row], schema=table_schema(name))


def record_problem(name: str, row: Mapping[str, Any]) -> str | None:
    """Return the problem of a row of `releases` or `channels`; None if it is valid.

    Raises ContractMismatch for a release of another contract that this library cannot read.
    """
    if row_checksum(row) != row[CHECKSUM]:
        return DIFFERS
    if not _is_id(row["release"]):
        return f"its release is {row['release']!r:.80}, expected hexadecimal digits"
    if name == "channels":
        return None
    return release_problem(row)


def _is_id(text: str) -> bool:
    return re.fullmatch(r"[0-9a-f]{1,64}", text) is not None


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _pin_record(pin: Pin) -> dict[str, Any]:
    record = asdict(pin)
    return {name: value for name, value in record.items() if value is not None}


def _release_row(release: Release) -> "pa.Table":
    return record_row(
        "releases",
        release=release.id,
        digest=release.digest,
        contract=release.contract,
        created_at=release.created_at,
        tables=_json({name: _pin_record(pin) for name, pin in release.tables.items()}),
        manifest=_json(release.manifest),
    )


def _release(row: Mapping[str, Any]) -> Release:
    fields = Pin.__slots__
    tables = {
        name: Pin(**{field: pin[field] for field in fields if field in pin})
        for name, pin in json.loads(row["tables"]).items()
    }
    return Release(
        id=row["release"],
        digest=row["digest"],
        contract=row["contract"],
        created_at=row["created_at"],
        tables=tables,
        manifest=json.loads(row["manifest"]),
    )


def _channel(row: Mapping[str, Any]) -> Channel:
    history = tuple(release for release in row["history"] if not release.startswith("-"))
    withdrawn = tuple(release[1:] for release in row["history"] if release.startswith("-"))
    return Channel(
        row["channel"], row["release"], row["generation"], row["updated_at"], history, withdrawn
    )
