"""Checksums: what a table holds, proven from the rows themselves.

A row's `digest` says what it was made from, so that equal inputs are known before anything is
encoded. Its `checksum` says what was written, vector and all, so that a reader of any language can
prove that a release is as it was published."""

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any

from pegboard.canonical import digest
from pegboard.store.contract import CHECKSUM

if TYPE_CHECKING:
    import pyarrow as pa

EDGE_SAYS = (
    "source",
    "target",
    "type",
    "parameter",
    "reason",
    "origin",
    "confidence",
    "evidence",
    "place",
)


def edge_digest(row: Mapping[str, Any]) -> str:
    """The digest of a row of `edges`: over all that it says, one after another."""
    return digest(*(_value(row[name]) for name in EDGE_SAYS))


def row_checksum(row: Mapping[str, Any]) -> str:
    """sha256 over the canonical JSON of a row's columns but `checksum`; a vector as its hexadecimal
    digits.

    Those are of the little-endian float32 values, one after another.
    """
    return digest({name: value for name, value in row.items() if name != CHECKSUM})


def row_checksums(rows: "pa.Table", piece: int = 10_000) -> list[str]:
    """The checksum of every row of a table, in their order; `piece` rows are in memory as Python
    values at once.
    """
    import numpy as np

    checksums: list[str] = []
    for start in range(0, rows.num_rows, piece):
        part = rows.slice(start, piece)
        columns: dict[str, list[Any]] = {}
        for name in part.column_names:
            if name == "vector":
                flat = part.column(name).combine_chunks().flatten().to_numpy(zero_copy_only=False)
                matrix = np.ascontiguousarray(flat, dtype="<f4").reshape(part.num_rows, -1)
                columns[name] = [row.tobytes().hex() for row in matrix]
            elif name != CHECKSUM:
                columns[name] = [_value(value) for value in part.column(name).to_pylist()]
        names = list(columns)
        checksums += [
            row_checksum(dict(zip(names, row, strict=True)))
            for row in zip(*columns.values(), strict=True)
        ]
    return checksums


def _value(value: Any) -> Any:
    """A number that JSON does not have, as only a spoilt row has one, as text."""
    return str(value) if isinstance(value, float) and not isfinite(value) else value


def table_checksum(rows: Iterable[tuple[str, str]]) -> str:
    """The checksum of a table from its rows (key, checksum), whatever their order."""
    return digest(sorted(list(row) for row in rows))
