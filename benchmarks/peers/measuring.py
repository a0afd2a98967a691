"""Every system on every set of requests, and what they reach, as JSON rows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from benchmarks.papers.benchmark import QuerySet
from benchmarks.peers.process import PeerFailed, Peers, tool_values
from benchmarks.peers.sets import RequestSet
from benchmarks.strata import corrected_values, mean_difference, mean_interval
from pegboard.evaluation.golden import GoldenQuery
from pegboard.evaluation.measures import Measure, measures_of, per_query
from pegboard.evaluation.systems import ReleaseSystem
from tasks.runtime import progress

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pegboard.evaluation.searcher import Searcher

PEGBOARD = "Pegboard, default"
PEERS: dict[str, str] = {
    "ratel_hybrid": "ratel-ai hybrid",
    "lancedb_rrf": "LanceDB hybrid, RRF",
    "langchain_memory": "LangChain in memory",
    "toolhunch_hybrid": "toolhunch hybrid",
    "callbus_hybrid": "callbus hybrid",
    "fastmcp_bm25": "FastMCP BM25",
}
"""The adapters in `worker/`, with the names of the systems."""
DEPTH = 10
MEASURES: tuple[Measure, ...] = tuple(measures_of(["Recall@5", "Recall@1"]))


@dataclass(frozen=True, slots=True)
class Measured:
    """One system on one set.

    Attributes:
        values: by measure the values per query of each query set.
        problem: why it has none.
    """

    label: str
    system: str
    values: "Mapping[Measure, Sequence[NDArray[np.float64]]]" = field(default_factory=dict)
    version: str = ""
    problem: str = ""


def measure_set(
    requests: RequestSet,
    boards: "Mapping[str, Searcher]",
    peers: Peers,
    adapters: Sequence[str],
) -> Iterator[Measured]:
    """Pegboard and every peer on one set; a peer that fails has its reason."""
    yield _pegboard(requests, boards)
    for adapter in adapters:
        step = f"{PEERS[adapter]}: {requests.label}"
        progress.start(step, requests.queries)
        try:
            yield _peer(requests, boards, peers, adapter)
        except PeerFailed as failure:
            yield Measured(requests.label, PEERS[adapter], problem=str(failure))
        progress.advance(step, requests.queries)


def rows_of(results: Sequence[Measured]) -> list[dict[str, Any]]:
    """One row for each set, system and measure.

    Returns: rows {set, system, version, measure, value, low, high, n}; those of peers have `ahead`,
    by how much Pegboard is above it, with low, high, p and `p_holm`, corrected for the number of
    peers. A peer that failed has {set, system, problem}.
    """
    rows: list[dict[str, Any]] = []
    for label in dict.fromkeys(one.label for one in results):
        own = [one for one in results if one.label == label]
        ours = next(one for one in own if one.system == PEGBOARD)
        rows += [
            {"set": label, "system": one.system, "problem": one.problem}
            for one in own
            if one.problem
        ]
        for measure in MEASURES:
            rows += _measure_rows(ours, [one for one in own if not one.problem], measure)
    return rows


def _measure_rows(
    ours: Measured, systems: Sequence[Measured], measure: Measure
) -> Iterator[dict[str, Any]]:
    gaps = {
        one.system: mean_difference(ours.values[measure], one.values[measure])
        for one in systems
        if one is not ours
    }
    ahead = corrected_values(gaps)
    for one in systems:
        row: dict[str, Any] = {"set": one.label, "system": one.system, "version": one.version}
        row |= {"measure": str(measure), **mean_interval(one.values[measure]).to_dict()}
        if one.system in ahead:
            row["ahead"] = ahead[one.system]
        yield row


def _pegboard(requests: RequestSet, boards: "Mapping[str, Searcher]") -> Measured:
    def rankings(query_set: QuerySet) -> list[list[str]]:
        system = ReleaseSystem.resolve(boards[query_set.board])
        results = system.search(query_set.queries, DEPTH)
        return [[tool.id for tool in result.retrieved] for result in results]

    from pegboard import __version__

    found = [(query_set, rankings(query_set)) for query_set in requests.query_sets]
    return Measured(requests.label, PEGBOARD, _values(found, boards), __version__)


def _peer(
    requests: RequestSet, boards: "Mapping[str, Searcher]", peers: Peers, adapter: str
) -> Measured:
    found: list[tuple[QuerySet, list[list[str]]]] = []
    version = ""
    for query_set in requests.query_sets:
        loaded = boards[query_set.board].loaded
        tools = [tool_values(tool, loaded.agents[tool.agent].name) for tool in loaded.all_tools()]
        answer = peers.ask(adapter, tools, [one.query for one in query_set.queries], DEPTH)
        found.append((query_set, answer.rankings))
        version = answer.version
    return Measured(requests.label, PEERS[adapter], _values(found, boards), version)


def _values(
    found: Sequence[tuple[QuerySet, list[list[str]]]], boards: "Mapping[str, Searcher]"
) -> "dict[Measure, list[NDArray[np.float64]]]":
    each = [
        _measured(boards[query_set.board], query_set.queries, rankings)
        for query_set, rankings in found
    ]
    return {measure: [values[measure] for values in each] for measure in MEASURES}


def _measured(
    board: "Searcher", queries: Sequence[GoldenQuery], rankings: Sequence[Sequence[str]]
) -> "Mapping[Measure, NDArray[np.float64]]":
    needed = [board.names.resolve(query.tools) for query in queries]
    labelled = [
        one.labelled((tool, 1 / rank) for rank, tool in enumerate(ranking, start=1))
        for one, ranking in zip(needed, rankings, strict=True)
    ]
    return per_query(MEASURES, [one.labels for one in needed], labelled)
