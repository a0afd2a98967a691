"""`pegboard eval-agent`: an agent's tool calls against the right ones, and how many tools to give
it.
"""

import argparse
import re
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pegboard.cli.output import Subparsers, add_board_option, plain, print_json
from pegboard.errors import ConfigurationError

if TYPE_CHECKING:
    from pegboard.evaluation.agent_evaluation import Prepared
    from pegboard.evaluation.agent_runs import AgentRun
    from pegboard.llm import Completer

EXAMPLES = """\
examples:
  pegboard eval-agent golden.jsonl --board ./board --model openai/gpt-4o-mini --limit 50 --dry-run
  pegboard eval-agent golden.jsonl --board ./board --model openai/gpt-4o-mini --limit 50 --budget-usd 2
  pegboard eval-agent golden.jsonl --board ./board --model hosted_vllm/qwen3 --api-base http://127.0.0.1:8000/v1 \\
      --tools 1,5,10,20,50,100 -k 1..20 --retrieved --max-tokens 2000 --json

Every line of GOLDEN has to say the right calls: {"query": ..., "tools": ["convert"], "calls": [{"tool": "convert", "arguments":
{"amount": 30}}]}. Each query is asked once with each number of tools; replies are kept in --out, and never paid for twice."""
STEP_SECONDS = 5.0
"""Between two lines of progress."""

Arguments = Any
"""What `argparse.ArgumentParser.add_argument_group` returns; its class has no public name."""


def register_eval_agent(subparsers: Subparsers) -> None:
    """Add the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "eval-agent",
        help="measure an agent's tool calls with M tools, and choose how many to give it",
        description="Measure an agent's tool calls with M tools at hand against golden calls (the "
        "Toolshed Evaluation Framework), "
        "multiply with what retrieval finds at k, and name the k to take.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "golden", metavar="GOLDEN", help="golden queries with `calls`, as JSON lines"
    )
    add_board_option(parser)
    parser.add_argument("--channel", default="live", help="the channel to ask (default: live)")
    parser.add_argument(
        "--release", help="a release to ask instead of a channel, by id or its beginning"
    )
    _model_options(parser.add_argument_group("the agent"))
    _question_options(parser.add_argument_group("what is asked"))
    parser.add_argument(
        "--out",
        default="eval-agent",
        metavar="DIR",
        help="where replies and results are kept (default: eval-agent)",
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="say how many calls there are and what they cost at most, and end; `auto` counts as "
        "native",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="print one JSON object: agent, calls, expected, chosen, and how they were made",
    )
    parser.set_defaults(run=_eval_agent)


def _model_options(group: Arguments) -> None:
    group.add_argument("--model", required=True, help="a LiteLLM model, such as openai/gpt-4o-mini")
    group.add_argument(
        "--api-base", metavar="URL", help="where it is served, if not by its provider"
    )
    group.add_argument(
        "--api-key-env",
        metavar="VARIABLE",
        help="the environment variable that holds its key, if not the usual one",
    )
    group.add_argument(
        "--price",
        type=_price,
        metavar="IN,OUT",
        help="USD for a million tokens of prompt and of reply, where nobody lists it",
    )
    group.add_argument(
        "--calling",
        choices=("native", "prompt", "auto"),
        default="auto",
        help="by the API's tool calling, or with the tools written into the prompt; auto makes "
        "one call to see (default: auto)",
    )
    group.add_argument(
        "--tool-choice",
        choices=("auto", "required"),
        default="auto",
        help="whether it has to call a tool (default: auto)",
    )
    group.add_argument(
        "--reply-tokens",
        type=_count,
        default=1024,
        metavar="N",
        help="the most tokens of a reply (default: 1024)",
    )
    group.add_argument(
        "--timeout", type=float, default=60.0, metavar="SECONDS", help="for one call (default: 60)"
    )
    group.add_argument(
        "--attempts",
        type=_count,
        default=4,
        metavar="N",
        help="at a call whose failure may pass (default: 4)",
    )
    group.add_argument(
        "--concurrency",
        type=_count,
        default=8,
        metavar="N",
        help="calls on their way at once (default: 8)",
    )
    group.add_argument(
        "--budget-usd", type=float, metavar="X", help="the most that this run may spend"
    )


def _question_options(group: Arguments) -> None:
    group.add_argument(
        "--tools",
        type=_numbers,
        default=(1, 5, 10, 20),
        metavar="M,...",
        help="with how many tools it is tried (default: 1,5,10,20)",
    )
    group.add_argument(
        "--max-tools",
        type=_count,
        default=128,
        metavar="N",
        help="what the model takes in one request; larger M are left out (default: 128)",
    )
    group.add_argument(
        "-k",
        type=_numbers,
        default=tuple(range(1, 21)),
        metavar="K,...",
        help="how many tools retrieval gives it (default: 1..20)",
    )
    group.add_argument(
        "--among",
        type=_numbers,
        default=(),
        metavar="M,...",
        help="also expect for a release of so many tools",
    )
    group.add_argument(
        "--retrieved",
        action="store_true",
        help="also try it with the tools found, at the k that --tools names, too",
    )
    group.add_argument(
        "--retrieval",
        choices=("Recall", "Complete"),
        default="Recall",
        help="what is multiplied with (default: Recall)",
    )
    group.add_argument(
        "--max-tokens",
        type=_count,
        metavar="N",
        help="choose a k whose prompts have no more tokens, as a mean",
    )
    group.add_argument(
        "--strategy",
        help="how tools are found: a strategy's name, or a JSON file with one (default: the "
        "release's own)",
    )
    group.add_argument(
        "--index",
        help="an index configuration (default: the strategy's, or the release's own default)",
    )
    group.add_argument(
        "--strategy-llm", metavar="MODEL", help="a LiteLLM model that parts of the strategy may ask"
    )
    group.add_argument(
        "--strategy-llm-api-base",
        metavar="URL",
        help="where that model is served, if not by its provider",
    )
    group.add_argument(
        "--limit", type=_count, metavar="N", help="ask so many of the queries, drawn by --seed"
    )
    group.add_argument(
        "--seed", type=int, default=0, help="of queries and distractors (default: 0)"
    )
    group.add_argument(
        "--exact", action="store_true", help="texts have to be equal character by character"
    )
    group.add_argument(
        "--descriptions",
        choices=("catalog", "written"),
        default="catalog",
        help="of the tools it is given (default: catalog)",
    )


def _eval_agent(options: argparse.Namespace) -> int:
    from pegboard.cli.agent_tables import print_evaluation
    from pegboard.evaluation.agent_asking import Manner
    from pegboard.evaluation.agent_evaluation import evaluate_agent
    from pegboard.evaluation.agent_replies import AgentReplies
    from pegboard.evaluation.agent_runs import AgentRun, Limits, probed_calling

    prepared = _prepared(options)
    completer = _completer(options)
    limits = Limits(options.concurrency, options.attempts, options.budget_usd)
    replies = AgentReplies(options.out)
    if options.calling != "auto":
        calling = options.calling
    else:  # a dry run asks nothing
        calling = "native" if options.dry_run else probed_calling(completer, replies, limits)
    manner = Manner(calling, options.tool_choice, options.reply_tokens)
    run = AgentRun(completer, prepared.shelf, replies, manner, limits, exact=options.exact)
    if options.dry_run:
        return _dry_run(options, prepared, run, manner)
    found = evaluate_agent(prepared, run, manner, completer.name, _progress("asked the agent"))
    found.write(options.out)
    if options.json:
        print_json(found.to_dict())
    else:
        print_evaluation(found)
    _say(f"Replies, scores and results are in {options.out}.")
    return 0


def _prepared(options: argparse.Namespace) -> "Prepared":
    from pegboard.evaluation.agent_evaluation import AgentQuestions, prepare
    from pegboard.evaluation.golden import read_queries
    from pegboard.evaluation.searcher import Searcher

    queries = read_queries(options.golden)
    told = (
        {"api_base": options.strategy_llm_api_base}
        if options.strategy_llm and options.strategy_llm_api_base
        else {}
    )
    searcher = Searcher.open(
        options.board, options.channel, options.release, llm=options.strategy_llm, llm_options=told
    )
    wanted = AgentQuestions(
        sizes=options.tools,
        ks=options.k,
        among=options.among,
        retrieved=options.retrieved,
        kind=options.retrieval,
        strategy=_strategy(options.strategy),
        index=options.index,
        limit=options.limit,
        seed=options.seed,
        max_tools=options.max_tools,
        max_tokens=options.max_tokens,
        descriptions=options.descriptions,
    )
    prepared = prepare(searcher, queries, wanted, _progress("searched for the queries"))
    left = prepared.left_out
    for count, why in (
        (left.without_calls, "say no right calls"),
        (left.without_tools, f"need tools that the release has not: {', '.join(left.missing[:5])}"),
    ):
        if count:
            _say(f"{count} of {len(queries)} golden queries are left out: they {why}")
    for said in prepared.dropped:
        _say(f"Not tried: {said}")
    return prepared


def _completer(options: argparse.Namespace) -> "Completer":
    from pegboard.llm.hosted import HostedCompleter

    return HostedCompleter(
        options.model,
        api_base=options.api_base,
        api_key_env=options.api_key_env,
        timeout=options.timeout,
        price=options.price,
    )


def _dry_run(
    options: argparse.Namespace, prepared: "Prepared", run: "AgentRun", manner: Any
) -> int:
    with_sets, with_found = prepared.trials(manner, options.model)
    bill = run.estimate([*with_sets, *with_found])
    if options.json:
        print_json(
            {"queries": len(prepared.cases), "tools": list(prepared.sizes), **bill.to_dict()}
        )
        return 0
    cost = (
        "nobody knows its price (--price)"
        if bill.cost_usd is None
        else f"at most {bill.cost_usd:.4f} USD"
    )
    print(
        f"{len(prepared.cases)} queries with {', '.join(str(size) for size in prepared.sizes)} "
        f"tools: {bill.calls} calls to make, "
        f"{bill.answered} answered before\n{bill.prompt_tokens} tokens of prompts (an estimate), "
        f"at most {bill.completion_tokens} of "
        f"replies, {cost}"
    )
    return 0


def _strategy(name: str | None) -> Any:
    if name is None or not name.endswith(".json"):
        return name
    import json
    from pathlib import Path

    try:
        return json.loads(Path(name).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{name} cannot be read as JSON: {error}.") from error


def _progress(what: str) -> Callable[[int], None]:
    """Says now and then, on stderr, how far something is."""
    done, said = 0, time.monotonic()

    def advance(more: int) -> None:
        nonlocal done, said
        done += more
        if time.monotonic() - said >= STEP_SECONDS:
            said = time.monotonic()
            _say(f"{what}: {done}")

    return advance


def _say(text: str) -> None:
    print(plain(text), file=sys.stderr)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number of at least 1")
    return int(text)


def _numbers(text: str) -> tuple[int, ...]:
    numbers: set[int] = set()
    for part in text.split(","):
        found = re.fullmatch(r"\s*(\d{1,6})(?:\s*\.\.\s*(\d{1,6}))?\s*", part)
        first, last = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
        if first < 1 or last < first or last - first > 1_000:
            raise argparse.ArgumentTypeError(
                f"{text!r}: expected whole numbers of at least 1, such as 1,5,10 or 1..20"
            )
        numbers.update(range(first, last + 1))
    return tuple(sorted(numbers))


def _price(text: str) -> tuple[float, float]:
    try:
        prompt, reply = (float(one) for one in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected two numbers, such as 0.15,0.60: USD for a million tokens of "
            f"prompt and of reply"
        ) from None
    return prompt, reply
