"""The sets of requests that peers are measured on: a task of a benchmark, or all real catalogs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from benchmarks.papers.benchmark import Benchmark, QuerySet

TASKS: dict[str, tuple[tuple[str, str], ...]] = {
    "seal-tools": (("all", "Seal-Tools"),),
    "metatool": (("single-without-examples", "MetaTool, one tool"), ("multi", "two tools")),
    "livemcpbench": (("direct-tool", "LiveMCPBench"), ("step-tool", "its steps")),
    "ultratool": (("all", "UltraTool"),),
    "bfcl": (("all", "BFCL"),),
    "acebench-en": (("all", "ACEBench"),),
    "real": (("", "real catalogs"),),
}
"""For each benchmark its tasks and their labels; "" for all query sets together, the mean over
which weighs each alike."""


@dataclass(frozen=True, slots=True)
class RequestSet:
    """A column of the table.

    Attributes:
        query_sets: the requests of each board; a mean over several weighs each alike.
    """

    label: str
    benchmark: str
    query_sets: tuple[QuerySet, ...]

    @property
    def queries(self) -> int:
        """How many requests it has."""
        return sum(len(one.queries) for one in self.query_sets)


def request_sets(benchmark: Benchmark) -> Iterator[RequestSet]:
    """The sets of a benchmark, without those that it has no requests for."""
    for task, label in TASKS[benchmark.name]:
        own = [one for one in benchmark.query_sets if not task or task in one.tasks]
        if own and not own[0].agents:
            yield RequestSet(label, benchmark.name, tuple(own))


def needed_part(benchmark: Benchmark, sets: Sequence[RequestSet]) -> Benchmark:
    """The benchmark with those boards only that the sets search."""
    boards = {query_set.board for one in sets for query_set in one.query_sets}
    return replace(
        benchmark, boards=tuple(board for board in benchmark.boards if board.name in boards)
    )
