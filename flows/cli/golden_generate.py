"""`pegboard golden generate`: golden queries that an LLM writes."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from pegboard.cli.output import Subparsers, add_board_option, print_json
from pegboard.errors import ConfigurationError

WARNING = (
    "Generated queries are easier than what people ask, since they are made from the descriptions "
    "that they have to find. "
    "They compare strategies and indexes; they do not say how good a board is. Read some of them "
    "before you use them."
)
EPILOG = f"""\
Tools are drawn, and for each the LLM writes a request, in one of six forms: a question, a command, a few search words, ... With
several tools, they are of one agent or near each other; the request needs each for a part of its own, or one after the other.
Requests that name a tool, copy a description, repeat an example or another request, or are in the wrong language are left out
and counted. Every reply is kept beside the file, so that a run that was killed, or one that wants more, pays for nothing twice.

{WARNING}

examples:
  pegboard golden generate --board ./board --model openai/gpt-4o-mini --out generated.jsonl
  pegboard golden generate --board ./board --model ollama/llama3.2 -n 50 --tools-per-query 1,2,3 --out generated.jsonl --add
  pegboard golden generate --board ./board --model openai/gpt-4o-mini --budget-usd 0.50 --context "Tools of a bank." --out g.jsonl"""


def register_generate(commands: Subparsers) -> None:
    """Add the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "generate",
        help="have golden queries written by an LLM",
        description="Have an LLM write requests for tools of a board, and keep those that can be "
        "golden queries.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_board_option(parser)
    parser.add_argument(
        "--channel", default="live", help="the channel whose tools are asked for (default: live)"
    )
    parser.add_argument("--release", help="a release instead of a channel, by id or its beginning")
    parser.add_argument(
        "--model", required=True, metavar="NAME", help="a LiteLLM model, such as openai/gpt-4o-mini"
    )
    parser.add_argument(
        "--api-base", metavar="URL", help="where the model is served, if not by its provider"
    )
    parser.add_argument(
        "--api-key-env",
        metavar="NAME",
        help="the environment variable with its key, if not the usual",
    )
    parser.add_argument(
        "--out", required=True, metavar="FILE", help="the file of golden queries to write"
    )
    parser.add_argument(
        "--add", action="store_true", help="keep the queries that the file has, and add to them"
    )
    parser.add_argument(
        "-n", "--queries", type=int, default=200, metavar="N", help="how many (default: 200)"
    )
    parser.add_argument(
        "--tools-per-query",
        default="1,2",
        metavar="N,...",
        help="numbers of tools, in turn (default: 1,2)",
    )
    parser.add_argument(
        "--context", metavar="TEXT", help="what the tools are about, for the prompt"
    )
    parser.add_argument(
        "--language", metavar="CODE", help="such as en (default: that of the descriptions)"
    )
    parser.add_argument(
        "--prompt",
        metavar="FILE",
        help="a prompt of your own, with the sections # system and # user",
    )
    parser.add_argument("--seed", type=int, default=0, help="which tools are drawn (default: 0)")
    parser.add_argument("--budget-usd", type=float, metavar="USD", help="what may be spent at most")
    parser.add_argument(
        "--max-tokens",
        type=int,
        metavar="N",
        help="what may be used at most, of prompts and replies",
    )
    parser.add_argument(
        "--price",
        metavar="INPUT,OUTPUT",
        help="USD for a million tokens, where LiteLLM does not know it",
    )
    parser.add_argument(
        "--concurrency", type=int, default=8, metavar="N", help="calls at once (default: 8)"
    )
    parser.add_argument("--temperature", type=float, help="default: the model's own")
    parser.add_argument(
        "--structured",
        choices=("schema", "text"),
        default="schema",
        help="text writes the schema into the prompt",
    )
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    parser.add_argument(
        "--json",
        action="store_true",
        help="print one JSON object: what was written, rejected, spent",
    )
    parser.set_defaults(run=_generate)


def _generate(options: argparse.Namespace) -> int:
    from pegboard.evaluation.golden import write_queries
    from pegboard.evaluation.searcher import Searcher
    from tasks.golden.asked_model import ledger_beside, model_settings, models_for
    from tasks.golden.files import queries_to_add_to
    from tasks.golden.generating import generate_queries
    from tasks.golden.request_prompt import OWN_PROMPT, RequestPrompt

    if options.queries < 1:
        raise ConfigurationError(
            f"-n is {options.queries}; expected the number of queries wanted, 1 or more."
        )
    sizes = _sizes(options.tools_per_query)
    out = Path(options.out)
    there = queries_to_add_to(out, add=options.add)
    prompt = RequestPrompt.read(Path(options.prompt) if options.prompt else OWN_PROMPT)
    same = (
        "api_base",
        "api_key_env",
        "context",
        "language",
        "budget_usd",
        "max_tokens",
        "concurrency",
        "temperature",
    )
    given = {name: getattr(options, name) for name in same}
    settings = model_settings(
        options.model, **given, structured=options.structured, price=_price(options.price)
    )
    searcher = Searcher.open(options.board, options.channel, options.release)
    made = generate_queries(
        searcher.loaded,
        settings,
        models_for(settings),
        ledger_beside(out),
        count=options.queries,
        sizes=sizes,
        seed=options.seed,
        prompt=prompt,
        known=there,
        advance=_progress(options.queries, options.quiet),
    )
    if made.queries:
        write_queries(out, [*there, *made.queries])
    said = {
        "written": str(out) if made.queries else None,
        "queries": len(made.queries),
        "there": len(there),
        "rejected": made.rejected,
        "asked": made.asked,
        "known": made.known,
        "failed": made.failed,
        "cost_usd": None if made.unpriced else round(made.cost_usd, 6),
        "stopped": str(made.stopped) if made.stopped else None,
    }
    if options.json:
        print_json(said)
    else:
        cost = "cost unknown" if made.unpriced else f"{made.cost_usd:.4f} USD"
        print(
            f"{out}: {len(made.queries)} queries; {made.asked} calls, {made.known} replies known "
            f"before, {cost}"
        )
        if made.rejected:
            print(
                "left out: "
                + ", ".join(f"{count} {reason}" for reason, count in made.rejected.items())
            )
    return _ended(options, made.stopped, len(made.queries), made.failed)


def _ended(
    options: argparse.Namespace, stopped: Exception | None, queries: int, failed: int
) -> int:
    """Say why there are fewer than were wanted; the exit code."""
    if not options.quiet and queries:
        print(f"pegboard golden: {WARNING}", file=sys.stderr)
    if stopped is not None:
        print(
            f"pegboard golden: {stopped}. What was had is kept; run again with --add to go on.",
            file=sys.stderr,
        )
        return int(getattr(stopped, "exit_code", 1))
    if queries < options.queries:
        calls = f" {failed} calls failed." if failed else ""
        print(
            f"pegboard golden: {queries} of {options.queries} queries were made.{calls} The board "
            f"has no more tools to ask for, or too "
            "many requests were left out: another model or --prompt may do better.",
            file=sys.stderr,
        )
    return 0


def _sizes(text: str) -> list[int]:
    words = [one.strip() for one in text.split(",")]
    if not all(one.isdecimal() for one in words):
        raise ConfigurationError(f"--tools-per-query is {text!r}; expected numbers, as in 1,2.")
    return [int(one) for one in words]


def _price(text: str | None) -> dict[str, float] | None:
    if text is None:
        return None
    try:
        given, got = (float(one) for one in text.split(","))
    except ValueError:
        raise ConfigurationError(
            f"--price is {text!r}; expected two numbers, as in 0.15,0.60."
        ) from None
    return {"input": given, "output": got}


def _progress(total: int, quiet: bool) -> Callable[[int], None]:
    done = 0

    def advance(more: int) -> None:
        nonlocal done
        done += more
        if not quiet:
            print(f"written: {done} of {total}", file=sys.stderr)

    return advance
