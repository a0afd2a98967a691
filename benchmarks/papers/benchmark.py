"""What every benchmark is made into: boards for the pipeline to build, and queries to ask them,
each belonging to some tasks.
"""

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from catalogs.records.files import read_rows
from pegboard.evaluation.golden import GoldenQuery

AGAIN = {"step-tool", "instructed"}
"""Tasks that ask the steps of other tasks' queries, or these in more words."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One row of a table: a strategy under a short name, in an index, perhaps of another board than
    the queries' own.
    """

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
        files: what has to stand beside its pegboard.toml, by name.
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
class Asked:
    """Queries for the tools of one board.

    Attributes:
        tasks: the places of the queries of each task; a query may belong to several.
        variants: what is asked beside the baselines and the library's strategies.
    """

    board: str
    queries: tuple[GoldenQuery, ...]
    tasks: Mapping[str, tuple[int, ...]]
    variants: tuple[Variant, ...] = ()


@dataclass(frozen=True, slots=True)
class AgentRequest:
    """A request for agents: the owners of the tools of those true names.

    Attributes:
        steps: the same request step by step, where it is known.
    """

    text: str
    tools: tuple[str, ...]
    steps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AgentsAsked:
    """Requests for the agents of one board, as one task."""

    board: str
    task: str
    requests: tuple[AgentRequest, ...]


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A benchmark that was read: its boards, what is asked of them, and what was wrong with its
    files.

    Attributes:
        tools: how many tools its catalogs list.
    """

    name: str
    boards: tuple[BenchmarkBoard, ...]
    asked: tuple[Asked, ...]
    agents: tuple[AgentsAsked, ...] = ()
    tools: int = 0
    problems: tuple[str, ...] = ()

    @property
    def queries(self) -> int:
        """How many requests there are; their steps, and the same in other words, are not counted
        again.
        """
        return sum(len(one.queries) for one in self.asked if not AGAIN & one.tasks.keys())


def catalog_toml(
    name: str, kind: str, path: Path, columns: Mapping[str, str] | None = None, more: str = ""
) -> str:
    """A catalog's table. Columns that no row has are left out of it, since the pipeline would take
    them for a mistake.
    """
    rows = [row.value for row in read_rows(path) if not row.problem] if columns else []
    known = {column for row in rows for column in row}
    used = ", ".join(
        f"{what} = {json.dumps(column)}"
        for what, column in (columns or {}).items()
        if column in known
    )
    return (
        f'[catalogs.{name}]\ntype = "{kind}"\npath = {json.dumps(str(path), ensure_ascii=False)}\n'
        + (f"columns = {{ {used} }}\n" if used else "")
        + more
    )


def tasks_of(
    queries: Sequence[GoldenQuery], more: Mapping[str, Sequence[int]] | None = None
) -> dict[str, tuple[int, ...]]:
    """The tasks `all`, `single` and `multi`, by how many tools a query needs, and others; those
    without a query are left out.
    """
    kinds = {
        kind: [at for at, one in enumerate(queries) if one.kind == kind]
        for kind in ("single", "multi")
    }
    places: dict[str, Sequence[int]] = {"all": range(len(queries)), **kinds, **(more or {})}
    return {task: tuple(own) for task, own in places.items() if own}


def sampled(benchmark: Benchmark, limit: int, seed: int) -> Benchmark:
    """The benchmark with at most `limit` queries of each kind of question, drawn without
    replacement; equal seeds draw the same.
    """
    return replace(
        benchmark,
        asked=tuple(_sampled(one, limit, seed) for one in benchmark.asked),
        agents=tuple(
            replace(
                one,
                requests=tuple(one.requests[at] for at in _drawn(len(one.requests), limit, seed)),
            )
            for one in benchmark.agents
        ),
    )


def _sampled(asked: Asked, limit: int, seed: int) -> Asked:
    drawn = _drawn(len(asked.queries), limit, seed)
    now = {before: at for at, before in enumerate(drawn)}
    tasks = {
        task: tuple(now[at] for at in places if at in now) for task, places in asked.tasks.items()
    }
    return replace(
        asked,
        queries=tuple(asked.queries[at] for at in drawn),
        tasks={task: places for task, places in tasks.items() if places},
    )


def _drawn(count: int, limit: int, seed: int) -> list[int]:
    return sorted(random.Random(seed).sample(range(count), min(limit, count)))  # noqa: S311  a sample, no secret
