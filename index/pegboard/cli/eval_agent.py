"""`pegboard eval-agent`: an agent's tool calls, and how many tools to give it."""

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from pegboard.cli.find import strategy_option
from pegboard.cli.output import (
    Subparsers,
    add_command,
    add_json_option,
    add_options,
    plain,
    print_json,
)
from pegboard.cli.systems import open_searcher
from pegboard.cli.tables import (
    count_text,
    interval_text,
    print_table,
    progress_lines,
)

if TYPE_CHECKING:
    from pegboard.evaluation.agent_evaluation import AgentEvaluation, AgentRun, Prepared
    from pegboard.evaluation.expected import ExpectedRow

EXAMPLES = """\
examples:
  pegboard eval-agent golden.jsonl --board ./board --model openai/gpt-4o-mini --limit 50 --dry-run
  pegboard eval-agent golden.jsonl --board ./board --model openai/gpt-4o-mini --budget-usd 2
  pegboard eval-agent golden.jsonl --board ./board --model hosted_vllm/qwen3 \\
      --api-base http://127.0.0.1:8000/v1 --tools 1,5,10,20,50 -k 1..20 --retrieved --json

Every line of GOLDEN needs the right calls: {"query": ..., "tools": ["convert"], "calls": [{"tool":
"convert", "arguments": {"amount": 30}}]}. Each query is asked once with each number of tools;
replies are kept in --out, and never paid for twice."""
MEASURED = ("TOOLS", "SCORE", "NAME", "ARG NAMES", "VALUES", "PRECISION", "UNKNOWN", "MALFORMED",
            "NO CALL", "NO REPLY", "TOKENS")  # fmt: skip
EXPECTED = ("K", "AGENT", "RECALL", "EXPECTED", "TOKENS", "MEASURED", "ABOVE THE PRODUCT BY")


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = add_command(
        subparsers,
        "eval-agent",
        _eval_agent,
        EXAMPLES,
        help="measure an agent's tool calls with M tools, and choose how many to give it",
        description="Measure an agent's tool calls with M tools against golden calls (the Toolshed "
        "Evaluation Framework), multiply with what retrieval finds at k, and choose k.",
    )
    add_options(parser, "golden", "--board", "--channel", "--release")
    _add_model_options(parser.add_argument_group("the agent"))
    _add_query_options(parser.add_argument_group("queries, tools and retrieval"))
    parser.add_argument(
        "--out",
        default="eval-agent",
        metavar="DIR",
        help="the folder for replies and results (default: eval-agent)",
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="print the number of calls and their highest cost, and exit",
    )
    add_json_option(parser, "agent, calls, expected, chosen, and how they were measured")


def _add_model_options(group: Any) -> None:
    add = group.add_argument
    add("--model", required=True, help="a LiteLLM model with tool calling: openai/gpt-4o-mini")
    add("--api-base", metavar="URL", help="where it is served, if not by its provider")
    add(
        "--api-key-env",
        metavar="VARIABLE",
        help="the environment variable with its key, if not the usual one",
    )
    add(
        "--price",
        type=_price,
        metavar="IN,OUT",
        help="USD for a million tokens of prompt and of reply, for a model without a known price",
    )
    add(
        "--reply-tokens",
        type=_count,
        default=1024,
        metavar="N",
        help="the most tokens of a reply (default: 1024)",
    )
    add("--timeout", type=float, default=60.0, metavar="SECONDS", help="of one call (default: 60)")
    add(
        "--attempts",
        type=_count,
        default=4,
        metavar="N",
        help="calls for one request if failures may pass (default: 4)",
    )
    add("--concurrency", type=_count, default=8, metavar="N", help="calls at once (default: 8)")
    add("--budget-usd", type=float, metavar="X", help="the most that this run may spend")


def _add_query_options(group: Any) -> None:
    add = group.add_argument
    add(
        "--tools",
        type=_numbers,
        default=(1, 5, 10, 20),
        metavar="M,...",
        help="how many tools it is given (default: 1,5,10,20)",
    )
    add(
        "-k",
        type=_numbers,
        default=tuple(range(1, 21)),
        metavar="K,...",
        help="how many retrieved tools it is given (default: 1..20)",
    )
    add(
        "--retrieved",
        action="store_true",
        help="also try it with retrieved tools, at each k that is in --tools",
    )
    add(
        "--margin",
        type=float,
        default=0.02,
        metavar="X",
        help="by how much the chosen k may be worse than the best (default: 0.02)",
    )
    add_options(group, "--strategy", "--index", "--llm", "--llm-api-base", "--max-fallbacks")
    add("--limit", type=_count, metavar="N", help="ask N of the queries, drawn by --seed")
    add("--seed", type=int, default=0, help="of queries and distractors (default: 0)")


def _eval_agent(options: argparse.Namespace) -> int:
    from pegboard.evaluation.agent_evaluation import AgentRun, evaluate_agent, open_ledger
    from pegboard.llm.client import Pacing
    from pegboard.llm.hosted import HostedCompleter

    prepared = _prepared(options)
    completer = HostedCompleter(
        options.model,
        api_base=options.api_base,
        api_key_env=options.api_key_env,
        timeout=options.timeout,
        price=options.price,
    )
    pacing = Pacing(concurrency=options.concurrency, attempts=options.attempts)
    run = AgentRun(completer, open_ledger(options.out), pacing, options.budget_usd)
    if options.dry_run:
        return _dry_run(options, prepared, run)
    evaluation = evaluate_agent(prepared, run, progress_lines("asked the agent"))
    evaluation.write(options.out)
    if options.json:
        print_json(evaluation.to_dict())
    else:
        _print(evaluation)
    replies = [scored.reply for scored in evaluation.scored if scored.reply]
    if replies and not any(reply.calls for reply in replies):
        _warn(
            f"None of {len(replies)} replies calls a tool. Some servers silently ignore tools: "
            f"check that the server of {options.model} supports tool calling."
        )
    _warn(f"Replies, scores and results are in {options.out}.")
    return 0


def _prepared(options: argparse.Namespace) -> "Prepared":
    from pegboard.evaluation.agent_evaluation import AgentSpec, prepare
    from pegboard.evaluation.golden import read_queries
    from pegboard.evaluation.overhead import check_fallbacks

    queries = read_queries(options.golden)
    searcher = open_searcher(options)
    spec = AgentSpec(
        sizes=options.tools,
        ks=options.k,
        retrieved=options.retrieved,
        strategy=strategy_option(options.strategy),
        index=options.index,
        limit=options.limit,
        seed=options.seed,
        margin=options.margin,
        reply_tokens=options.reply_tokens,
    )
    with closing(searcher):
        prepared = prepare(searcher, queries, spec, progress_lines("searched for the queries"))
    check_fallbacks([prepared.retrieval.overhead], options.max_fallbacks)
    for reason in prepared.skipped:
        _warn(f"Not tried: {reason}")
    return prepared


def _dry_run(options: argparse.Namespace, prepared: "Prepared", run: "AgentRun") -> int:
    estimate = run.estimate(prepared.trials(run.model))
    if options.json:
        print_json({"queries": len(prepared.cases), "tools": list(prepared.sizes)} | estimate)
        return 0
    cost = (
        "cost unknown: give a price (--price)"
        if estimate["cost_usd"] is None
        else f"at most {estimate['cost_usd']:.4f} USD"
    )
    print(
        f"{len(prepared.cases)} queries with {', '.join(map(str, prepared.sizes))} tools: "
        f"{estimate['calls']} calls to make, {estimate['answered']} answered before\n"
        f"{estimate['prompt_tokens']} tokens of prompts (an estimate), at most "
        f"{estimate['completion_tokens']} of replies, {cost}"
    )
    return 0


def _print(evaluation: "AgentEvaluation") -> None:
    """Print what was measured, what is expected, and which k to take."""
    spec, retrieval = evaluation.prepared.spec, evaluation.prepared.retrieval
    queries = count_text(len(retrieval.results), "query", "queries")
    print(
        f"{plain(evaluation.model)}\nrelease {retrieval.release}, {queries}, "
        f"seed {spec.seed}, margin {spec.margin:g}"
    )
    strategy = plain(retrieval.strategy)
    _print_measured(evaluation, "needed", "With M tools, all needed ones among them")
    if spec.retrieved:
        _print_measured(evaluation, "found", f"With the first k tools found by strategy {strategy}")
    print(
        f"\nExpected with the first k of {len(evaluation.prepared.searcher.names.catalogs)} tools "
        f"found by strategy {strategy} in index {plain(retrieval.index)}: the agent's score with k "
        f"tools x Recall@k"
    )
    rows = [_expected_cells(row, evaluation.prepared.sizes) for row in evaluation.expected]
    header = EXPECTED if any(row.measured for row in evaluation.expected) else EXPECTED[:5]
    print_table(header, [[*row, *[""] * (len(header) - len(row))] for row in rows], "  ")
    if any(row.interpolated for row in evaluation.expected):
        print("  ~ between two numbers of tools that were tried")
    _print_chosen(evaluation)
    _print_failures(evaluation)


def _print_measured(evaluation: "AgentEvaluation", given: str, title: str) -> None:
    measures: dict[int, list[dict[str, Any]]] = {}
    for row in evaluation.measure_rows():
        if row["given"] == given:
            measures.setdefault(row["tools"], []).append(row)
    rows = [
        _measured_cells(counts, measures[counts["tools"]])
        for counts in evaluation.count_rows()
        if counts["given"] == given
    ]
    print(f"\n{title}:")
    print_table(MEASURED, rows, "  ")


def _measured_cells(counts: Mapping[str, Any], means: Sequence[Mapping[str, Any]]) -> list[str]:
    score, *parts = means
    estimated = "" if counts["tokens_by"] == "server" else "~"
    return [
        str(counts["tools"]),
        interval_text(score),
        *(f"{part['value']:.3f}" for part in parts),
        _number(counts["precision"], ".3f"),
        str(counts["unknown_tools"]),
        str(counts["malformed"]),
        str(counts["without_a_call"]),
        str(sum(counts["unanswered"].values())),
        _number(counts["prompt_tokens"], ".0f", estimated),
    ]


def _expected_cells(row: "ExpectedRow", sizes: Sequence[int]) -> list[str]:
    if row.agent is None or row.expected is None:
        reason = f"the agent was tried with {sizes[0]} to {sizes[-1]} tools only"
        return [str(row.k), "-", f"{row.retrieval:.3f}", reason]
    return [
        str(row.k),
        f"{'~' if row.interpolated else ''}{row.agent:.3f}",
        f"{row.retrieval:.3f}",
        str(row.expected),
        _number(row.tokens, ".0f"),
        *(interval_text(one.to_dict()) for one in (row.measured, row.gap) if one),
    ]


def _print_chosen(evaluation: "AgentEvaluation") -> None:
    chosen = evaluation.chosen
    if chosen is None:
        print("\nNo k can be chosen: none was tried.")
        return
    row, best = chosen.row, chosen.best
    tokens = "" if row.tokens is None else f", {row.tokens:.0f} tokens a prompt"
    print(f"\nTake k = {row.k}: {row.expected} expected{tokens}.")
    if row.k == best.k:
        print(f"No smaller k is shown to be within {chosen.margin:g} of it.")
    else:
        print(
            f"The best is k = {best.k}: {best.expected}. The smaller one is shown to be no worse "
            f"by more than {chosen.margin:g}."
        )


def _print_failures(evaluation: "AgentEvaluation") -> None:
    failed = [scored.failure for scored in evaluation.scored if scored.failure]
    if failed:
        print(
            f"\n{len(failed)} requests were not answered and count as 0; the next run asks them "
            f"again:"
        )
        for kind, message in sorted(evaluation.failures.items()):
            print(f"  {failed.count(kind)} x {kind}: {plain(message)}")
    if cut_off := sum(row["cut_off"] for row in evaluation.count_rows()):
        tokens = evaluation.prepared.spec.reply_tokens
        print(f"\n{cut_off} replies were cut off after {tokens} tokens. Allow more: --reply-tokens")
    if evaluation.spent_usd:
        print(f"\nThis run spent {evaluation.spent_usd:.4f} USD.")


def _number(value: float | None, form: str, suffix: str = "") -> str:
    return "-" if value is None else f"{value:{form}}{suffix}"


def _warn(text: str) -> None:
    print(plain(text), file=sys.stderr)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number of at least 1")
    return int(text)


def _numbers(text: str) -> tuple[int, ...]:
    numbers: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,6})(?:\s*\.\.\s*(\d{1,6}))?\s*", part)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
        if first < 1 or last < first or last - first > 1_000:
            raise argparse.ArgumentTypeError(
                f"{text!r}: expected whole numbers of at least 1, such as 1,5,10 or 1..20"
            )
        numbers.update(range(first, last + 1))
    return tuple(sorted(numbers))


def _price(text: str) -> tuple[float, float]:
    try:
        prompt, reply = (float(number) for number in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected two numbers, such as 0.15,0.60: USD for a million tokens of "
            f"prompt and of reply"
        ) from None
    return prompt, reply
