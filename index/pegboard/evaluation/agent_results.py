"""What an evaluation with an agent came to: rows for people, JSON and files."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pegboard.errors import ConfigurationError
from pegboard.evaluation.agent_asking import Manner
from pegboard.evaluation.agent_runs import Scored
from pegboard.evaluation.agent_tools import LeftOut
from pegboard.evaluation.expected import AgentCurve, Chosen, ExpectedRow
from pegboard.evaluation.intervals import interval
from pegboard.evaluation.results import Evaluation

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MEASURES = {
    "CallScore": "weighted",
    "ToolName": "name",
    "ArgumentNames": "arguments",
    "ArgumentValues": "values",
}
"""For each measure of tool calls the field of a query's score."""


@dataclass(frozen=True, slots=True)
class AgentEvaluation:
    """What was measured of an agent over the queries of `retrieval`.

    Attributes:
        scored: the trials with sets of tools of several sizes, in the order of the queries.
        found: the trials with the tools that were found.
        expected: the model, for all tools of the release and then for samples of it.
        spent_usd: by this run; None if nobody knows.
        failures: what the first call said that failed in each way.
    """

    model: str
    manner: Manner
    retrieval: Evaluation
    kind: str
    seed: int
    left_out: LeftOut
    dropped: tuple[str, ...]
    scored: tuple[Scored, ...]
    found: tuple[Scored, ...]
    expected: tuple[ExpectedRow, ...]
    chosen: Chosen | None
    spent_usd: float | None
    failures: Mapping[str, str]

    def measure_rows(self) -> list[dict[str, Any]]:
        """One row for each number of tools and measure: given (`needed` or `found`), tools,
        measure, value, low, high, n.
        """
        return [
            {
                "model": self.model,
                "given": given,
                "tools": size,
                "measure": measure,
                **interval(values).to_dict(),
            }
            for given, scored in (("needed", self.scored), ("found", self.found))
            for size, some in sized(scored).items()
            for measure, field in MEASURES.items()
            for values in [[getattr(one.score, field) for one in some]]
        ]

    def count_rows(self) -> list[dict[str, Any]]:
        """One row for each number of tools: what was asked, answered, called beside the point, and
        what it cost.
        """
        return [
            {"given": given, "tools": size, **counts(some)}
            for given, scored in (("needed", self.scored), ("found", self.found))
            for size, some in sized(scored).items()
        ]

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "model": self.model,
            "calling": self.manner.calling,
            "parameters": asdict(self.manner),
            "release": self.retrieval.release,
            "strategy": self.retrieval.strategy,
            "index": self.retrieval.index,
            "encoder": self.retrieval.encoder,
            "retrieval": self.kind,
            "seed": self.seed,
            "queries": len(self.retrieval.results),
            "left_out": asdict(self.left_out),
            "dropped": list(self.dropped),
            "agent": self.measure_rows(),
            "calls": self.count_rows(),
            "expected": [row.to_dict() for row in self.expected],
            "chosen": self.chosen.to_dict() if self.chosen else None,
            "spent_usd": self.spent_usd,
            "failures": dict(self.failures),
        }

    def write(self, folder: str | Path) -> None:
        """Write `results.json` and, a line for each query and set of tools, `scores.jsonl`. Raises
        ConfigurationError.
        """
        lines = [
            json.dumps({"given": given, **_line(one)}, ensure_ascii=False) + "\n"
            for given, scored in (("needed", self.scored), ("found", self.found))
            for one in scored
        ]
        texts = {
            "results.json": json.dumps(self.to_dict(), ensure_ascii=False, indent=2) + "\n",
            "scores.jsonl": "".join(lines),
        }
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
            for name, text in texts.items():
                (Path(folder) / name).write_text(text, "utf-8", errors="backslashreplace")
        except OSError as error:
            raise ConfigurationError(
                f"{folder} cannot be written: {error.strerror}. Choose a folder that can be."
            ) from error


def sized(scored: Sequence[Scored]) -> dict[int, list[Scored]]:
    """The trials by their number of tools, each in the order of the queries."""
    sizes: dict[int, list[Scored]] = {}
    for one in scored:
        sizes.setdefault(one.trial.size, []).append(one)
    return dict(sorted(sizes.items()))


def by_size(scored: Sequence[Scored]) -> "dict[int, NDArray[np.float64]]":
    """For each number of tools the weighted score of each query, of shape (queries,)."""
    import numpy as np

    return {
        size: np.array([one.score.weighted for one in some]) for size, some in sized(scored).items()
    }


def curve_of(scored: Sequence[Scored]) -> AgentCurve:
    """The agent's accuracy and the tokens of its prompts, by the number of its tools.

    Tokens are means over the queries that got just that number, and not more because they need
    more."""
    means = {
        size: _mean(
            [one.reply.prompt_tokens for one in some if one.reply and len(one.trial.tools) == size]
        )
        for size, some in sized(scored).items()
    }
    return AgentCurve(
        by_size(scored), {size: mean for size, mean in means.items() if mean is not None}
    )


def counts(scored: Sequence[Scored]) -> dict[str, Any]:
    """What became of trials: totals, but for `precision` and for tokens, seconds and cost, which
    are means of an answered one.

    `precision` is the share of the calls made that answer a right one. `tokens_by` says who counted
    the tokens of the prompts."""
    replies = [one.reply for one in scored if one.reply is not None]
    made, matched = (
        sum(getattr(one.score, field) for one in scored) for field in ("made", "matched")
    )
    costs = [one.cost_usd for one in replies if one.cost_usd is not None]
    return {
        "asked": sum(one.trial.key is not None for one in scored),
        "answered": len(replies),
        "unanswered": dict(Counter(one.why for one in scored if one.why)),
        "without_a_call": sum(one.reply is not None and one.calls == 0 for one in scored),
        "unreadable": sum(one.calls is None for one in scored),
        "cut_off": sum(one.finish_reason == "length" for one in replies),
        "calls": made,
        "precision": matched / made if made else None,
        "surplus": made - matched,
        "surplus_arguments": sum(one.score.surplus_arguments for one in scored),
        "unknown_tools": sum(one.score.unknown for one in scored),
        "malformed": sum(one.score.malformed for one in scored),
        "prompt_tokens": _mean([one.prompt_tokens for one in replies]),
        "completion_tokens": _mean([one.completion_tokens for one in replies]),
        "tokens_by": _counted_by([one.counted for one in replies]),
        "seconds": _mean([one.seconds for one in replies]),
        "cost_usd": _mean(costs) if len(costs) == len(replies) else None,
    }


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _counted_by(counted: Sequence[bool]) -> str | None:
    if not counted:
        return None
    return "server" if all(counted) else "mixed" if any(counted) else "estimate"


def _line(one: Scored) -> dict[str, Any]:
    trial = one.trial
    return {
        "query": trial.case.query.id,
        "tools": trial.size,
        "key": trial.key,
        "unanswered": one.why,
        "calls": one.calls,
        **one.score.to_dict(),
    }
