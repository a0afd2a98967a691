"""Row sets: tables of the lake in layers, so that a run writes the rows that changed and not the
whole table.

    <path>.json                        {"key", "rows", "columns": {name: type},
                                       "layers": [{"path", "rows", "gone"}, ...]}, the oldest layer
                                       first
    <folder>/layers/<digest>.parquet   new and changed rows; and for removed ones tombstones, a
                                       key with `gone`

Of each key the newest row counts, and a tombstone hides the older ones. A set is made from an
earlier one by one more layer; both share the other layers. Layers are sorted by key and named by
the set that they were made for and the layers below. The set's own file is written last, so a
killed run leaves unused layers, and never half a set.

All layers of a set have the same columns. A set with other columns than an earlier one is therefore
not made from it, but written whole. Sets from before formats were stated name no columns: they are
those of their newest layer."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pegboard.canonical import digest
from pegboard.errors import StoreError
from pegboard.store.database import public_uri
from tasks.lake.files import DamagedFile, Lake, MissingColumns

if TYPE_CHECKING:
    import polars as pl

GONE = "gone"
"""The column that marks a tombstone; only layers with tombstones have it."""
MOST_LAYERS = 16
"""Maximum layers of a set, each of which is a file to open. A set that would have more is written
as one layer.
"""
MOST_STORED = 1.3
"""Maximum ratio of stored rows to current rows. A set that would exceed it is written as one layer.
"""


@dataclass(frozen=True, slots=True)
class Layer:
    """A file of the lake and its number of rows, of which `gone` are tombstones."""

    path: str
    rows: int
    gone: int = 0


@dataclass(frozen=True, slots=True)
class RowSet:
    """A table of the lake.

    Attributes:
        key: the name of the key column.
        rows: how many rows count.
        layers: the oldest first.
        columns: the types of the columns by name; None in a set from before sets named them.
    """

    path: str
    key: str
    rows: int
    layers: tuple[Layer, ...]
    columns: Mapping[str, str] | None = None


def find_rows(lake: Lake, path: str, columns: Iterable[str] = ()) -> RowSet | None:
    """Return the set of that name; None if it, or a layer of it, is missing.

    Args:
        columns: a set that lacks some of these counts as missing, so that it is made again.
    """
    row_set = _opened(lake, path)
    if row_set is None or not all(lake.exists(layer.path) for layer in row_set.layers):
        return None
    needed = set(columns)
    return row_set if not needed or needed <= column_types(lake, row_set).keys() else None


def column_types(lake: Lake, row_set: RowSet) -> dict[str, str]:
    """Return the types of a set's columns by name. Raises StoreError if a layer is missing."""
    if row_set.columns is not None:
        return dict(row_set.columns)
    types = lake.column_types(row_set.layers[-1].path)
    return {name: kind for name, kind in types.items() if name != GONE}


def latest_rows(lake: Lake, pointer: str) -> RowSet | None:
    """Return the set that a pointer (a path without its ending) names; None if either is missing or
    damaged.
    """
    path = _pointed(lake, pointer)
    return _opened(lake, path) if path else None


def point_to(lake: Lake, pointer: str, path: str) -> None:
    """Make a pointer (a path without its ending) name a set, for the next run; it is not pruned."""
    if _pointed(lake, pointer) != path:
        lake.write_json(f"{pointer}.json", {"path": path})


def read_rows(
    lake: Lake,
    path: str,
    columns: Sequence[str] | None = None,
    keys: Collection[str] | None = None,
    defaults: "Mapping[str, pl.Expr]" = MappingProxyType({}),
) -> "pl.DataFrame":
    """Return the rows of a set, ordered by key.

    Args:
        columns: only these are read, besides the key.
        defaults: the values of columns that the set may lack, because it was written before they
            existed.
        keys: only the rows with these keys; layers that have none of them are not read further than
            their keys.

    Raises StoreError if the set or a layer of it is missing, DamagedFile if it is damaged or lacks
    a column.
    """
    row_set = _opened(lake, path)
    if row_set is None:
        raise DamagedFile(
            f"{public_uri(lake.uri)}/{path}.json is missing or damaged. What is published is "
            f"untouched. Run `pegboard build`: it makes the file again."
        )
    try:
        rows = _without_tombstones(_newest(lake, row_set.key, row_set.layers, columns, keys))
    except MissingColumns:
        stored = column_types(lake, row_set)
        absent = [name for name in columns or () if name not in stored]
        if not absent or not defaults.keys() >= set(absent):
            raise
        present = [name for name in columns or () if name in stored]
        rows = _without_tombstones(_newest(lake, row_set.key, row_set.layers, present, keys))
        rows = rows.with_columns(defaults[name].alias(name) for name in absent)
    return rows if columns is None else rows.select(columns)


def write_frame(
    lake: Lake, path: str, key: str, rows: "pl.DataFrame", base: RowSet | None, by: Sequence[str]
) -> RowSet:
    """Store all rows of a table as the difference to an earlier set. A damaged one is ignored, and
    so is one with other columns.

    Args:
        by: columns of text that are equal when and only when the whole row is.
    """
    if base is not None and not has_columns(lake, base, rows):
        base = None
    stored = None if base is None else readable(lake, base, [key, *by])
    if base is None or stored is None:
        return write_rows(lake, path, key, rows)
    upserts = rows.join(stored, on=[key, *by], how="anti", nulls_equal=True)
    gone = stored.join(rows, on=key, how="anti").get_column(key).to_list()
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
        base: a set that `has_columns` like the rows.
    """
    import polars as pl

    upserts = rows.sort(key)
    types = _types(rows)
    if base is None:
        layer = _put_layer(lake, path, "whole", key, upserts)
        return _record(lake, RowSet(path, key, upserts.height, (layer,), types))
    if base.columns is not None and dict(base.columns) != types:
        raise ValueError(f"{path} cannot be made from {base.path}, which has other columns")
    tombs = pl.DataFrame({key: sorted(gone)}, schema={key: pl.String}).join(
        upserts, on=key, how="anti"
    )
    touched = pl.concat([upserts.select(key), tombs])
    if not touched.height:
        return _record(lake, RowSet(path, key, base.rows, base.layers, types))
    untouched = read_rows(lake, base.path, [key]).join(touched, on=key, how="anti")
    live = untouched.height + upserts.height
    stored = sum(layer.rows for layer in base.layers) + touched.height
    if stored > MOST_STORED * live or len(base.layers) >= MOST_LAYERS:
        older = _without_tombstones(_newest(lake, key, base.layers)).join(
            touched, on=key, how="anti"
        )
        whole = pl.concat([older.select(upserts.columns), upserts]).sort(key)
        layer = _put_layer(lake, path, "whole", key, whole)
        return _record(lake, RowSet(path, key, live, (layer,), types))
    names = [layer.path for layer in base.layers]
    layer = _put_layer(lake, path, names, key, _with_tombstones(upserts, key, tombs))
    return _record(lake, RowSet(path, key, live, (*base.layers, layer), types))


def has_columns(lake: Lake, row_set: RowSet, rows: "pl.DataFrame") -> bool:
    """Return whether a set has the columns of these rows, in any order; a damaged one has not."""
    try:
        return column_types(lake, row_set) == _types(rows)
    except StoreError:
        return False


def readable(lake: Lake, rows: RowSet, columns: Sequence[str]) -> "pl.DataFrame | None":
    """Return these columns of a set; None if it is damaged, so that its caller makes it again."""
    try:
        return read_rows(lake, rows.path, columns)
    except StoreError:
        return None


def _opened(lake: Lake, path: str) -> RowSet | None:
    try:
        record = lake.read_json(f"{path}.json")
        if record is None:
            return None
        layers = tuple(Layer(**layer) for layer in record["layers"])
        return RowSet(path, record["key"], record["rows"], layers, record.get("columns"))
    except (DamagedFile, TypeError, KeyError):
        return None


def _pointed(lake: Lake, pointer: str) -> str | None:
    try:
        record = lake.read_json(f"{pointer}.json")
        return str(record["path"]) if record else None
    except (DamagedFile, TypeError, KeyError):
        return None


def _newest(
    lake: Lake,
    key: str,
    layers: Iterable[Layer],
    columns: Sequence[str] | None = None,
    keys: Collection[str] | None = None,
) -> "pl.DataFrame":
    """Return the newest row of each key, also tombstones, with the column `gone`; sorted by key."""
    import polars as pl

    missing = None if keys is None else pl.Series(key, [*keys], pl.String).to_frame().unique()
    seen: list[pl.DataFrame] = []
    frames: list[pl.DataFrame] = []
    for layer in reversed(tuple(layers)):
        mark = [GONE] if layer.gone else []
        if missing is not None:
            present = lake.read(layer.path, [key]).join(missing, on=key, how="semi")
            if frames and not present.height:
                continue
            missing = missing.join(present, on=key, how="anti")
            frame = _read(lake, layer, key, columns, mark).join(present, on=key, how="semi")
        else:
            frame = _read(lake, layer, key, columns, mark)
            if seen:
                frame = frame.join(pl.concat(seen), on=key, how="anti")
            seen.append(frame.select(key))
        frames.append(frame if mark else frame.with_columns(pl.lit(value=False).alias(GONE)))
        if missing is not None and not missing.height:
            break
    names = frames[0].columns
    return pl.concat([frame.select(names) for frame in reversed(frames)]).sort(key)


def _read(
    lake: Lake, layer: Layer, key: str, columns: Sequence[str] | None, mark: list[str]
) -> "pl.DataFrame":
    return lake.read(
        layer.path, None if columns is None else list(dict.fromkeys((key, *columns, *mark)))
    )


def _types(rows: "pl.DataFrame") -> dict[str, str]:
    return {name: str(kind) for name, kind in rows.schema.items() if name != GONE}


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
    name = f"{_home(path)}/layers/{digest(path, below, _types(rows))}.parquet"
    # An existing one was left by a killed run, or is damaged.
    if lake.exists(name) and not _holds(lake, name, rows):
        lake.delete(name)
    lake.write(name, rows)
    return Layer(name, rows.height, tombs)


def _holds(lake: Lake, name: str, rows: "pl.DataFrame") -> bool:
    try:
        return lake.read(name).equals(rows)
    except StoreError:
        return False


def _home(path: str) -> str:
    """`documents` for documents/<digest>; `snapshots/kit` for snapshots/kit/<digest>/tools."""
    parts = path.split("/")
    return "/".join(parts[:2] if parts[0] == "snapshots" else parts[:1])


def _record(lake: Lake, rows: RowSet) -> RowSet:
    layers = [asdict(layer) for layer in rows.layers]
    columns = dict(rows.columns or {})
    record = {"key": rows.key, "rows": rows.rows, "columns": columns, "layers": layers}
    lake.write_json(f"{rows.path}.json", record)
    return rows
