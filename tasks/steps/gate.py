"""The step between staging and publishing: golden queries decide whether a release goes live."""

from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

from pegboard.errors import ConfigurationError, PegboardError
from pegboard.evaluation.comparison import Evaluation, search_depth
from pegboard.evaluation.golden import GoldenQuery
from pegboard.evaluation.searcher import Searcher
from pegboard.evaluation.systems import ReleaseSystem
from pegboard.retrieval.find import strategy_of
from pegboard.search.loaded import IN_MEMORY_ROWS, LoadedRelease
from pegboard.store.releases import Pin, Release, ReleaseStore
from tasks.gate.regressions import (
    broken_canaries,
    captured_queries,
    lost_and_won,
    tool_changes,
)
from tasks.gate.results import search_once, write_details
from tasks.gate.rules import LiveResults, judge_rule
from tasks.gate.spec import GateSpec, read_gate
from tasks.lake.files import Lake
from tasks.lake.query_vectors import ConfiguredVectors
from tasks.runtime import progress
from tasks.safety.untrusted import CREDENTIAL
from tasks.settings.configuration import Configuration
from tasks.steps.plan import Plan
from tasks.steps.release_spec import ReleaseSpec, staged_release
from tasks.steps.snapshot import Snapshot

MANIFEST_KEYS = ("passed", "golden", "queries", "rules", "canaries", "chosen", "live")
DEPTH = 20
"""The least number of tools that are retrieved, so that the rank of a lost tool is known."""
THRESHOLD = "accept_95"
"""The threshold of the ranker that accepts 95 % of the requests with an answer."""
MAX_WORST = 20
MAX_CAPTURED = 20
"""Maximum captured queries listed in the details; the count is of all."""
MAX_WON = 10
"""Maximum won queries listed in the details; the count is of all."""


def gate_release(
    configuration: Configuration,
    plan: Plan,
    snapshots: list[Snapshot],
    spec: ReleaseSpec,
    pins: dict[str, Pin],
    suspicious: Mapping[str, Sequence[Mapping[str, Any]]] = MappingProxyType({}),
) -> dict[str, Any] | None:
    """Return the decision of a configuration's gate on what was staged, as the manifest's `gate`
    (see `docs/reference/table-contract.md`); None without a gate.

    Args:
        suspicious: the result of `find_suspicious`.

    Raises:
        ConfigurationError: the gate is invalid, or its queries are not those of `spec`.
    """
    gate = read_gate(configuration)
    if gate is None:
        return None
    if gate.digest != spec.queries:
        raise ConfigurationError(
            f"The golden queries of {configuration.file} changed while the build ran. Build again."
        )
    staged = staged_release(configuration, plan, snapshots, spec, pins)
    details = _details(configuration, gate, plan, staged, suspicious)
    path, at = write_details(Lake(configuration.uri), staged.id, details)
    return {**{key: details[key] for key in MANIFEST_KEYS}, "at": at, "details": path}


class _Measurer:
    """Evaluates releases of one board by their own default strategy and index, with results and
    vectors kept. `paths` are those of the results in the lake.
    """

    def __init__(self, configuration: Configuration, gate: GateSpec) -> None:
        self.paths: list[str] = []
        self._store = ReleaseStore(configuration.uri)
        self._lake = Lake(configuration.uri)
        self._vectors = ConfiguredVectors(configuration.indexes, self._lake)
        self._measures = gate.measures
        self._depth = max(DEPTH, gate.canary_k, search_depth(gate.measures))
        self._searchers: dict[str, Searcher] = {}

    def searcher(self, release: Release) -> Searcher:
        """Return the release, loaded when it is first needed."""
        if release.id not in self._searchers:
            loaded = LoadedRelease(self._store, release, IN_MEMORY_ROWS)
            self._searchers[release.id] = Searcher(loaded, self._vectors)
        return self._searchers[release.id]

    def measure(self, release: Release, queries: Sequence[GoldenQuery]) -> Evaluation:
        """Evaluate a release.

        Raises:
            PegboardError: it cannot be searched, and no earlier results are kept.
        """
        system = ReleaseSystem.resolve(self.searcher(release))
        advance = partial(progress.advance, "gate")
        results, path = search_once(self._lake, system, queries, self._depth, advance)
        self.paths.append(path)
        return Evaluation.of(system, results, self._measures)

    def measure_live(self, live: Release | None, queries: Sequence[GoldenQuery]) -> LiveResults:
        """Evaluate the live release, or say why it cannot be searched."""
        if live is None:
            return LiveResults()
        try:
            return LiveResults(live.id, self.measure(live, queries))
        except PegboardError as error:
            return LiveResults(live.id, None, str(error))


def _details(
    configuration: Configuration,
    gate: GateSpec,
    plan: Plan,
    staged: Release,
    suspicious: Mapping[str, Sequence[Mapping[str, Any]]],
) -> dict[str, Any]:
    """Evaluate the staged and the live release, each by its own default.

    Returns:
        The details of the gate as JSON values, without the time and the path of their file.
    """
    store = ReleaseStore(configuration.uri)
    live = store.get(plan.live) if plan.live else None
    measurer, rounds = _Measurer(configuration, gate), 1 if live is None else 2
    progress.start("gate", (len(gate.queries) + len(gate.canaries)) * rounds)
    evaluation = measurer.measure(staged, gate.queries)
    before = measurer.measure_live(live, gate.queries)
    pairs = [(evaluation, before.evaluation)]
    if gate.canaries:
        canaries = measurer.measure(staged, gate.canaries)
        pairs.append((canaries, measurer.measure_live(live, gate.canaries).evaluation))
    changes = tool_changes(store, live, staged)
    rules = [judge_rule(rule, evaluation, before) for rule in gate.rules]
    broken = [row for pair in pairs[1:] for row in broken_canaries(*pair, gate.canary_k, changes)]
    captured = _captured(gate, plan, measurer.searcher(staged).loaded, pairs, suspicious)
    too_many = captured["most"] is not None and captured["count"] > captured["most"]
    return {
        "release": staged.id,
        "passed": not broken
        and not too_many
        and all(rule["passed"] is not False for rule in rules),
        "rules": rules,
        "canaries": {"count": len(gate.canaries), "missed": len(broken)},
        "captured": captured,
        "chosen": _chosen(gate, evaluation, measurer.searcher(staged)),
        "broken": broken,
        "changes": changes,
        "answers": measurer.paths,
        **_compared(gate, evaluation, before, changes),
    }


def _captured(
    gate: GateSpec,
    plan: Plan,
    loaded: LoadedRelease,
    pairs: Sequence[tuple[Evaluation, Evaluation | None]],
    suspicious: Mapping[str, Sequence[Mapping[str, Any]]],
) -> dict[str, Any]:
    """Return the captured queries and canaries, and how many may be (`most`, None for all); `pairs`
    are the evaluations of staged and of live.
    """
    changed = {*plan.new, *plan.changed} if plan.live else set[str]()
    flags = _flags_of_first(loaded, [evaluation for evaluation, _ in pairs], suspicious)
    captured = [row for pair in pairs for row in captured_queries(*pair, changed, flags)]
    count = len(gate.queries) + len(gate.canaries)
    most = None if gate.captured is None else max(1, int(gate.captured * count))
    first = captured[:MAX_CAPTURED]
    return {"count": len(captured), "of": count, "most": most, "queries": first}


def _flags_of_first(
    loaded: LoadedRelease,
    evaluations: Sequence[Evaluation],
    suspicious: Mapping[str, Sequence[Mapping[str, Any]]],
) -> dict[str, list[str]]:
    """Return the flags of the first tool of each query, of those that have any."""
    results = [result for evaluation in evaluations for result in evaluation.results]
    first = {result.retrieved[0].id for result in results if result.retrieved}
    flags = {
        tool: [
            *record.flags,
            # What only the lock file does not approve is not suspicious.
            *(str(row["flag"]) for row in suspicious.get(tool, ()) if "change" not in row),
        ]
        for tool, record in loaded.tools(sorted(first)).items()
    }
    return {tool: codes for tool, codes in flags.items() if set(codes) - {CREDENTIAL}}


def _compared(
    gate: GateSpec, staged: Evaluation, live: LiveResults, changes: Mapping[str, Any]
) -> dict[str, Any]:
    """The details about the golden queries, beside the live release's results."""
    lost, won = lost_and_won(staged, live.evaluation, gate.k, changes)
    return {
        "golden": gate.digest,
        "queries": len(gate.queries),
        "live": live.release,
        "live_trouble": live.trouble,
        "live_measures": live.evaluation.rows() if live.evaluation is not None else [],
        "k": gate.k,
        "canary_k": gate.canary_k,
        "measures": staged.rows(),
        "groups": [
            *staged.group_rows("kind", live.evaluation),
            *staged.group_rows("catalog", live.evaluation),
        ],
        "unknown": list(staged.unknown),
        "lost": lost,
        "won": {"count": len(won), "first": won[:MAX_WON]},
        "worst": [row for row in staged.worst(MAX_WORST, gate.main) if row["value"] < 1],
    }


def _chosen(gate: GateSpec, evaluation: Evaluation, staged: Searcher) -> dict[str, Any]:
    """The default strategy and index with their main measure, and the probability from which on a
    request has an answer; None for a search that is not hybrid.
    """
    mean, threshold = evaluation.interval(gate.main), None
    if strategy_of(None, staged.loaded).mode == "hybrid":
        thresholds = staged.loaded.index_manifest(evaluation.index)["ranker"]["thresholds"]
        threshold = {"name": THRESHOLD, "probability": thresholds[THRESHOLD]}
    return {
        "index": evaluation.index,
        "strategy": evaluation.strategy,
        "measure": str(gate.main),
        "value": mean.value,
        "low": mean.low,
        "high": mean.high,
        "threshold": threshold,
    }
