"""The results of an evaluation with an agent: rows for people, JSON and files."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pegboard.errors import ConfigurationError
from pegboard.evaluation.agent_requests import CallOptions
from pegboard.evaluation.agent_runs import ScoredTrial
from pegboard.evaluation.agent_tools import LeftOut
from pegboard.evaluation.comparison import Evaluation
from pegboard.evaluation.expected import AgentCurve, Chosen, ExpectedRow
from pegboard.evaluation.intervals import interval

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
        needed: the trials with sets of tools of several sizes, in the order of the queries.
        retrieved: the trials with retrieved tools.
        expected: the model, for all tools of the release and then for samples of it.
        spent_usd: by this run; None if the price is unknown.
        failures: for each kind of failure the message of the first.
    """

    model: str
    options: CallOptions
    retrieval: Evaluation
    kind: str
    seed: int
    left_out: LeftOut
    dropped: tuple[str, ...]
    needed: tuple[ScoredTrial, ...]
    retrieved: tuple[ScoredTrial, ...]
    expected: tuple[ExpectedRow, ...]
    chosen: Chosen | None
    spent_usd: float | None
    failures: Mapping[str, str]

    def measure_rows(self) -> list[dict[str, Any]]:
        """One row for each number of tools and measure.

        Returns: rows {model, given (`needed` or `found`), tools, measure, value, low, high, n}.
        """
        return [
            {
                "model": self.model,
                **labels,
                "measure": measure,
                **interval([getattr(trial.score, field) for trial in trials]).to_dict(),
            }
            for labels, trials in self._groups()
            for measure, field in MEASURES.items()
        ]

    def count_rows(self) -> list[dict[str, Any]]:
        """One row for each number of tools: requests, replies, stray calls, tokens and cost."""
        return [{**labels, **counts(trials)} for labels, trials in self._groups()]

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "model": self.model,
            "calling": self.options.calling,
            "parameters": asdict(self.options),
            "release": self.retrieval.release,
            "strategy": self.retrieval.strategy,
            "index": self.retrieval.index,
            "encoder": self.retrieval.encoder,
            "retrieval": self.kind,
            "overhead": self.retrieval.overhead.to_dict(),
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
        """Write `results.json`, and `scores.jsonl` with a line for each query and set of tools.

        Raises ConfigurationError if the folder cannot be written.
        """
        lines = [
            json.dumps({"given": given, **_line(trial)}, ensure_ascii=False) + "\n"
            for given, trials in self._given().items()
            for trial in trials
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
                f"{folder} cannot be written: {error.strerror}. Choose another folder."
            ) from error

    def _given(self) -> dict[str, tuple[ScoredTrial, ...]]:
        return {"needed": self.needed, "found": self.retrieved}

    def _groups(self) -> Iterator[tuple[dict[str, Any], list[ScoredTrial]]]:
        """The trials of each kind and number of tools, with their labels."""
        for given, trials in self._given().items():
            for size, own in by_size(trials).items():
                yield {"given": given, "tools": size}, own


def by_size(trials: Sequence[ScoredTrial]) -> dict[int, list[ScoredTrial]]:
    """The trials by their number of tools, each in the order of the queries."""
    sizes: dict[int, list[ScoredTrial]] = {}
    for trial in trials:
        sizes.setdefault(trial.trial.size, []).append(trial)
    return dict(sorted(sizes.items()))


def scores_by_size(trials: Sequence[ScoredTrial]) -> "dict[int, NDArray[np.float64]]":
    """For each number of tools the weighted score of each query, of shape (queries,)."""
    import numpy as np

    return {
        size: np.array([trial.score.weighted for trial in own])
        for size, own in by_size(trials).items()
    }


def curve_of(trials: Sequence[ScoredTrial]) -> AgentCurve:
    """The agent's accuracy and the tokens of its prompts, by the number of its tools.

    Tokens are means over the queries that got exactly that number, not more because they need more.
    """
    tokens = {
        size: _mean(
            [
                trial.reply.prompt_tokens
                for trial in own
                if trial.reply and len(trial.trial.tools) == size
            ]
        )
        for size, own in by_size(trials).items()
    }
    return AgentCurve(
        scores_by_size(trials), {size: mean for size, mean in tokens.items() if mean is not None}
    )


def counts(trials: Sequence[ScoredTrial]) -> dict[str, Any]:
    """What became of trials: totals; tokens, seconds and cost are means of an answered one.

    `precision` is the share of the calls made that match a right one. `tokens_by` says who counted
    the tokens of the prompts.
    """
    replies = [trial.reply for trial in trials if trial.reply is not None]
    scores = [trial.score for trial in trials]
    made, matched = sum(score.made for score in scores), sum(score.matched for score in scores)
    costs = [reply.cost_usd for reply in replies if reply.cost_usd is not None]
    return {
        "asked": sum(trial.trial.key is not None for trial in trials),
        "answered": len(replies),
        "unanswered": dict(Counter(trial.failure for trial in trials if trial.failure)),
        "without_a_call": sum(trial.reply is not None and trial.calls == 0 for trial in trials),
        "unreadable": sum(trial.calls is None for trial in trials),
        "cut_off": sum(reply.finish_reason == "length" for reply in replies),
        "calls": made,
        "precision": matched / made if made else None,
        "surplus": made - matched,
        "surplus_arguments": sum(score.surplus_arguments for score in scores),
        "unknown_tools": sum(score.unknown for score in scores),
        "malformed": sum(score.malformed for score in scores),
        "prompt_tokens": _mean([reply.prompt_tokens for reply in replies]),
        "completion_tokens": _mean([reply.completion_tokens for reply in replies]),
        "tokens_by": _counted_by([reply.counted for reply in replies]),
        "seconds": _mean([reply.seconds for reply in replies]),
        "cost_usd": _mean(costs) if len(costs) == len(replies) else None,
    }


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _counted_by(counted: Sequence[bool]) -> str | None:
    if not counted:
        return None
    return "server" if all(counted) else "mixed" if any(counted) else "estimate"


def _line(scored: ScoredTrial) -> dict[str, Any]:
    return {
        "query": scored.trial.case.query.id,
        "tools": scored.trial.size,
        "key": scored.trial.key,
        "unanswered": scored.failure,
        "calls": scored.calls,
        **scored.score.to_dict(),
    }
