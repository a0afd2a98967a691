"""Evaluate a staged release on golden queries, and decide whether it may go live."""

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
"""Keys of the gate's details that the manifest has, too."""
DEPTH = 20
"""Smallest number of tools that are retrieved, so that the rank of a lost tool is known."""
THRESHOLD = "accept_95"
"""Name of the ranker's threshold that accepts 95 % of the requests with a relevant tool."""
MAX_WORST = 20
"""Largest number of worst queries in the details."""
MAX_CAPTURED = 20
"""Largest number of captured queries in the details, which have the count of all."""
MAX_WON = 10
"""Largest number of won queries in the details, which have the count of all."""


def gate_release(
    configuration: Configuration,
    plan: Plan,
    snapshots: list[Snapshot],
    spec: ReleaseSpec,
    pins: dict[str, Pin],
    suspicious: Mapping[str, Sequence[Mapping[str, Any]]] = MappingProxyType({}),
) -> dict[str, Any] | None:
    """Return the decision of the configured gate on the staged release, as the manifest's `gate`
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
    """Evaluates releases of one board with their own default strategy and index. Results and
    vectors are stored in the lake.

    Attributes:
        paths: the results of all evaluations in the lake.
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
        """Return the searcher of a release, which is loaded once."""
        if release.id not in self._searchers:
            loaded = LoadedRelease(self._store, release, IN_MEMORY_ROWS)
            self._searchers[release.id] = Searcher(loaded, self._vectors)
        return self._searchers[release.id]

    def measure(self, release: Release, queries: Sequence[GoldenQuery]) -> Evaluation:
        """Evaluate a release.

        Raises:
            PegboardError: the release cannot be searched, and the lake has no results of it.
        """
        system = ReleaseSystem.resolve(self.searcher(release))
        advance = partial(progress.advance, "gate")
        results, path = search_once(self._lake, system, queries, self._depth, advance)
        self.paths.append(path)
        return Evaluation.of(system, results, self._measures)

    def measure_live(self, live: Release | None, queries: Sequence[GoldenQuery]) -> LiveResults:
        """Evaluate the live release. If it cannot be searched, the result has the reason."""
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
    """Evaluate the staged and the live release, each with its own default strategy and index.

    Returns:
        The details of the gate as JSON values, without their time and path.
    """
    store = ReleaseStore(configuration.uri)
    live = store.get(plan.live) if plan.live else None
    measurer = _Measurer(configuration, gate)
    releases = 1 if live is None else 2
    progress.start("gate", (len(gate.queries) + len(gate.canaries)) * releases)
    evaluation = measurer.measure(staged, gate.queries)
    live_results = measurer.measure_live(live, gate.queries)
    changes = tool_changes(store, live, staged)
    pairs = [(evaluation, live_results.evaluation)]
    broken: list[dict[str, Any]] = []
    if gate.canaries:
        canaries = measurer.measure(staged, gate.canaries)
        live_canaries = measurer.measure_live(live, gate.canaries).evaluation
        pairs.append((canaries, live_canaries))
        broken = broken_canaries(canaries, live_canaries, gate.canary_k, changes)
    rules = [judge_rule(rule, evaluation, live_results) for rule in gate.rules]
    rules_pass = all(rule["passed"] is not False for rule in rules)
    captured = _captured(gate, plan, measurer.searcher(staged).loaded, pairs, suspicious)
    too_many_captured = captured["most"] is not None and captured["count"] > captured["most"]
    return {
        "release": staged.id,
        "passed": rules_pass and not broken and not too_many_captured,
        "rules": rules,
        "canaries": {"count": len(gate.canaries), "missed": len(broken)},
        "captured": captured,
        "chosen": _chosen(gate, evaluation, measurer.searcher(staged)),
        "broken": broken,
        "changes": changes,
        "answers": measurer.paths,
        **_compared(gate, evaluation, live_results, changes),
    }


def _captured(
    gate: GateSpec,
    plan: Plan,
    loaded: LoadedRelease,
    pairs: Sequence[tuple[Evaluation, Evaluation | None]],
    suspicious: Mapping[str, Sequence[Mapping[str, Any]]],
) -> dict[str, Any]:
    """Return the captured queries and canaries.

    Args:
        pairs: evaluations of the staged and of the live release.

    Returns:
        Their count, the number of all queries (`of`), the largest count that passes (`most`; None
        without a limit), and the first of them.
    """
    changed = {*plan.new, *plan.changed} if plan.live else set[str]()
    flags = _flags_of_first(loaded, [evaluation for evaluation, _ in pairs], suspicious)
    captured = [row for pair in pairs for row in captured_queries(*pair, changed, flags)]
    count = len(gate.queries) + len(gate.canaries)
    limit = None if gate.captured is None else max(1, int(gate.captured * count))
    return {
        "count": len(captured),
        "of": count,
        "most": limit,
        "queries": captured[:MAX_CAPTURED],
    }


def _flags_of_first(
    loaded: LoadedRelease,
    evaluations: Sequence[Evaluation],
    suspicious: Mapping[str, Sequence[Mapping[str, Any]]],
) -> dict[str, list[str]]:
    """Return the flags of the suspicious tools that are first for a query, by tool."""
    results = [result for evaluation in evaluations for result in evaluation.results]
    first_tools = {result.retrieved[0].id for result in results if result.retrieved}
    flags_by_tool: dict[str, list[str]] = {}
    for tool, record in loaded.tools(sorted(first_tools)).items():
        # A definition that only lacks the approval of the lock file is not suspicious.
        rows = [row for row in suspicious.get(tool, ()) if "change" not in row]
        flags = [*record.flags, *(str(row["flag"]) for row in rows)]
        if set(flags) - {CREDENTIAL}:
            flags_by_tool[tool] = flags
    return flags_by_tool


def _compared(
    gate: GateSpec, staged: Evaluation, live: LiveResults, changes: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the details about the golden queries, compared with the live release."""
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
    """Return the default strategy and index with their main measure. `threshold` is the probability
    from which a request counts as answered; None unless the search is hybrid.
    """
    mean = evaluation.interval(gate.main)
    threshold = None
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
