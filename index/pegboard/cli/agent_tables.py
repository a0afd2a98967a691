"""What `pegboard eval-agent` prints for people."""

from collections.abc import Mapping
from typing import Any

from pegboard.cli.output import plain
from pegboard.evaluation.agent_results import MEASURES, AgentEvaluation
from pegboard.evaluation.expected import ExpectedRow

WAYS = {
    "native": "the API's own tool calling",
    "prompt": "tools in the prompt, calls as JSON in the reply",
}


def print_evaluation(found: AgentEvaluation) -> None:
    """Print what was measured, what is expected, and which k to take."""
    queries = len(found.retrieval.results)
    print(
        f"{plain(found.model)}, asked by {WAYS[found.manner.calling]}\n"
        f"release {found.retrieval.release}, {queries} {'query' if queries == 1 else 'queries'}, "
        f"seed {found.seed}"
    )
    _print_measured(found, "needed", "With M tools, all that are needed among them")
    if found.found:
        _print_measured(
            found,
            "found",
            f"With the first k tools found by strategy {plain(found.retrieval.strategy)}",
        )
    _print_expected(found)
    _print_chosen(found)
    _print_trouble(found)


def _print_measured(found: AgentEvaluation, given: str, title: str) -> None:
    rows = [row for row in found.measure_rows() if row["given"] == given]
    counts = [row for row in found.count_rows() if row["given"] == given]
    print(
        f"\n{title}:\n  TOOLS  SCORE                   NAME   ARG NAMES  VALUES  PRECISION  "
        f"UNKNOWN  MALFORMED  NO CALL  NO REPLY  TOKENS"
    )
    for count in counts:
        by_measure = {row["measure"]: row for row in rows if row["tools"] == count["tools"]}
        score, name, names, values = (by_measure[measure] for measure in MEASURES)
        precision = "    -" if count["precision"] is None else f"{count['precision']:.3f}"
        tokens = (
            "-"
            if count["prompt_tokens"] is None
            else f"{count['prompt_tokens']:.0f}{_estimated(count)}"
        )
        print(
            f"  {count['tools']:>5}  {_interval(score)}  {name['value']:.3f}      "
            f"{names['value']:.3f}   {values['value']:.3f}      "
            f"{precision}  {count['unknown_tools']:>7}  {count['malformed']:>9}  "
            f"{count['without_a_call'] + count['unreadable']:>7}  "
            f"{sum(count['unanswered'].values()):>8}  {tokens:>6}"
        )


def _print_expected(found: AgentEvaluation) -> None:
    measured = any(row.measured for row in found.expected)
    print(
        f"\nExpected with the first k tools found by strategy {plain(found.retrieval.strategy)} "
        f"in index {plain(found.retrieval.index)}: "
        f"the agent's score with k tools x {found.kind}@k\n"
        f"  AMONG    K   AGENT   {found.kind.upper():<8}  EXPECTED                TOKENS"
        + ("  MEASURED              ABOVE THE PRODUCT BY" if measured else "")
    )
    for row in found.expected:
        print(_expected(row, found))
    if any(row.interpolated for row in found.expected):
        print("  ~ between two numbers of tools that were tried")


def _expected(row: ExpectedRow, found: AgentEvaluation) -> str:
    head = f"  {row.tools:>5}  {row.k:>3}"
    if row.expected is None or row.agent is None:
        tried = sorted({one.trial.size for one in found.scored})
        return (
            f"{head}       -  {row.retrieval:.3f}     the agent was tried with {tried[0]} to "
            f"{tried[-1]} tools only"
        )
    mark = "~" if row.interpolated else " "
    tokens = "-" if row.tokens is None else f"{row.tokens:.0f}"
    shown = _interval({"value": row.expected, "low": row.low, "high": row.high})
    measured = "".join(f"  {_interval(one.to_dict())}" for one in (row.measured, row.gap) if one)
    return f"{head}  {mark}{row.agent:.3f}   {row.retrieval:.3f}     {shown}  {tokens:>6}{measured}"


def _print_chosen(found: AgentEvaluation) -> None:
    chosen = found.chosen
    if chosen is None:
        print("\nNo k can be named: none was tried, or none is within --max-tokens.")
        return
    row, best = chosen.row, chosen.best
    bound = f" of those with at most {chosen.max_tokens} tokens" if chosen.max_tokens else ""
    tokens = "" if row.tokens is None else f", {row.tokens:.0f} tokens a prompt"
    said = (
        f"\nTake k = {row.k}: {row.expected:.3f} [{row.low:.3f}, {row.high:.3f}] expected{tokens}."
    )
    if row.k == best.k:
        print(f"{said} No k{bound} is expected to do better.")
    else:
        print(
            f"{said} The best{bound} is k = {best.k} with {best.expected:.3f}, which is not "
            f"significantly more "
            f"(by {chosen.below.value:.3f} [{chosen.below.low:.3f}, {chosen.below.high:.3f}])."
        )


def _print_trouble(found: AgentEvaluation) -> None:
    unanswered = [one.why for one in (*found.scored, *found.found) if one.why]
    if unanswered:
        print(
            f"\n{len(unanswered)} questions were not answered and count as 0; the next run asks "
            f"them again:"
        )
        for kind, said in sorted(found.failures.items()):
            print(f"  {unanswered.count(kind)} x {kind}: {plain(said)}")
    if cut_off := sum(row["cut_off"] for row in found.count_rows()):
        print(
            f"\n{cut_off} replies were cut off after {found.manner.max_tokens} tokens; "
            f"--reply-tokens takes more."
        )
    if found.spent_usd:
        print(f"\nThis run spent {found.spent_usd:.4f} USD.")


def _interval(row: Mapping[str, Any]) -> str:
    return f"{row['value']:z.3f} [{row['low']:z.3f}, {row['high']:z.3f}]"


def _estimated(count: Mapping[str, Any]) -> str:
    return "" if count["tokens_by"] == "server" else "~"
