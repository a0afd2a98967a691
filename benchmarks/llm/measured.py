"""An experiment, where it finds its files, and what it gives."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MODEL = "openai/gpt-4o-mini"
"""The model whose prompts are asked; the replies were recorded, and name their authors."""
REPLIES = Path(__file__).parent / "replies"
"""The recorded replies."""
MEASURES = ("Recall@1", "Recall@5", "Recall@10")


@dataclass(frozen=True, slots=True)
class Experiment:
    """One table.

    Attributes:
        name: of the table.
        title: what it shows.
        benchmarks: the names of the benchmarks, `real` among them.
        strategies: as for --strategy.
        indexes: the file in this folder with the indexes of the boards, and the texts in them;
            the benchmark's own index, without written texts, if empty.
        limit: requests of each set of a paper's benchmark; None for all.
        catalogs: of `real`; all if empty.
        boards: of a paper's benchmark, with the requests that are asked there; all if empty.
        measures: the columns.
        compared: what the boards or indexes of a table differ in.
        published: whether the figures of papers stand beside these, in the same measures.
        unanswerable: whether requests that nothing answers are asked, too.
        recorded: whether its replies stand in `replies`; if not, it runs only where it is named.
    """

    name: str
    title: str
    benchmarks: tuple[str, ...]
    strategies: tuple[str, ...]
    indexes: str = ""
    limit: int | None = None
    catalogs: tuple[str, ...] = ()
    boards: tuple[str, ...] = ()
    measures: tuple[str, ...] = MEASURES
    compared: str = "texts"
    published: bool = False
    unanswerable: bool = False
    recorded: bool = True


@dataclass(frozen=True, slots=True)
class Row:
    """One system on one set of requests.

    Attributes:
        values: the mean and its 95 % interval by measure.
        calls, tokens: of the LLM for a request.
        fallbacks: the share of the requests in which a reply was missing.
    """

    task: str
    strategy: str
    index: str
    queries: int
    values: Mapping[str, tuple[float, float, float]]
    calls: float
    tokens: float
    fallbacks: float


@dataclass(frozen=True, slots=True)
class NothingFits:
    """How often a strategy said that nothing fits: of requests without an answer, and of others."""

    strategy: str
    index: str
    right: int
    without_answer: int
    false: int
    with_answer: int


@dataclass(frozen=True, slots=True)
class Places:
    """Where an experiment finds its files.

    Attributes:
        data: the folder of the papers' benchmarks.
        real: the fetched real catalogs; None leaves them out.
        boards: the folder for boards.
        missing: what happens to requests without a recorded reply.
    """

    data: Path
    real: Path | None
    boards: Path
    missing: str = "fail"
    replies: Path = REPLIES

    @property
    def llm_options(self) -> dict[str, Any]:
        """The options of the LLM: its recorded replies."""
        return {"replies": str(self.replies), "missing_replies": self.missing}


@dataclass(frozen=True, slots=True)
class MoreTable:
    """A table of an experiment beside those of its requests.

    Attributes:
        note: a sentence below it; may be empty.
    """

    header: list[str]
    lines: list[list[str]]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Measured:
    """What an experiment gave; nothing where it only wrote down which replies are missing."""

    rows: list[Row] = field(default_factory=list[Row])
    nothing_fits: list[NothingFits] = field(default_factory=list[NothingFits])
    more: list[MoreTable] = field(default_factory=list[MoreTable])


def rows_of(benchmark: str, result: Mapping[str, Any]) -> Iterator[Row]:
    """Yield a row for each task and system of a benchmark."""
    overheads = {(row["strategy"], row["index"]): row for row in _summed(result["overhead"])}
    groups: dict[tuple[str, str, str], dict[str, Any]] = {}
    for row in result["rows"]:
        task = f"{benchmark}, {row['task']}"
        if benchmark == "real" and row["task"] != "mean":
            continue
        group = groups.setdefault((task, row["strategy"], row["index"]), {"n": row["n"]})
        group[row["measure"]] = (row["value"], row["low"], row["high"])
    for (task, strategy, index), group in groups.items():
        overhead = overheads.get((strategy, index), {})
        queries = overhead.get("queries", 0) or 1
        yield Row(
            task,
            strategy,
            index,
            group.pop("n"),
            group,
            overhead.get("llm_calls", 0) / queries,
            overhead.get("tokens", 0) / queries,
            overhead.get("fallbacks", 0) / queries,
        )


def _summed(overheads: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the overhead of each system over all its sets of requests."""
    sums: dict[tuple[str, str], dict[str, Any]] = {}
    for row in overheads:
        total = sums.setdefault(
            (row["strategy"], row["index"]), dict.fromkeys(("queries", "llm_calls", "tokens"), 0)
        )
        for name in ("queries", "llm_calls", "tokens", "fallbacks"):
            total[name] = total.get(name, 0) + row[name]
    for (strategy, index), total in sums.items():
        yield {"strategy": strategy, "index": index, **total}
