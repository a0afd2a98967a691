"""The step between staging and publishing: the golden queries are asked of the staged release, and
it is decided whether it goes live.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pegboard.errors import PegboardError
from pegboard.evaluation.golden import GoldenQuery
from pegboard.store.releases import Pin, Release, ReleaseStore
from tasks import progress
from tasks.gate.asked import Gate, read_gate
from tasks.gate.choice import best_of, candidates, default_of, system_of, threshold_of
from tasks.gate.details import CURVE, curve_of, group_rows, won_values, worst_of, write_details
from tasks.gate.gated import Gated
from tasks.gate.lost import Lost, broken, changes_between, lost_and_won, with_changes
from tasks.gate.measured import Measured, Measurer, System
from tasks.gate.verdict import Live, Verdict, verdict_on
from tasks.lake.files import Lake
from tasks.manifest import staged_release
from tasks.plan import Plan
from tasks.settings.configuration import Configuration
from tasks.snapshot import Snapshot
from tasks.wanted import Wanted

WHOLE_DEPTH = 100
"""Tools that are asked for where a measure looks at all that was found."""


def gate_release(
    configuration: Configuration,
    plan: Plan,
    snapshots: list[Snapshot],
    wanted: Wanted,
    pins: dict[str, Pin],
    calibrations: dict[str, Any] | None = None,
) -> Gated | None:
    """What the gate says of what was staged; see `decide`."""
    staged = staged_release(configuration, plan, snapshots, wanted, pins, calibrations or {})
    return decide(configuration, plan, staged)


def decide(configuration: Configuration, plan: Plan, staged: Release) -> Gated | None:
    """What the gate of the configuration says of a staged release, as against the one that the plan
    saw live; None without a gate.

    Raises ConfigurationError for a gate that cannot be read, PublishError for a release that no
    strategy can be asked of."""
    asked = read_gate(configuration)
    if asked is None:
        return None
    judging = _Judging(configuration, asked, plan, staged)
    found = judging.measure()
    lake = Lake(configuration.uri)
    values = _values(judging, found)
    path, at = write_details(lake, staged.id, values)
    small = ("passed", "golden", "queries", "rules", "canaries", "chosen", "live")
    default = default_of(found.chosen.system, configuration) if asked.choose is not None else {}
    return Gated(
        found.passed, {**{name: values[name] for name in small}, "at": at, "details": path}, default
    )


@dataclass(frozen=True, slots=True)
class _Found:
    """What was measured and judged."""

    measured: Sequence[Measured]
    unable: Sequence[str]
    chosen: Measured
    live: Live
    live_path: str | None
    canaries: Measured | None
    broken: Sequence[Lost]
    verdicts: Sequence[Verdict]

    @property
    def passed(self) -> bool:
        return not self.broken and all(one.passed is not False for one in self.verdicts)


class _Judging:
    """One gate at work: what it asks, of which releases."""

    def __init__(
        self, configuration: Configuration, asked: Gate, plan: Plan, staged: Release
    ) -> None:
        self.asked, self.plan, self.staged = asked, plan, staged
        self.store = ReleaseStore(configuration.uri)
        self.live = self.store.get(plan.live) if plan.live else None
        self.systems, self.unable = candidates(configuration, asked, staged)
        recorded = next((one for one in self.store.all() if one.id == staged.id), None)
        self._preferred = [*_system_if_known(recorded), *_system_if_known(self.live)]
        depths = [CURVE, asked.canary_k, *(one.k or WHOLE_DEPTH for one in asked.measures)]
        self.measurer = Measurer(
            configuration, max(depths), lambda count: progress.advance("gate", count)
        )

    def measure(self) -> _Found:
        """Ask the staged release in every configuration, and the live one in its own."""
        queries, rounds = self.asked.queries, 1 if self.live is None else 2
        asked = len(queries) * (len(self.systems) + rounds - 1) + len(self.asked.canaries) * rounds
        progress.start("gate", asked)
        measured = [self._staged(system, queries) for system in self.systems]
        chosen = best_of(measured, self.asked.choose, self._preferred)
        live, path = self._live(queries)
        canaries, before = None, None
        if self.asked.canaries:
            canaries = self._staged(chosen.system, self.asked.canaries)
            before = self._live(self.asked.canaries)[0].evaluation
        return _Found(
            measured,
            self.unable,
            chosen,
            live,
            path,
            canaries,
            broken(canaries.evaluation if canaries else None, before, self.asked.canary_k),
            [verdict_on(rule, chosen.evaluation, live) for rule in self.asked.rules],
        )

    def _staged(self, system: System, queries: Sequence[GoldenQuery]) -> Measured:
        return self.measurer.measure(self.staged, system, queries, self.asked.measures)

    def _live(self, queries: Sequence[GoldenQuery]) -> tuple[Live, str | None]:
        """What the live release found by its own strategy, and where in the lake that stands. That
        it cannot be asked is no reason to stop.
        """
        if self.live is None:
            return Live(), None
        try:
            found = self.measurer.measure(
                self.live, system_of(self.live), queries, self.asked.measures
            )
        except PegboardError as error:
            return Live(self.live.id, None, str(error)), None
        return Live(self.live.id, found.evaluation), found.path


def _system_if_known(release: Release | None) -> list[System]:
    try:
        return [system_of(release)] if release else []
    except PegboardError:
        return []


def _values(judging: _Judging, found: _Found) -> dict[str, Any]:
    """The details of a gate as JSON values, but for when and where they are stored."""
    asked, ours, theirs = judging.asked, found.chosen.evaluation, found.live.evaluation
    lost, won = lost_and_won(ours, found.live, asked.k)
    looked_into = bool(lost or found.broken or not found.passed)
    changes, diff = changes_between(
        judging.store, judging.live, judging.staged, judging.plan, looked_into=looked_into
    )
    now = judging.measurer.judged(judging.staged).loaded
    before = judging.measurer.judged(judging.live).loaded if judging.live else None
    marked, fields = with_changes([*lost, *found.broken], changes, diff, before, now)
    main = ours.interval(asked.main)
    paths = [
        *(one.path for one in found.measured),
        found.live_path,
        found.canaries.path if found.canaries else None,
    ]
    return {
        "release": judging.staged.id,
        "passed": found.passed,
        "golden": asked.digest,
        "queries": len(asked.queries),
        "rules": [one.to_dict() for one in found.verdicts],
        "canaries": {"asked": len(asked.canaries), "lost": len(found.broken)},
        "chosen": {
            "index": ours.index,
            "strategy": ours.strategy,
            "measure": str(asked.main),
            **{name: value for name, value in main.to_dict().items() if name != "n"},
            "threshold": threshold_of(found.chosen.system, judging.staged),
        },
        "live": found.live.release,
        "live_trouble": found.live.trouble,
        "live_measures": theirs.rows() if theirs is not None else [],
        "not_measured": list(found.unable),
        "k": asked.k,
        "canary_k": asked.canary_k,
        "measures": [row for one in found.measured for row in one.evaluation.rows()],
        "groups": group_rows(ours, theirs, "kind") + group_rows(ours, theirs, "catalog"),
        "curve": curve_of(ours, now),
        "unknown": list(ours.unknown),
        "lost": [one.to_dict() for one in marked[: len(lost)]],
        "won": won_values(won),
        "broken": [one.to_dict() for one in marked[len(lost) :]],
        "worst": worst_of(ours, asked.main),
        "changes": changes.to_dict(),
        "changed": fields,
        "answers": [path for path in paths if path is not None],
    }
