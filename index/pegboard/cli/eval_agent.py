"""`pegboard eval-agent`: an agent's tool calls, and how many tools to give it."""

import argparse
import sys
from collections.abc import Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any

from pegboard.cli.eval import open_searcher
from pegboard.cli.find import strategy_option
from pegboard.cli.output import (
    Subparsers,
    add_command,
    add_json_option,
    add_options,
    plain,
    print_json,
)
from pegboard.cli.tables import count_text, interval_text, print_table, progress_lines

if TYPE_CHECKING:
    from pegboard.evaluation.agent_evaluation import AgentEvaluation, Prepared

EXAMPLES = """\
examples:
  pegboard eval-agent golden.jsonl --board ./board --model openai/gpt-4o-mini --limit 50 \\
      --budget-usd 2
  pegboard eval-agent golden.jsonl --board ./board --model hosted_vllm/qwen3 \\
      --api-base http://127.0.0.1:8000/v1 --tools 1,5,10,20,50 --json

Every line of GOLDEN needs the right calls: {"query": ..., "tools": ["convert"], "calls": [{"tool":
"convert", "arguments": {"amount": 30}}]}. Each query is asked once with each number of tools."""
HEADER = ("K", "AGENT", "NAME", "ARG NAMES", "VALUES", "PRECISION", "NO REPLY", "TOKENS", "RECALL",
          "EXPECTED")  # fmt: skip


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = add_command(
        subparsers,
        "eval-agent",
        _eval_agent,
        EXAMPLES,
        help="measure an agent's tool calls with k tools, and choose how many to give it",
        description="Measure an agent's tool calls with k tools against golden calls (the Toolshed "
        "Evaluation Framework), multiply with what retrieval finds at k, and choose k.",
    )
    add_options(parser, "golden", "--board", "--channel", "--release")
    _add_model_options(parser.add_argument_group("the agent"))
    _add_query_options(parser.add_argument_group("queries, tools and retrieval"))
    add_json_option(parser, "rows, chosen, scores of each query, and how they were measured")


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
    add("--concurrency", type=_count, default=8, metavar="N", help="calls at once (default: 8)")
    add("--budget-usd", type=float, metavar="X", help="the most that this run may spend")


def _add_query_options(group: Any) -> None:
    add = group.add_argument
    add(
        "--tools",
        type=_numbers,
        default=(1, 5, 10, 20),
        metavar="K,...",
        help="how many tools it is given, and retrieval finds (default: 1,5,10,20)",
    )
    add(
        "--margin",
        type=float,
        default=0.02,
        metavar="X",
        help="by how much the chosen k may be worse than the best (default: 0.02)",
    )
    add_options(group, "--strategy", "--index", "--hosted-encoder")
    add_options(group, "--llm", "--llm-api-base", "--max-fallbacks")
    add_options(group, "--limit")


def _eval_agent(options: argparse.Namespace) -> int:
    from pegboard.evaluation.agent_evaluation import evaluate_agent
    from pegboard.llm.hosted import HostedCompleter

    prepared = _prepared(options)
    completer = HostedCompleter(
        options.model,
        api_base=options.api_base,
        api_key_env=options.api_key_env,
        price=options.price,
    )
    advance = progress_lines("asked the agent")
    evaluation = evaluate_agent(
        prepared, completer, options.concurrency, options.budget_usd, advance
    )
    if options.json:
        print_json(evaluation.to_dict())
    else:
        _print(evaluation)
    replies = [trial.reply for trial in evaluation.trials if trial.reply]
    if replies and not any(reply.calls for reply in replies):
        _warn(
            f"None of {len(replies)} replies calls a tool. Some servers silently ignore tools: "
            f"check that the server of {options.model} supports tool calling."
        )
    return 0


def _prepared(options: argparse.Namespace) -> "Prepared":
    from pegboard.evaluation.agent_evaluation import AgentSpec, prepare
    from pegboard.evaluation.golden import read_queries
    from pegboard.evaluation.overhead import check_fallbacks

    queries = read_queries(options.golden)[: options.limit]
    spec = AgentSpec(
        sizes=options.tools,
        strategy=strategy_option(options.strategy),
        index=options.index,
        margin=options.margin,
        reply_tokens=options.reply_tokens,
    )
    with closing(open_searcher(options)) as searcher:
        prepared = prepare(searcher, queries, spec, progress_lines("searched for the queries"))
    check_fallbacks([prepared.retrieval.overhead], options.max_fallbacks)
    for reason in prepared.skipped:
        _warn(f"Not tried: {reason}")
    return prepared


def _print(evaluation: "AgentEvaluation") -> None:
    """Print what was measured, what is expected, and which k to take."""
    retrieval, rows = evaluation.prepared.retrieval, evaluation.rows()
    queries = count_text(len(retrieval.results), "query", "queries")
    print(f"{plain(evaluation.model)}\nrelease {retrieval.release}, {queries}")
    print(
        f"\nAGENT with K tools, all needed ones among them; RECALL of the first K of "
        f"{len(evaluation.prepared.searcher.names.catalogs)} found by strategy "
        f"{plain(retrieval.strategy)} in index {plain(retrieval.index)}; EXPECTED with these, the "
        f"product:"
    )
    print_table(HEADER, [_cells(row) for row in rows], "  ")
    expected = evaluation.expected
    print(f"\nTake k = {expected.k}: {expected.by_k[expected.k]} expected.")
    if expected.k == expected.best:
        print(f"No smaller k is shown to be within {expected.margin:g} of it.")
    else:
        print(
            f"The best is k = {expected.best}: {expected.by_k[expected.best]}. The smaller one is "
            f"shown to be no worse by more than {expected.margin:g}."
        )
    _print_failures(evaluation, rows)


def _cells(row: Mapping[str, Any]) -> list[str]:
    precision, tokens = row["precision"], row["prompt_tokens"]
    estimated = "" if row["tokens_by"] == "server" else "~"
    return [
        str(row["tools"]),
        interval_text(row["CallScore"]),
        *(f"{row[name]['value']:.3f}" for name in ("ToolName", "ArgumentNames", "ArgumentValues")),
        "-" if precision is None else f"{precision:.3f}",
        str(sum(row["unanswered"].values())),
        "-" if tokens is None else f"{tokens:.0f}{estimated}",
        f"{row['retrieval']:.3f}",
        interval_text(row["expected"]),
    ]


def _print_failures(evaluation: "AgentEvaluation", rows: list[dict[str, Any]]) -> None:
    failed = [trial.failure for trial in evaluation.trials if trial.failure]
    if failed:
        print(f"\n{len(failed)} requests were not answered and count as 0:")
        for kind, message in sorted(evaluation.failures.items()):
            print(f"  {failed.count(kind)} x {kind}: {plain(message)}")
    if cut_off := sum(row["cut_off"] for row in rows):
        tokens = evaluation.prepared.spec.reply_tokens
        print(f"\n{cut_off} replies were cut off after {tokens} tokens. Allow more: --reply-tokens")
    if evaluation.spent_usd:
        print(f"\nThis run spent {evaluation.spent_usd:.4f} USD.")


def _warn(text: str) -> None:
    print(plain(text), file=sys.stderr)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number of at least 1")
    return int(text)


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(sorted({_count(part.strip()) for part in text.split(",")}))
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected whole numbers of at least 1, such as 1,5,10"
        ) from None


def _price(text: str) -> tuple[float, float]:
    try:
        prompt, reply = (float(number) for number in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected two numbers, such as 0.15,0.60: USD for a million tokens of "
            f"prompt and of reply"
        ) from None
    return prompt, reply
