"""`pegboard golden generate`: golden queries that an LLM writes."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pegboard.cli.output import (
    Subparsers,
    add_command,
    add_json_option,
    add_options,
    print_error,
    print_json,
)
from pegboard.cli.tables import progress_lines
from pegboard.errors import ConfigurationError

if TYPE_CHECKING:
    from pegboard.llm.prompts import Prompt
    from tasks.golden.generating import Generated
    from tasks.settings.enrichment import EnrichSettings

WARNING = (
    "Generated queries are easier than what people ask: they are made from the descriptions that "
    "they have to find. Use them to compare strategies and indexes, not to judge how good a board "
    "is, and read some of them first."
)
EPILOG = f"""\
Tools are sampled, and the LLM writes a request for each sample, in one of six forms: a question, a
command, a few search words, ... Several tools of a sample are of one agent or near each other; the
request needs each for a part of its own, or one after the other. Requests that name a tool, copy a
description, repeat an example or another request, or are in the wrong language are left out and
counted. Every reply is stored beside the file: a run that was killed, or one that asks for more
queries, pays for nothing twice.

{WARNING}

examples:
  pegboard golden generate --board ./board --model openai/gpt-4o-mini --out generated.jsonl
  pegboard golden generate --board ./board --model ollama/llama3.2 -n 50 \\
      --tools-per-query 1,2,3 --out generated.jsonl --add
  pegboard golden generate --board ./board --model openai/gpt-4o-mini --budget-usd 0.50 \\
      --context "Tools of a bank." --out generated.jsonl"""

MODEL_OPTIONS = (
    *("api_base", "api_key_env", "context", "language", "budget_usd", "max_tokens"),
    *("concurrency", "temperature", "structured"),
)


def register_generate(commands: Subparsers) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "generate",
        _generate,
        EPILOG,
        help="have an LLM write golden queries",
        description="Have an LLM write requests for tools of a board, and keep those that can be "
        "golden queries.",
    )
    _add_query_options(parser)
    _add_model_options(parser)
    add_options(parser, "--quiet")
    add_json_option(parser, "file, queries, rejected requests, cost")


def _add_query_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add_options(parser, "--board")
    add_options(parser, "--channel")
    add("--release", help="a release instead of a channel, by id or a prefix of it")
    add("--out", required=True, metavar="FILE", help="the file of golden queries to write")
    add("--add", action="store_true", help="keep the queries of the file, and add to them")
    add("-n", "--queries", type=int, default=200, metavar="N", help="how many (default: 200)")
    add(
        "--tools-per-query",
        default="1,2",
        metavar="N,...",
        help="numbers of tools, in turn (default: 1,2)",
    )
    add("--context", metavar="TEXT", help="what the tools are about, for the prompt")
    add("--language", metavar="CODE", help="such as en (default: that of the descriptions)")
    add("--prompt", metavar="FILE", help="a prompt file instead of the built-in one")
    add("--seed", type=int, default=0, help="seed of the sampling (default: 0)")


def _add_model_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--model", required=True, metavar="NAME", help="a LiteLLM model, as openai/gpt-4o-mini")
    add("--api-base", metavar="URL", help="address of the server, if not the provider's own")
    add("--api-key-env", metavar="NAME", help="environment variable with the API key, if not usual")
    add("--budget-usd", type=float, metavar="USD", help="the most that may be spent")
    add("--max-tokens", type=int, metavar="N", help="the most tokens of prompts and replies")
    add(
        "--price",
        metavar="INPUT,OUTPUT",
        help="USD for a million tokens, where LiteLLM does not know the price",
    )
    add("--concurrency", type=int, default=8, metavar="N", help="calls at once (default: 8)")
    add("--temperature", type=float, help="default: the model's own")
    add(
        "--structured",
        choices=("schema", "text"),
        default="schema",
        help="send the JSON schema as such, or as text in the prompt (default: schema)",
    )


def _generate(options: argparse.Namespace) -> int:
    from pegboard.evaluation.golden import write_queries
    from pegboard.evaluation.searcher import Searcher
    from tasks.enrichment.models import models_of
    from tasks.golden.generating import generate_queries, ledger_beside
    from tasks.golden.reading import queries_to_extend

    if options.queries < 1:
        raise ConfigurationError(f"-n is {options.queries}; expected 1 or more.")
    sizes = _sizes(options.tools_per_query)
    out = Path(options.out)
    existing = queries_to_extend(out, add=options.add)
    prompt, settings = _prompt(options.prompt), _settings(options)
    searcher = Searcher.open(options.board, options.channel, options.release)
    generated = generate_queries(
        searcher.loaded,
        settings,
        models_of(settings, place="--budget-usd", price_option="as --price INPUT,OUTPUT"),
        ledger_beside(out),
        count=options.queries,
        sizes=sizes,
        seed=options.seed,
        prompt=prompt,
        existing=existing,
        advance=progress_lines("generated", options.queries, quiet=options.quiet),
    )
    if generated.queries:
        write_queries(out, [*existing, *generated.queries])
    if options.json:
        print_json(_figures(out, generated, len(existing)))
    else:
        _print_result(out, generated)
    return _exit_code(options, generated)


def _prompt(file: str | None) -> "Prompt | None":
    from pegboard.llm.prompts import read_prompt
    from tasks.golden.generating import PROMPT_FORMAT

    return read_prompt(Path(file), PROMPT_FORMAT) if file else None


def _settings(options: argparse.Namespace) -> "EnrichSettings":
    from tasks.golden.generating import model_settings

    given = {name: getattr(options, name) for name in MODEL_OPTIONS}
    return model_settings(options.model, **given, price=_price(options.price))


def _figures(out: Path, generated: "Generated", existing: int) -> dict[str, Any]:
    return {
        "written": str(out) if generated.queries else None,
        "queries": len(generated.queries),
        "existing": existing,
        "rejected": generated.rejected,
        "replies": generated.replies,
        "reused": generated.reused,
        "failed": generated.failed,
        "cost_usd": None if generated.unpriced else round(generated.cost_usd, 6),
        "stopped": str(generated.stopped) if generated.stopped else None,
    }


def _print_result(out: Path, generated: "Generated") -> None:
    cost = "unknown cost" if generated.unpriced else f"{generated.cost_usd:.4f} USD"
    print(
        f"{out}: {len(generated.queries)} queries; {generated.replies} replies, "
        f"{generated.reused} reused from earlier runs, {cost}"
    )
    if generated.rejected:
        reasons = ", ".join(f"{count} {reason}" for reason, count in generated.rejected.items())
        print(f"left out: {reasons}")


def _exit_code(options: argparse.Namespace, generated: "Generated") -> int:
    """Say why there are fewer queries than requested; return the exit code."""
    count, stopped = len(generated.queries), generated.stopped
    if not options.quiet and count:
        print_error("pegboard golden", WARNING)
    if stopped is not None:
        message = f"{str(stopped).rstrip('.')}. Replies are stored; run again with --add to go on."
        print_error("pegboard golden", message)
        return int(getattr(stopped, "exit_code", 1))
    if count < options.queries:
        calls = f" {generated.failed} calls failed." if generated.failed else ""
        print_error(
            "pegboard golden",
            f"only {count} of {options.queries} queries were generated.{calls} The board has no "
            "more tools to sample, or too many requests were left out: try another model or "
            "--prompt.",
        )
    return 0


def _sizes(text: str) -> list[int]:
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() for word in words):
        raise ConfigurationError(f"--tools-per-query is {text!r}; expected numbers, as in 1,2.")
    return [int(word) for word in words]


def _price(text: str | None) -> dict[str, float] | None:
    if text is None:
        return None
    try:
        prompt, reply = (float(part) for part in text.split(","))
    except ValueError:
        raise ConfigurationError(
            f"--price is {text!r}; expected two numbers, as in 0.15,0.60."
        ) from None
    return {"input": prompt, "output": reply}
