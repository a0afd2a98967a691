"""Row sets: tables of the lake in layers, so that a run writes the rows that changed and not the
whole table.

    <path>.json                        {"key", "rows", "layers": [{"path", "rows", "gone"}, ...]},
    the oldest layer first
    <folder>/layers/<digest>.parquet   rows that are new or changed; and tombstones, a key with
    `gone`, for those that went

Of each key the newest row counts, and a tombstone hides the older ones. A set is made from an
earlier one by one more layer, and the layers that both have are stored once. Layers are sorted by
key and named by the set that they were made for and the layers below. The set's own file is written
last, so a killed run leaves layers that nobody reads, and never half a set."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pegboard.canonical import digest
from pegboard.errors import StoreError
from tasks.lake.files import Lake

if TYPE_CHECKING:
    import polars as pl

GONE = "gone"
"""The column that marks a tombstone; only layers with tombstones have it."""
MOST_LAYERS = 16
"""Every layer is a file that each reader opens. When there are more, those above the first become
one.
"""
MOST_STORED = 1.3
"""Stored rows for each row that counts. When there are more, the set is written as one layer again.
"""


@dataclass(frozen=True, slots=True)
class Layer:
    """A file of the lake with so many rows, of which `gone` are tombstones."""

    path: str
    rows: int
    gone: int = 0


@dataclass(frozen=True, slots=True)
class RowSet:
    """A table of the lake: its key column, how many rows count, and its layers, the oldest
    first.
    """

    path: str
    key: str
    rows: int
    layers: tuple[Layer, ...]


def find_rows(lake: Lake, path: str) -> RowSet | None:
    """The set of that name if it is there with all its layers, else None."""
    found = _opened(lake, path)
    return found if found and all(lake.exists(layer.path) for layer in found.layers) else None


def latest_rows(lake: Lake, pointer: str) -> RowSet | None:
    """The set that a pointer (a path without its ending) names, or None if either is missing or
    damaged.
    """
    path = _pointed(lake, pointer)
    return _opened(lake, path) if path else None


def point_to(lake: Lake, pointer: str, path: str) -> None:
    """Make a pointer (a path without its ending) name a set, for the run after this one and so that
    no prune takes it.
    """
    if _pointed(lake, pointer) != path:
        lake.write_json(f"{pointer}.json", {"path": path})


def read_rows(
    lake: Lake,
    path: str,
    columns: Sequence[str] | None = None,
    keys: Collection[str] | None = None,
) -> "pl.DataFrame":
    """The rows of a set in the order of their keys.

    Args:
        columns: only these are read, besides the key.
        keys: only the rows with these keys; layers that have none of them are not read further than
            their keys.

    Raises StoreError if the set or a layer of it is missing or damaged.
    """
    found = _opened(lake, path)
    if found is None:
        raise StoreError(
            f"{lake.uri}/{path}.json is missing or damaged. What is published is untouched. "
            f"Delete it, if it is there, "
            "and run again: it is then made anew."
        )
    rows = _without_tombstones(_newest(lake, found.key, found.layers, columns, keys))
    return rows if columns is None else rows.select(columns)


def write_frame(
    lake: Lake, path: str, key: str, rows: "pl.DataFrame", base: RowSet | None, by: Sequence[str]
) -> RowSet:
    """Store all rows of a table as the difference to an earlier set; a base that is damaged is
    none.

    Args:
        by: columns of text that are equal when and only when the whole row is.
    """
    there = None if base is None else readable(lake, base, [key, *by])
    if base is None or there is None:
        return write_rows(lake, path, key, rows)
    upserts = rows.join(there, on=[key, *by], how="anti", nulls_equal=True)
    gone = there.join(rows, on=key, how="anti").get_column(key).to_list()
    return write_rows(lake, path, key, upserts, base, gone)


def store_latest(
    lake: Lake, path: str, pointer: str, key: str, rows: "pl.DataFrame", by: Sequence[str]
) -> RowSet:
    """Store all rows as the difference to the set that a pointer names, and move it.

    Args:
        by: columns of text that are equal when and only when the whole row is.
    """
    row_set = write_frame(lake, path, key, rows, latest_rows(lake, pointer), by)
    point_to(lake, pointer, row_set.path)
    return row_set


def write_rows(
    lake: Lake,
    path: str,
    key: str,
    rows: "pl.DataFrame",
    base: RowSet | None = None,
    gone: Collection[str] = (),
) -> RowSet:
    """Store a set: an earlier one with some rows added or replaced, and those of the keys in `gone`
    taken out.

    Args:
        rows: without a base, all of the set.
    """
    import polars as pl

    upserts = rows.sort(key)
    if base is None:
        return _record(
            lake,
            RowSet(path, key, upserts.height, (_put_layer(lake, path, "whole", key, upserts),)),
        )
    tombs = pl.DataFrame({key: sorted(gone)}, schema={key: pl.String}).join(
        upserts, on=key, how="anti"
    )
    touched = pl.concat([upserts.select(key), tombs])
    if not touched.height:
        return _record(lake, RowSet(path, key, base.rows, base.layers))
    kept = read_rows(lake, base.path, [key]).join(touched, on=key, how="anti")
    live = kept.height + upserts.height
    stored = sum(layer.rows for layer in base.layers) + touched.height
    if stored > MOST_STORED * live:
        older = _without_tombstones(_newest(lake, key, base.layers)).join(
            touched, on=key, how="anti"
        )
        whole = pl.concat([older.select(upserts.columns), upserts]).sort(key)
        return _record(
            lake, RowSet(path, key, live, (_put_layer(lake, path, "whole", key, whole),))
        )
    change = _with_tombstones(upserts, key, tombs)
    lower = base.layers
    if len(lower) >= MOST_LAYERS:
        above = _newest(lake, key, lower[1:]).join(touched, on=key, how="anti")
        change = pl.concat([above.select(change.columns), change]).sort(key)
        lower = lower[:1]
    names = [layer.path for layer in base.layers]
    return _record(
        lake, RowSet(path, key, live, (*lower, _put_layer(lake, path, names, key, change)))
    )


def readable(lake: Lake, rows: RowSet, columns: Sequence[str]) -> "pl.DataFrame | None":
    """These columns of a set, or None if it is damaged: it can then be no base, and the whole is
    made anew.
    """
    import polars as pl

    try:
        return read_rows(lake, rows.path, columns)
    except (StoreError, pl.exceptions.PolarsError, ValueError, OSError):
        return None


def _opened(lake: Lake, path: str) -> RowSet | None:
    try:
        found = lake.read_json(f"{path}.json")
        if found is None:
            return None
        layers = tuple(Layer(**layer) for layer in found["layers"])
        return RowSet(path, found["key"], found["rows"], layers)
    except (ValueError, TypeError, KeyError):
        return None


def _pointed(lake: Lake, pointer: str) -> str | None:
    try:
        found = lake.read_json(f"{pointer}.json")
        return str(found["path"]) if found else None
    except (ValueError, TypeError, KeyError):
        return None


def _newest(
    lake: Lake,
    key: str,
    layers: Iterable[Layer],
    columns: Sequence[str] | None = None,
    keys: Collection[str] | None = None,
) -> "pl.DataFrame":
    """The newest row of each key, tombstones among them, with the column `gone`; sorted by key."""
    import polars as pl

    wanted = (
        None if keys is None else pl.DataFrame({key: list(keys)}, schema={key: pl.String}).unique()
    )
    seen: list[pl.DataFrame] = []
    frames: list[pl.DataFrame] = []
    for layer in reversed(tuple(layers)):
        mark = [GONE] if layer.gone else []
        if wanted is not None:
            found = lake.read(layer.path, [key]).join(wanted, on=key, how="semi")
            if frames and not found.height:
                continue
            wanted = wanted.join(found, on=key, how="anti")
            frame = _read(lake, layer, key, columns, mark).join(found, on=key, how="semi")
        else:
            frame = _read(lake, layer, key, columns, mark)
            if seen:
                frame = frame.join(pl.concat(seen), on=key, how="anti")
            seen.append(frame.select(key))
        frames.append(frame if mark else frame.with_columns(pl.lit(value=False).alias(GONE)))
        if wanted is not None and not wanted.height:
            break
    names = frames[0].columns
    return pl.concat([frame.select(names) for frame in reversed(frames)]).sort(key)


def _read(
    lake: Lake, layer: Layer, key: str, columns: Sequence[str] | None, mark: list[str]
) -> "pl.DataFrame":
    return lake.read(
        layer.path, None if columns is None else list(dict.fromkeys((key, *columns, *mark)))
    )


def _without_tombstones(rows: "pl.DataFrame") -> "pl.DataFrame":
    return rows.filter(~rows.get_column(GONE)).drop(GONE)


def _with_tombstones(rows: "pl.DataFrame", key: str, gone: "pl.DataFrame") -> "pl.DataFrame":
    import polars as pl

    marked = rows.with_columns(pl.lit(value=False).alias(GONE))
    tombs = gone.select(key).with_columns(pl.lit(value=True).alias(GONE))
    return pl.concat([marked, tombs], how="diagonal").sort(key)


def _put_layer(lake: Lake, path: str, below: Any, key: str, rows: "pl.DataFrame") -> Layer:
    tombs = int(rows.get_column(GONE).sum()) if GONE in rows.columns else 0
    rows = rows.drop(GONE) if GONE in rows.columns and not tombs else rows
    name = f"{_home(path)}/layers/{digest(path, below)}.parquet"
    # One that is there was left by a run that was killed, or is damaged.
    if lake.exists(name) and not _holds(lake, name, rows):
        lake.delete(name)
    lake.write(name, rows)
    return Layer(name, rows.height, tombs)


def _holds(lake: Lake, name: str, rows: "pl.DataFrame") -> bool:
    import polars as pl

    try:
        return lake.read(name).equals(rows)
    except (StoreError, pl.exceptions.PolarsError, ValueError, OSError):
        return False


def _home(path: str) -> str:
    """`documents` for documents/<digest>; `snapshots/kit` for snapshots/kit/<digest>/tools."""
    parts = path.split("/")
    return "/".join(parts[:2] if parts[0] == "snapshots" else parts[:1])


def _record(lake: Lake, rows: RowSet) -> RowSet:
    layers = [asdict(layer) for layer in rows.layers]
    lake.write_json(f"{rows.path}.json", {"key": rows.key, "rows": rows.rows, "layers": layers})
    return rows
