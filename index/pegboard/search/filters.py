"""Typed filters of a search. Values are compared or quoted, so none can inject a condition."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from pegboard.errors import QueryError
from pegboard.records import TOOL_KINDS, Tool
from pegboard.store.database import sql_literals

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

FIELDS = ("agent", "catalog", "kind", "tags", "tool")
"""The fields of a filter. A row passes if, for every field in the filter, it has one of the allowed
values. The kind `tool` stands for all kinds of agents that own tools.
"""


@dataclass(frozen=True, slots=True)
class Filter:
    """Allowed values for each field; an absent field allows all, an empty tuple allows none."""

    allowed: Mapping[str, tuple[str, ...]]

    @classmethod
    def parse(cls, where: Mapping[str, Any] | None) -> "Filter | None":
        """Return the filter of a mapping such as `{"agent": "github", "tags": ["billing", "crm"]}`;
        None if it is empty. Raises QueryError with every problem.
        """
        if not where:
            return None
        if not isinstance(where, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise QueryError(
                f"The filter is {where!r:.80}; expected values by field, such as {{'catalog': "
                f"'finance'}}."
            )
        problems: list[str] = []
        allowed: dict[str, tuple[str, ...]] = {}
        for name, value in where.items():
            values = (value,) if isinstance(value, str) else _texts(value)
            if name not in FIELDS:
                problems.append(f"there is no field '{name}'")
            elif values is None:
                problems.append(f"'{name}' is {value!r}, expected a text or a list of texts")
            else:
                allowed[name] = _kinds(values) if name == "kind" else values
        if problems:
            raise QueryError(
                f"The filter cannot be used: {'; '.join(problems)}. Fields: {', '.join(FIELDS)}."
            )
        return cls(allowed)

    def with_agents(self, ids_of: Mapping[str, tuple[str, ...]]) -> "Filter":
        """Return the filter with the names of agents replaced by their ids; unknown names stay, and
        match nothing.
        """
        if "agent" not in self.allowed:
            return self
        agents = tuple(
            identity for name in self.allowed["agent"] for identity in ids_of.get(name, (name,))
        )
        return Filter({**self.allowed, "agent": agents})

    def passes(self, tool: Tool, kind: str) -> bool:
        """Return whether a tool passes.

        Args:
            kind: the kind of the tool's agent.
        """
        values_of = {
            "agent": {tool.agent},
            "catalog": {tool.catalog},
            "kind": {kind},
            "tags": set(tool.tags),
            "tool": {tool.id},
        }
        return all(values_of[name] & set(values) for name, values in self.allowed.items())

    def mask(self, rows: "pa.Table") -> "NDArray[np.bool_]":
        """Return a mask of the rows that pass, shape (rows,)."""
        import numpy as np
        import pyarrow as pa
        from pyarrow import compute

        pc: Any = compute  # its functions are generated at import, so pyright does not know them

        mask = np.ones(rows.num_rows, dtype=bool)
        for name, values in self.allowed.items():
            column = rows.column(name).combine_chunks()
            allowed = pa.array(values, pa.string())
            if name == "tags":
                matches = pc.is_in(pc.list_flatten(column), value_set=allowed)
                parents = pc.list_parent_indices(column).to_numpy(zero_copy_only=False)
                passes = np.zeros(rows.num_rows, dtype=bool)
                passes[parents[matches.to_numpy(zero_copy_only=False)]] = True
            else:
                passes = pc.is_in(column, value_set=allowed).to_numpy(zero_copy_only=False)
            mask &= passes
        return mask

    def sql(self) -> str:
        """Return the filter as a DataFusion condition for Lance, with values as quoted literals."""
        clauses: list[str] = []
        for name, values in self.allowed.items():
            literals = sql_literals(values)
            if not values:
                clauses.append("false")
            elif name == "tags":
                clauses.append(f"array_has_any(tags, [{literals}])")
            else:
                clauses.append(f"{name} IN ({literals})")
        return " AND ".join(clauses) or "true"


def _kinds(values: tuple[str, ...]) -> tuple[str, ...]:
    """Return the kinds with `tool` replaced by the kinds of agents that own tools."""
    kinds: list[str] = []
    for value in values:
        if value == "tool":
            kinds += TOOL_KINDS
        else:
            kinds.append(value)
    return tuple(kinds)


def _texts(value: object) -> tuple[str, ...] | None:
    if not isinstance(value, Iterable):
        return None
    values = tuple(cast("Iterable[object]", value))
    texts = tuple(text for text in values if isinstance(text, str))
    return texts if len(texts) == len(values) else None
