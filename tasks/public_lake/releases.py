"""The public tables of releases: what is new, changed or removed in each recorded release against
the one recorded before.

A release's files have one digest in their names, over the release and the one before. Its row of
`releases` is written last: where it is there, so are the others. Removing a release makes another
one the predecessor of the next, which is then written again under another digest."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, Any

from pegboard.canonical import digest
from pegboard.errors import PegboardError, StoreError
from pegboard.store.contract import CONTRACT, EDGES, column_names, key_column
from pegboard.store.database import sql_literals
from pegboard.store.releases import Pin, Release, ReleaseStore
from tasks.lake.files import DamagedFile, Lake
from tasks.lake.formats import PUBLIC
from tasks.public_lake.schema import EMPTY, FOLDER, PublicTable, public_table

if TYPE_CHECKING:
    import polars as pl

PIECE = 20_000
"""Rows that are in memory, and in a file, at once."""
NAMED_KEYS = 1_000
"""Keys that one condition names; more rows are read by the range of their keys."""
DIGITS = 16
"""Hexadecimal digits of the digest in a file's name."""
OF_RELEASES = ("releases", "tools", "agents", "documents", "edges", "evaluations")
"""The public tables that have a folder for each release."""
COUNTS = ("edges", "enriched", "flagged")
CHANGES = ("against", "new", "changed", "removed", "unchanged")
MEASURE = ("index", "strategy", "measure", "value", "low", "high")


@dataclass(frozen=True, slots=True)
class ReleaseFiles:
    """The files of a release, whose names begin with `digest`; `previous` was recorded before."""

    release: Release
    previous: Release | None
    digest: str

    def path(self, table: str, number: int = 0) -> str:
        """Return the path of a file of a table."""
        return f"{FOLDER}/{table}/{self.release.id}/{self.digest}-{number}.parquet"


def write_releases(lake: Lake, store: ReleaseStore, files_there: Collection[str]) -> None:
    """Write the files of the recorded releases that lack them, the newest first, and remove those
    of other releases.

    Args:
        files_there: the paths of the files of the public lake.

    Raises:
        StoreError: a release cannot be read, or the store refuses. The other releases are written.
    """
    releases = store.all()
    existing = {path for path in files_there if _is_of_release(path)}
    # The oldest release has none before it.
    expected = [
        _files_of(release, previous)
        for release, previous in zip(releases, [*releases[1:], None], strict=True)
    ]
    failures: dict[str, str] = {}
    for files in expected:
        if files.path("releases") in existing:
            continue
        try:
            _write_release(lake, store, files)
        except PegboardError as error:
            failures[files.release.id] = str(error)
    current = {(files.release.id, files.digest) for files in expected}
    obsolete = [
        path
        for path in existing
        if _release_and_digest(path) not in current and _release_and_digest(path)[0] not in failures
    ]
    lake.delete(*sorted(obsolete))
    if failures:
        texts = (f"release {release}: {why}" for release, why in failures.items())
        raise StoreError("\n".join(texts))


def _files_of(release: Release, previous: Release | None) -> ReleaseFiles:
    gate = release.manifest.get("gate") or {}
    earlier = None if previous is None else [previous.id, previous.digest]
    judged = [gate.get("details"), gate.get("at"), release.manifest.get("unapproved")]
    identity = digest(PUBLIC, release.id, release.digest, earlier, judged)
    return ReleaseFiles(release, previous, identity[:DIGITS])


def _is_of_release(path: str) -> bool:
    parts = path.split("/")
    return len(parts) == 4 and parts[1] in OF_RELEASES and parts[2] != EMPTY


def _release_and_digest(path: str) -> tuple[str, str]:
    *_, release, name = path.split("/")
    return release, name.split("-")[0]


def _write_release(lake: Lake, store: ReleaseStore, files: ReleaseFiles) -> None:
    names = {*files.release.tables, *(files.previous.tables if files.previous else ())}
    by_table: dict[str, list[str]] = {}
    for name in sorted(names):
        if (table := _public_name(name)) is not None:
            by_table.setdefault(table, []).append(name)
    for table, several in by_table.items():
        parts = (_changed_rows(store, files, name, public_table(table)) for name in several)
        for number, frame in enumerate(_joined(chain.from_iterable(parts))):
            lake.write(files.path(table, number), frame)
    if evaluations := _evaluation_rows(lake, files.release):
        lake.write(files.path("evaluations"), public_table("evaluations").frame(evaluations))
    lake.write(files.path("releases"), public_table("releases").frame([_release_row(files)]))


def _joined(frames: "Iterable[pl.DataFrame]") -> "Iterator[pl.DataFrame]":
    """Yield the rows of several tables in as few as have about `PIECE` rows."""
    import polars as pl

    waiting: list[pl.DataFrame] = []
    for frame in frames:
        waiting.append(frame)
        if sum(part.height for part in waiting) >= PIECE:
            yield pl.concat(waiting)
            waiting = []
    if waiting:
        yield pl.concat(waiting)


def _public_name(table: str) -> str | None:
    """Return the public table with the rows of a release's table; None if there is none."""
    if table in ("tools", "agents", EDGES):
        return table
    return "documents" if table.startswith("emb_") else None


def _changed_rows(
    store: ReleaseStore, files: ReleaseFiles, name: str, table: PublicTable
) -> "Iterator[pl.DataFrame]":
    """Yield what differs in one table of a release from the release before."""
    import polars as pl

    release = files.release
    previous = files.previous
    pin = release.tables.get(name)
    earlier = previous.tables.get(name) if previous else None
    if pin is not None and earlier is not None and pin.digest == earlier.digest:
        return
    key = key_column(name)
    after = _digests(store, pin, key)
    before = _digests(store, earlier, key)
    common = after.keys() & before.keys()
    keys = {
        "new": after.keys() - before.keys(),
        "changed": {row for row in common if after[row] != before[row]},
        "removed": before.keys() - after.keys(),
    }
    for change, rows in keys.items():
        source, of = (earlier, previous) if change == "removed" else (pin, release)
        if source is None or of is None:
            continue
        for frame in _rows(store, of, source, name, table, sorted(rows)):
            yield _completed(
                frame.with_columns(
                    release=pl.lit(release.id),
                    released_at=pl.lit(release.created_at),
                    change=pl.lit(change),
                    index=pl.lit(name.removeprefix("emb_")),
                ),
                table,
            )


def _digests(store: ReleaseStore, pin: Pin | None, key: str) -> dict[str, str]:
    if pin is None:
        return {}
    rows = store.read_rows(pin, [key, "digest"])
    columns = (rows.column(name).to_pylist() for name in (key, "digest"))
    return dict(zip(*columns, strict=True))


def _rows(
    store: ReleaseStore,
    release: Release,
    pin: Pin,
    name: str,
    table: PublicTable,
    keys: Sequence[str],
) -> "Iterator[pl.DataFrame]":
    """Yield the rows with these keys, which are sorted, a piece at a time."""
    import polars as pl

    key = key_column(name)
    stored = set(column_names(name))
    names = [column.name for column in table.columns if column.name in stored]
    for start in range(0, len(keys), PIECE):
        part = keys[start : start + PIECE]
        where = f"{key} IN ({sql_literals(part)})"
        if len(part) > NAMED_KEYS:
            first, last = (sql_literals([value]) for value in (part[0], part[-1]))
            where = f"{key} >= {first} AND {key} <= {last}"
        # A release of another contract may lack columns.
        rows = store.read_rows(pin, names if release.contract == CONTRACT else None, where)
        frame = pl.from_arrow(rows)
        assert isinstance(frame, pl.DataFrame)
        wanted = pl.DataFrame({key: part}, schema={key: pl.String})
        yield frame.join(wanted, on=key, how="semi").sort(key)


def _completed(frame: "pl.DataFrame", table: PublicTable) -> "pl.DataFrame":
    """Return the columns of a public table; those that the rows lack are null."""
    import polars as pl

    return frame.select(
        (pl.col(name) if name in frame.columns else pl.lit(None)).cast(kind).alias(name)
        for name, kind in table.types().items()
    )


def _release_row(files: ReleaseFiles) -> dict[str, Any]:
    release = files.release
    manifest: Mapping[str, Any] = release.manifest
    counts = manifest.get("counts") or {}
    changes = manifest.get("changes") or {}
    counted = {name: counts.get(name) for name in ("tools", "agents", *COUNTS)}
    return {
        "release": release.id,
        "released_at": release.created_at,
        "digest": release.digest,
        "contract": release.contract,
        "pegboard": manifest.get("pegboard"),
        "default_index": manifest.get("default_index"),
        "strategy": (manifest.get("strategy") or {}).get("name"),
        **counted,
        **{name: changes.get(name) for name in CHANGES},
        "gate_passed": (manifest.get("gate") or {}).get("passed"),
        "unapproved": manifest.get("unapproved", 0),
    }


def _evaluation_rows(lake: Lake, release: Release) -> list[dict[str, Any]]:
    """Return the measures of a release's gate; none without one, or if its details are gone."""
    gate = release.manifest.get("gate") or {}
    try:
        details: Any = lake.read_json(gate["details"]) if gate.get("details") else None
    except DamagedFile:
        details = None
    if details is None:
        return []
    return [
        {
            "release": release.id,
            "released_at": release.created_at,
            "measured_at": datetime.fromisoformat(gate["at"]),
            "golden": details["golden"],
            "queries": details["queries"],
            **{name: row[name] for name in MEASURE},
        }
        for row in details["measures"]
    ]
