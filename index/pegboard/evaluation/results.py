"""Evaluations of several systems beside each other: their measures, how far each is above the
first, and what was answered worst.
"""

from collections.abc import Sequence
from typing import Any

from pegboard.evaluation.evaluate import Evaluation
from pegboard.evaluation.intervals import holm


def results(found: Sequence[Evaluation], by: Sequence[Any] = (), worst: int = 0) -> dict[str, Any]:
    """The evaluations as JSON values; the first is the baseline of the differences."""
    return {
        "release": found[-1].release,
        "queries": len(found[-1].answers),
        "rows": [row for one in found for row in one.rows(release=one.release)],
        "differences": differences(found),
        "groups": {name: [row for one in found for row in one.group_rows(name)] for name in by},
        "worst": [worst_of(one, worst) for one in found if worst],
        "unknown": list(found[-1].unknown),
    }


def differences(found: Sequence[Evaluation]) -> list[dict[str, Any]]:
    """How far each system is above the first, for every measure; `p_holm` is corrected for the
    number of systems.
    """
    base, *others = found
    rows: list[dict[str, Any]] = []
    for measure in base.values:
        gaps = {str(at): one.against(base, measure) for at, one in enumerate(others)}
        corrected = holm({at: gap.p for at, gap in gaps.items()})
        rows += [
            {
                "strategy": one.strategy,
                "index": one.index,
                "against": system_name(base, found),
                "measure": str(measure),
            }
            | {**gaps[str(at)].to_dict(), "p_holm": corrected[str(at)]}
            for at, one in enumerate(others)
        ]
    return rows


def worst_of(one: Evaluation, count: int) -> dict[str, Any]:
    """The queries with the lowest mean of all measures, and where the tools stood that they
    need.
    """
    import numpy as np

    means: list[float] = np.mean(list(one.values.values()), axis=0).tolist()
    places = sorted(range(len(one.answers)), key=lambda at: (means[at], at))[:count]
    return {
        "strategy": one.strategy,
        "index": one.index,
        "queries": [
            {
                "query": one.answers[at].query.query,
                "ranks": one.answers[at].ranks(),
                "found": [tool.id for tool in one.answers[at].found[:5]],
            }
            for at in places
        ],
    }


def system_name(one: Evaluation, among: Sequence[Evaluation]) -> str:
    """What a system is called beside others: its strategy and index, and its release where they
    differ.
    """
    several = len({other.release for other in among}) > 1
    return f"{one.strategy} in {one.index}" + (f" of {one.release}" if several else "")
