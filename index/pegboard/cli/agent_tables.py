"""The tables of `pegboard eval-agent`."""

from collections.abc import Mapping
from typing import Any

from pegboard.cli.output import plain
from pegboard.cli.tables import count_text, interval_text, print_table
from pegboard.evaluation.agent_results import MEASURES, AgentEvaluation
from pegboard.evaluation.expected import ExpectedRow

CALLINGS = {
    "native": "the API's own tool calling",
    "prompt": "tools in the prompt, calls as JSON in the reply",
}
HEADER = (
    "TOOLS",
    "SCORE",
    "NAME",
    "ARG NAMES",
    "VALUES",
    "PRECISION",
    "UNKNOWN",
    "MALFORMED",
    "NO CALL",
    "NO REPLY",
    "TOKENS",
)


def print_evaluation(evaluation: AgentEvaluation) -> None:
    """Print what was measured, what is expected, and which k to take."""
    retrieval = evaluation.retrieval
    print(
        f"{plain(evaluation.model)}, asked by {CALLINGS[evaluation.options.calling]}\n"
        f"release {retrieval.release}, {count_text(len(retrieval.results), 'query', 'queries')}, "
        f"seed {evaluation.seed}"
    )
    _print_measured(evaluation, "needed", "With M tools, all needed ones among them")
    if evaluation.retrieved:
        strategy = plain(retrieval.strategy)
        _print_measured(evaluation, "found", f"With the first k tools found by strategy {strategy}")
    _print_expected(evaluation)
    _print_chosen(evaluation)
    _print_failures(evaluation)


def _print_measured(evaluation: AgentEvaluation, given: str, title: str) -> None:
    measured = {
        (row["tools"], row["measure"]): row
        for row in evaluation.measure_rows()
        if row["given"] == given
    }
    rows = [
        _measured_cells(counts, [measured[counts["tools"], measure] for measure in MEASURES])
        for counts in evaluation.count_rows()
        if counts["given"] == given
    ]
    print(f"\n{title}:")
    print_table(HEADER, rows, "  ")


def _measured_cells(counts: Mapping[str, Any], means: list[dict[str, Any]]) -> list[str]:
    score, *parts = means
    no_call = counts["without_a_call"] + counts["unreadable"]
    estimated = "" if counts["tokens_by"] == "server" else "~"
    return [
        str(counts["tools"]),
        interval_text(score),
        *(f"{part['value']:.3f}" for part in parts),
        _number(counts["precision"], ".3f"),
        str(counts["unknown_tools"]),
        str(counts["malformed"]),
        str(no_call),
        str(sum(counts["unanswered"].values())),
        _number(counts["prompt_tokens"], ".0f", estimated),
    ]


def _print_expected(evaluation: AgentEvaluation) -> None:
    retrieval = evaluation.retrieval
    print(
        f"\nExpected with the first k tools found by strategy {plain(retrieval.strategy)} in index "
        f"{plain(retrieval.index)}: the agent's score with k tools x {evaluation.kind}@k"
    )
    header = ["AMONG", "K", "AGENT", evaluation.kind.upper(), "EXPECTED", "TOKENS"]
    if any(row.measured for row in evaluation.expected):
        header += ["MEASURED", "ABOVE THE PRODUCT BY"]
    rows = [_expected_cells(row, evaluation) for row in evaluation.expected]
    print_table(header, [[*row, *[""] * (len(header) - len(row))] for row in rows], "  ")
    if any(row.interpolated for row in evaluation.expected):
        print("  ~ between two numbers of tools that were tried")


def _expected_cells(row: ExpectedRow, evaluation: AgentEvaluation) -> list[str]:
    cells = [str(row.tools), str(row.k)]
    if row.agent is None:
        sizes = sorted({scored.trial.size for scored in evaluation.needed})
        reason = f"the agent was tried with {sizes[0]} to {sizes[-1]} tools only"
        return [*cells, "-", f"{row.retrieval:.3f}", reason]
    return [
        *cells,
        f"{'~' if row.interpolated else ''}{row.agent:.3f}",
        f"{row.retrieval:.3f}",
        interval_text({"value": row.expected, "low": row.low, "high": row.high}),
        _number(row.tokens, ".0f"),
        *(interval_text(one.to_dict()) for one in (row.measured, row.gap) if one),
    ]


def _print_chosen(evaluation: AgentEvaluation) -> None:
    chosen = evaluation.chosen
    if chosen is None:
        print("\nNo k can be chosen: none was tried, or none is within --max-tokens.")
        return
    row, best = chosen.row, chosen.best
    bound = f" of those with at most {chosen.max_tokens} tokens" if chosen.max_tokens else ""
    tokens = "" if row.tokens is None else f", {row.tokens:.0f} tokens a prompt"
    expected = interval_text({"value": row.expected, "low": row.low, "high": row.high})
    choice = f"\nTake k = {row.k}: {expected} expected{tokens}."
    if row.k == best.k:
        print(f"{choice} No k{bound} is expected to do better.")
    else:
        print(
            f"{choice} The best{bound} is k = {best.k} with {best.expected:.3f}, which is not "
            f"significantly more (by {interval_text(chosen.below.to_dict())})."
        )


def _print_failures(evaluation: AgentEvaluation) -> None:
    trials = (*evaluation.needed, *evaluation.retrieved)
    failed = [scored.failure for scored in trials if scored.failure]
    if failed:
        print(
            f"\n{len(failed)} requests were not answered and count as 0; the next run asks them "
            f"again:"
        )
        for kind, message in sorted(evaluation.failures.items()):
            print(f"  {failed.count(kind)} x {kind}: {plain(message)}")
    if cut_off := sum(row["cut_off"] for row in evaluation.count_rows()):
        print(
            f"\n{cut_off} replies were cut off after {evaluation.options.max_tokens} tokens. Allow "
            f"more: --reply-tokens"
        )
    if evaluation.spent_usd:
        print(f"\nThis run spent {evaluation.spent_usd:.4f} USD.")


def _number(value: float | None, form: str, suffix: str = "") -> str:
    return "-" if value is None else f"{value:{form}}{suffix}"
