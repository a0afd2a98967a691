"""Whether the rules of a gate hold for what was measured, and by how much they do not."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pegboard.evaluation.intervals import interval
from pegboard.evaluation.results import Evaluation, QueryResult
from tasks.gate.rules import Group, Rule

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SLACK = 1e-9
"""A mean of .9 may be .8999999999999999 as a sum of floating point numbers."""


@dataclass(frozen=True, slots=True)
class Live:
    """The release that is live: what it found; or why that is not known.

    Attributes:
        release: its id, None if none is live.
        trouble: why it could not be asked.
    """

    release: str | None = None
    evaluation: Evaluation | None = None
    trouble: str | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of a rule: whether it holds, None where there is nothing to judge; and why, in
    words.
    """

    rule: str
    passed: bool | None
    says: str

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)


def places_by(
    by: Group, ours: Sequence[QueryResult], theirs: Sequence[QueryResult] = ()
) -> dict[str, list[int]]:
    """The places of the queries of each kind, or of each catalog that has a tool they need.

    A tool that only the other release has belongs to its catalog, too, and so does an id that no
    tool has: a catalog that lost its tools does not look better for it.
    """
    groups: dict[str, list[int]] = {}
    others = [*theirs, *[None] * (len(ours) - len(theirs))]
    for at, (answer, other) in enumerate(zip(ours, others, strict=True)):
        names = {answer.query.kind}
        if by == "catalog":
            needed = [answer.needed, *([other.needed] if other else [])]
            ids = {tool for one in needed for several in one.tools.values() for tool in several}
            ids |= {name for name in answer.needed.unknown if name.count("/") >= 2}
            names = {one.partition("/")[0] for one in ids}
        for name in sorted(names):
            groups.setdefault(name, []).append(at)
    return dict(sorted(groups.items()))


def verdict_on(rule: Rule, ours: Evaluation, live: Live) -> Verdict:
    """Whether a rule holds for what a staged release found, as against what the live one found to
    the same queries.
    """
    places = list(range(len(ours.results)))
    if rule.by is not None:
        theirs = live.evaluation.results if live.evaluation is not None else ()
        places = places_by(rule.by, ours.results, theirs).get(rule.name, [])
    if not places:
        none = "needs a tool" if rule.by == "catalog" else "is"
        return Verdict(
            rule.text,
            False,
            f"no golden query {none} of {rule.by} {rule.name}, so this cannot be measured",
        )
    values = ours.values[rule.measure][places]
    return _floor(rule, values) if rule.floor is not None else _against(rule, values, live, places)


def _floor(rule: Rule, values: "NDArray[np.float64]") -> Verdict:
    found = interval(values)
    missing = (rule.floor or 0.0) - found.value
    says = f"it is {found} over {_queries(found.n)}"
    if missing <= SLACK:
        return Verdict(rule.text, True, says)
    return Verdict(rule.text, False, f"{says}, {_points(missing)} too low")


def _against(rule: Rule, ours: "NDArray[np.float64]", live: Live, places: list[int]) -> Verdict:
    if live.release is None:
        return Verdict(rule.text, None, "not judged: no release is live")
    if live.evaluation is None:
        return Verdict(
            rule.text,
            False,
            f"release {live.release}, which is live, could not be asked: {live.trouble}",
        )
    theirs = live.evaluation.values[rule.measure][places]
    gaps = ours - theirs
    worse = -float(gaps.mean())
    says = (
        f"it is {float(ours.mean()):.3f} over {_queries(len(places))}, and "
        f"{float(theirs.mean()):.3f} in live {live.release}: "
        f"{_points(abs(worse))} "
        f"{'worse' if worse > SLACK else 'better' if worse < -SLACK else 'apart'}"
    )
    if rule.confidence is not None:
        # One-sided: what lies below the lower end of a two-sided interval is half of what lies
        # outside of it.
        worse = -interval(gaps, confidence=2 * rule.confidence - 1).low
        bound = f"at most {_points(worse)} worse" if worse > SLACK else "no worse"
        says += f"; with {100 * rule.confidence:g} % confidence {bound}"
    allowed = f"; {rule.margin:g} is allowed" if worse > SLACK else ""
    return Verdict(rule.text, worse <= rule.margin + SLACK, says + allowed)


def _points(value: float) -> str:
    return f"{value:.3f}" if value >= 0.0005 or value == 0 else f"{value:.1g}"


def _queries(count: int) -> str:
    return f"{count} quer{'y' if count == 1 else 'ies'}"
