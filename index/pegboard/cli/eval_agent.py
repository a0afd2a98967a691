"""`pegboard eval-agent`: an agent's tool calls, and how many tools to give it."""

import argparse
import math
import sys
from collections.abc import Mapping
from contextlib import closing
from typing import Any

from pegboard.cli.eval import open_searcher
from pegboard.cli.output import (
    Subparsers,
    add_command,
    add_json_option,
    add_options,
    json_table,
    print_json,
    print_table,
    progress_lines,
)
from pegboard.errors import CompletionError
from pegboard.formatting import count_text, interval_text, plain

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
    add = parser.add_argument
    add_options(parser, "golden", "--board", "--channel", "--release")
    add("--model", required=True, help="a LiteLLM model with tool calling: openai/gpt-4o-mini")
    add("--api-base", metavar="URL", help="where it is served, if not by its provider")
    add("--api-key-env", metavar="VARIABLE", help="where its key is, if not in the usual variable")
    add(
        "--reply-tokens",
        type=int,
        default=1024,
        metavar="N",
        help="the most tokens of a reply (default: 1024)",
    )
    add(
        "--model-options",
        type=json_table,
        metavar="JSON",
        help='further arguments of LiteLLM for the agent, such as \'{"reasoning_effort": "low"}\'',
    )
    add("--budget-usd", type=float, metavar="X", help="the most that the agent may spend")
    add(
        "--price",
        type=_price,
        metavar="IN,OUT",
        help="USD for a million tokens of prompt and of reply, if LiteLLM does not know the model",
    )
    add(
        "--tools",
        type=_sizes,
        default=(1, 5, 10, 20),
        metavar="K,...",
        help="how many tools it is given, and retrieval finds (default: 1,5,10,20)",
    )
    add_options(parser, "--strategy", "--index", "--hosted-encoder")
    add_options(parser, "--llm", "--llm-api-base", "--llm-options", "--max-fallbacks", "--limit")
    add_options(parser, "--replies", "--missing-replies")
    add_json_option(parser, "rows, chosen, scores of each query, and how they were measured")


def _sizes(text: str) -> tuple[int, ...]:
    parts = text.split(",")
    if not all(part.isdecimal() and int(part) for part in parts):
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected whole numbers of at least 1, such as 1,5,10"
        )
    return tuple(map(int, parts))


def _price(text: str) -> tuple[float, float]:
    try:
        prompt, reply = map(float, text.split(","))
    except ValueError:
        prompt = reply = -1.0
    if not (0 <= prompt < math.inf and 0 <= reply < math.inf):
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected USD for a million tokens of prompt and of reply, such as 0.15,0.6"
        )
    return prompt, reply


def _eval_agent(options: argparse.Namespace) -> int:
    from pegboard.evaluation.agent_evaluation import evaluate_agent
    from pegboard.evaluation.golden import read_queries
    from pegboard.llm.hosted import HostedCompleter
    from pegboard.llm.recorded import missing_message, recorded_completer
    from pegboard.retrieval.strategies import load_strategy

    def hosted() -> HostedCompleter:
        return HostedCompleter(
            options.model,
            api_base=options.api_base,
            api_key_env=options.api_key_env,
            price=options.price,
            options=options.model_options,
        )

    completer = recorded_completer(options.model, options.replies, options.missing_replies, hosted)
    with closing(open_searcher(options)) as searcher:
        result = evaluate_agent(
            searcher,
            read_queries(options.golden)[: options.limit],
            completer,
            options.tools,
            strategy=load_strategy(options.strategy),
            index=options.index,
            max_fallbacks=options.max_fallbacks,
            reply_tokens=options.reply_tokens,
            budget_usd=options.budget_usd,
            advance=progress_lines("asked the agent"),
        )
    if missing := missing_message(completer):
        raise CompletionError(missing, kind="unrecorded")
    if options.json:
        print_json(result)
    else:
        _print(result)
    warnings = [f"Not tried: {result['skipped']}"] if result["skipped"] else []
    if not any(row["calls"] for row in result["rows"]):
        warnings.append(
            "No reply calls a tool. Some servers silently ignore tools: check that the server of "
            f"{options.model} supports tool calling."
        )
    for warning in warnings:
        print(plain(warning), file=sys.stderr)
    return 0


def _print(result: Mapping[str, Any]) -> None:
    """Print what was measured, what is expected, and which k to take."""
    rows = result["rows"]
    chosen = result["chosen"]
    queries = count_text(result["queries"], "query", "queries")
    print(
        plain(
            f"{result['model']}, release {result['release']}, {queries}. AGENT with K tools, all "
            f"needed ones among them; RECALL of the first K found by strategy {result['strategy']} "
            f"in index {result['index']}; EXPECTED with these, the product:"
        )
    )
    print_table(HEADER, [_cells(row) for row in rows], "  ")
    expected = {row["tools"]: interval_text(row["expected"]) for row in rows}
    k = chosen["k"]
    best = chosen["best"]
    margin = chosen["margin"]
    print(f"\nTake k = {k}: {expected[k]} expected.")
    if k == best:
        print(f"No smaller k is shown to be within {margin:g} of it.")
    else:
        print(
            f"The best is k = {best}: {expected[best]}. The smaller one is shown to be no worse by "
            f"more than {margin:g}."
        )
    for kind, message in sorted(result["failures"].items()):
        count = sum(row["unanswered"].get(kind, 0) for row in rows)
        print(plain(f"{count} requests were not answered and count as 0: {kind}: {message}"))
    if cut_off := sum(row["cut_off"] for row in rows):
        tokens = result["reply_tokens"]
        print(f"{cut_off} replies were cut off after {tokens} tokens. Allow more: --reply-tokens")
    if result["spent_usd"] is None:
        print("The cost of this run is unknown. Give the model's price: --price IN,OUT")
    else:
        print(f"This run spent {result['spent_usd']:.4f} USD.")


def _cells(row: Mapping[str, Any]) -> list[str]:
    precision = row["precision"]
    tokens = row["prompt_tokens"]
    return [
        str(row["tools"]),
        interval_text(row["CallScore"]),
        *(f"{row[name]['value']:.3f}" for name in ("ToolName", "ArgumentNames", "ArgumentValues")),
        "-" if precision is None else f"{precision:.3f}",
        str(sum(row["unanswered"].values())),
        "-" if tokens is None else f"{tokens:.0f}",
        f"{row['retrieval']:.3f}",
        interval_text(row["expected"]),
    ]
