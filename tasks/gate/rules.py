"""The rules of a gate: how they are written, and whether they hold.

Recall@5 >= 0.9
Recall@5 of catalog github >= 0.8
Recall@5 no worse than live by more than 0.01 with 95 % confidence

Any measure may stand for Recall@5. `of catalog NAME` and `of kind NAME` restrict a rule to the
queries that need a tool of that catalog, or are of that kind; quote a name with blanks. `live` is
the release that the channel names when the build begins."""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from pegboard.errors import ConfigurationError
from pegboard.evaluation.comparison import Evaluation, GroupBy
from pegboard.evaluation.intervals import interval, queries_needed
from pegboard.evaluation.measures import Measure, parse_measure
from pegboard.formatting import count_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FORMS = (
    "Recall@5 >= 0.9",
    "Recall@5 of catalog github >= 0.8",
    "Recall@5 of kind parallel >= 0.7",
    "Recall@5 no worse than live",
    "Recall@5 no worse than live by more than 0.01",
    "Recall@5 of kind parallel no worse than live by more than 0.02 with 95 % confidence",
)
"""Examples of rules, for error messages."""
NUMBER = r"\d+(?:\.\d+)?|\.\d+"
RULE = re.compile(
    rf"""\s*(?P<measure>[A-Za-z][A-Za-z0-9]*(?:\s*@\s*\d+)?)
    (?:\s+of\s+(?P<by>catalog|kind)\s+(?P<name>"[^"]+"|'[^']+'|\S+))?
    (?:\s*>=\s*(?P<floor>{NUMBER})
      |\s+no\s+worse\s+than\s+live
       (?:\s+by\s+more\s+than\s+(?P<margin>{NUMBER}))?
       (?:\s+with\s+(?P<confidence>{NUMBER})\s*%\s+confidence)?
    )\s*""",
    re.VERBOSE | re.IGNORECASE,
)
TOLERANCE = 1e-9
"""Tolerance of comparisons: a mean of .9 may be .8999999999999999 as a floating point sum."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A floor for a measure, or a comparison with the live release.

    Attributes:
        text: the rule as it was written.
        by, name: the catalog or the kind of queries; all queries if None.
        floor: the least mean; None for a comparison with live.
        margin: by how much the mean may be below that of live.
        confidence: between .5 and 1: how sure it has to be that the mean is not further below, by a
            paired bootstrap over the queries; None compares the means as they are.
    """

    text: str
    measure: Measure
    by: GroupBy | None = None
    name: str = ""
    floor: float | None = None
    margin: float = 0.0
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class LiveResults:
    """What the live release retrieved.

    Attributes:
        release: its id; None if no release is live.
        evaluation: None if none is live, or if it cannot be searched.
        trouble: why it cannot be searched.
    """

    release: str | None = None
    evaluation: Evaluation | None = None
    trouble: str | None = None


def parse_rule(text: str) -> Rule:
    """Parse a rule. Raises ConfigurationError with every problem of it."""
    match = RULE.fullmatch(text)
    if match is None:
        raise ConfigurationError(f"Invalid rule '{text}'")
    measure = parse_measure(match["measure"])
    floor, margin, confidence = map(_number, (match["floor"], match["margin"], match["confidence"]))
    problems: list[str] = []
    if floor is not None and floor > 1:
        problems.append(f"expected a floor of at most 1 (got {match['floor']})")
    if margin is not None and margin >= 1:
        problems.append(f"expected a margin below 1 (got {match['margin']})")
    if confidence is not None and not 50 < confidence < 100:
        problems.append(f"expected a confidence between 50 and 100 % (got {match['confidence']} %)")
    if problems:
        raise ConfigurationError(f"Invalid rule '{text}': {'; '.join(problems)}")
    return Rule(
        text=" ".join(text.split()),
        measure=measure,
        by=cast("GroupBy", match["by"].lower()) if match["by"] else None,
        name=(match["name"] or "").strip("\"'"),
        floor=floor,
        margin=margin or 0.0,
        confidence=confidence / 100 if confidence is not None else None,
    )


def _number(text: str | None) -> float | None:
    return None if text is None else float(text)


def judge_rule(rule: Rule, staged: Evaluation, live: LiveResults) -> dict[str, Any]:
    """Return whether a rule holds for a staged release, and why, as it stands in a manifest.

    Args:
        live: of the same queries.

    Returns:
        `rule`, its text; `passed`, None where there is nothing to compare with; `reason`.
    """
    places = _places(rule, staged, live)
    if not places:
        needs = "needs a tool" if rule.by == "catalog" else "is"
        reason = f"no golden query {needs} of {rule.by} {rule.name}, so this cannot be measured"
        return _result(rule, False, reason)
    values = staged.values[rule.measure][places]
    if rule.floor is not None:
        return _judge_floor(rule, rule.floor, values)
    if live.release is None:
        return _result(rule, None, "no release is live to compare with")
    if live.evaluation is None:
        reason = f"the live release {live.release} cannot be searched: {live.trouble}"
        return _result(rule, False, reason)
    live_values = live.evaluation.values[rule.measure][places]
    return _judge_margin(rule, values, live_values, live.release)


def _result(rule: Rule, passed: bool | None, reason: str) -> dict[str, Any]:
    return {"rule": rule.text, "passed": passed, "reason": reason}


def _places(rule: Rule, staged: Evaluation, live: LiveResults) -> list[int]:
    """The places of the queries that a rule is about."""
    if rule.by is None:
        return list(range(len(staged.results)))
    return staged.groups(rule.by, live.evaluation).get(rule.name, [])


def _judge_floor(rule: Rule, floor: float, values: "NDArray[np.float64]") -> dict[str, Any]:
    mean = interval(values)
    missing = floor - mean.value
    reason = f"it is {mean} over {count_text(mean.n, 'query', 'queries')}"
    if missing <= TOLERANCE:
        return _result(rule, True, reason)
    return _result(rule, False, f"{reason}, {_gap(missing)} too low")


def _judge_margin(
    rule: Rule, staged: "NDArray[np.float64]", live: "NDArray[np.float64]", release: str
) -> dict[str, Any]:
    gaps = staged - live
    loss = -float(gaps.mean())
    direction = "worse" if loss > TOLERANCE else "better" if loss < -TOLERANCE else "apart"
    reason = (
        f"it is {float(staged.mean()):.3f} over {count_text(len(staged), 'query', 'queries')}, and "
        f"{float(live.mean()):.3f} in live {release}: {_gap(abs(loss))} {direction}"
    )
    if rule.confidence is not None:
        # One-sided: what lies below the lower end of a two-sided interval is half of what lies
        # outside of it.
        loss = -interval(gaps, confidence=2 * rule.confidence - 1).low
        bound = f"at most {_gap(loss)} worse" if loss > TOLERANCE else "no worse"
        reason += f"; with {100 * rule.confidence:g} % confidence {bound}"
    if loss > TOLERANCE:
        reason += f"; {rule.margin:g} is allowed"
    passed = loss <= rule.margin + TOLERANCE
    if not passed and rule.confidence is not None and gaps.size > 1:
        needed = queries_needed(float(gaps.std(ddof=1)), rule.margin, rule.confidence)
        reason += f". {_too_few(needed, gaps.size)}" if needed is None or needed > gaps.size else ""
    return _result(rule, passed, reason)


def _too_few(needed: int | None, queries: int) -> str:
    if needed is None:
        return "Without a margin no number of queries shows that nothing got worse"
    return (
        f"Differences like these need about {needed:,} queries to show this margin (here "
        f"{queries:,}), so an improvement can fail too"
    )


def _gap(value: float) -> str:
    return f"{value:.3f}" if value >= 0.0005 or value == 0 else f"{value:.1g}"
