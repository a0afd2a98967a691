"""The form of every benchmark: boards for the pipeline to build, and sets of queries with tasks."""

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from catalogs.records.source import read_rows
from pegboard.evaluation.golden import GoldenQuery

REPEATED_TASKS = {"step-tool", "instructed", "single-without-examples"}
"""Tasks whose queries are steps of other tasks' queries, or these in more words."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A strategy under a short name, in an index, perhaps of another board than the queries'."""

    name: str
    strategy: Any
    index: str | None = None
    board: str | None = None


@dataclass(frozen=True, slots=True)
class BenchmarkBoard:
    """A board to build.

    Attributes:
        catalog: its `[catalogs.NAME]`, as TOML.
        indexes: its `[[indexes]]`; the pipeline's default if empty.
        files: the files beside its pegboard.toml, by name.
    """

    name: str
    catalog: str
    indexes: str = ""
    files: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def configuration(self) -> str:
        """Its pegboard.toml."""
        return f'[board]\nuri = "board"\n\n{self.catalog}\n{self.indexes}'


@dataclass(frozen=True, slots=True)
class QuerySet:
    """Queries for one board.

    Attributes:
        tasks: the places of the queries of each task; a query may belong to several.
        variants: strategies beside the baselines and the library's own.
        agents: whether the owners of the tools are searched for, instead of the tools.
        linked: whether queries name a main tool first, then those on which it depends.
    """

    board: str
    queries: tuple[GoldenQuery, ...]
    tasks: Mapping[str, tuple[int, ...]]
    variants: tuple[Variant, ...] = ()
    agents: bool = False
    linked: bool = False

    @classmethod
    def of_task(
        cls, board: str, task: str, queries: Sequence[GoldenQuery], *, agents: bool = False
    ) -> "QuerySet":
        """Queries that all belong to one task."""
        return cls(board, tuple(queries), {task: tuple(range(len(queries)))}, agents=agents)


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A benchmark read from its files.

    Attributes:
        tools: how many tools its catalogs list.
        problems: what could not be used of its files.
        means: tasks whose value is the mean of other tasks', each with equal weight.
    """

    name: str
    boards: tuple[BenchmarkBoard, ...]
    query_sets: tuple[QuerySet, ...]
    tools: int = 0
    problems: tuple[str, ...] = ()
    means: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])

    @property
    def queries(self) -> int:
        """How many requests for tools there are; their steps and rewordings do not count again."""
        return sum(
            len(one.queries)
            for one in self.query_sets
            if not one.agents and not REPEATED_TASKS & one.tasks.keys()
        )


def catalog_toml(name: str, kind: str, path: Path, columns: Mapping[str, str] | None = None) -> str:
    """A catalog's table. Columns that no row has are left out: the pipeline rejects them."""
    rows = [row.value for row in read_rows(path) if not row.problem] if columns else []
    existing = {column for row in rows for column in row}
    used = ", ".join(
        f"{target} = {json.dumps(column)}"
        for target, column in (columns or {}).items()
        if column in existing
    )
    return (
        f'[catalogs.{name}]\ntype = "{kind}"\npath = {json.dumps(str(path), ensure_ascii=False)}\n'
        + (f"columns = {{ {used} }}\n" if used else "")
    )


def tasks_of(
    queries: Sequence[GoldenQuery], more: Mapping[str, Sequence[int]] | None = None
) -> dict[str, tuple[int, ...]]:
    """The tasks `all`, `single` and `multi` (by the number of tools), and others; none empty."""
    kinds = {
        kind: [place for place, query in enumerate(queries) if query.kind == kind]
        for kind in ("single", "multi")
    }
    tasks: dict[str, Sequence[int]] = {"all": range(len(queries)), **kinds, **(more or {})}
    return {task: tuple(places) for task, places in tasks.items() if places}


def sampled(benchmark: Benchmark, limit: int, seed: int) -> Benchmark:
    """The benchmark with at most `limit` queries of each set, drawn without replacement."""
    query_sets = (_sampled(one, limit, seed) for one in benchmark.query_sets)
    return replace(benchmark, query_sets=tuple(query_sets))


def _sampled(query_set: QuerySet, limit: int, seed: int) -> QuerySet:
    count = len(query_set.queries)
    drawn = sorted(random.Random(seed).sample(range(count), min(limit, count)))  # noqa: S311  a sample, no secret
    new_place = {place: new for new, place in enumerate(drawn)}
    tasks = {
        task: tuple(new_place[place] for place in places if place in new_place)
        for task, places in query_set.tasks.items()
    }
    return replace(
        query_set,
        queries=tuple(query_set.queries[place] for place in drawn),
        tasks={task: places for task, places in tasks.items() if places},
    )
