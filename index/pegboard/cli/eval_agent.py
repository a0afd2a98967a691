"""`pegboard eval-agent`: an agent's tool calls, and how many tools to give it."""

import argparse
import re
import sys
from contextlib import closing
from typing import TYPE_CHECKING, Any

from pegboard.cli.find import strategy_option
from pegboard.cli.output import Subparsers, add_json_option, plain, print_json
from pegboard.cli.systems import add_fallback_option, add_golden_options
from pegboard.cli.tables import list_text, progress_counter

if TYPE_CHECKING:
    from pegboard.evaluation.agent_evaluation import Prepared
    from pegboard.evaluation.agent_requests import CallOptions
    from pegboard.evaluation.agent_runs import AgentRun

EXAMPLES = """\
examples:
  pegboard eval-agent golden.jsonl --board ./board --model openai/gpt-4o-mini --limit 50 --dry-run
  pegboard eval-agent golden.jsonl --board ./board --model openai/gpt-4o-mini --budget-usd 2
  pegboard eval-agent golden.jsonl --board ./board --model hosted_vllm/qwen3 \\
      --api-base http://127.0.0.1:8000/v1 --tools 1,5,10,20,50 -k 1..20 --retrieved --json

Every line of GOLDEN needs the right calls: {"query": ..., "tools": ["convert"], "calls": [{"tool":
"convert", "arguments": {"amount": 30}}]}. Each query is asked once with each number of tools;
replies are kept in --out, and never paid for twice."""
MISSING_SHOWN = 5
"""Missing tools that the warning names."""

Arguments = Any
"""What `argparse.ArgumentParser.add_argument_group` returns; its class has no public name."""


def register_eval_agent(subparsers: Subparsers) -> None:
    """Add the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "eval-agent",
        help="measure an agent's tool calls with M tools, and choose how many to give it",
        description="Measure an agent's tool calls with M tools against golden calls (the Toolshed "
        "Evaluation Framework), multiply with what retrieval finds at k, and choose k.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_golden_options(parser)
    _add_model_options(parser.add_argument_group("the agent"))
    _add_query_options(parser.add_argument_group("what is asked"))
    parser.add_argument(
        "--out",
        default="eval-agent",
        metavar="DIR",
        help="the folder for replies and results (default: eval-agent)",
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="print the number of calls and their highest cost, and exit; `auto` counts as native",
    )
    add_json_option(parser, "agent, calls, expected, chosen, and how they were measured")
    parser.set_defaults(run=_eval_agent)


def _add_model_options(group: Arguments) -> None:
    add = group.add_argument
    add("--model", required=True, help="a LiteLLM model, such as openai/gpt-4o-mini")
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
        "--calling",
        choices=("native", "prompt", "auto"),
        default="auto",
        help="by the API's tool calling, or with the tools in the prompt; auto makes one call to "
        "find out (default: auto)",
    )
    add(
        "--tool-choice",
        choices=("auto", "required"),
        default="auto",
        help="whether it has to call a tool (default: auto)",
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


def _add_query_options(group: Arguments) -> None:
    add = group.add_argument
    add(
        "--tools",
        type=_numbers,
        default=(1, 5, 10, 20),
        metavar="M,...",
        help="how many tools it is given (default: 1,5,10,20)",
    )
    add(
        "--max-tools",
        type=_count,
        default=128,
        metavar="N",
        help="what the model accepts in one request; larger M are left out (default: 128)",
    )
    add(
        "-k",
        type=_numbers,
        default=tuple(range(1, 21)),
        metavar="K,...",
        help="how many retrieved tools it is given (default: 1..20)",
    )
    add(
        "--among",
        type=_numbers,
        default=(),
        metavar="M,...",
        help="also compute the expected accuracy for a release of M tools",
    )
    add(
        "--retrieved",
        action="store_true",
        help="also try it with retrieved tools, at each k that is in --tools",
    )
    add(
        "--retrieval",
        choices=("Recall", "Complete"),
        default="Recall",
        help="the measure of retrieval in the product (default: Recall)",
    )
    add(
        "--max-tokens",
        type=_count,
        metavar="N",
        help="choose a k whose prompts have at most N tokens on average",
    )
    add("--strategy", help="a strategy's name or JSON file (default: the release's)")
    add("--index", help="an index (default: the strategy's, or the release's default)")
    add("--strategy-llm", metavar="MODEL", help="a LiteLLM model for parts of the strategy")
    add(
        "--strategy-llm-api-base",
        metavar="URL",
        help="where that model is served, if not by its provider",
    )
    add_fallback_option(group)
    add("--limit", type=_count, metavar="N", help="ask N of the queries, drawn by --seed")
    add("--seed", type=int, default=0, help="of queries and distractors (default: 0)")
    add("--exact", action="store_true", help="compare texts character by character")
    add(
        "--descriptions",
        choices=("catalog", "written"),
        default="catalog",
        help="of the tools that it is given (default: catalog)",
    )


def _eval_agent(options: argparse.Namespace) -> int:
    from pegboard.cli.agent_tables import print_evaluation
    from pegboard.evaluation.agent_evaluation import evaluate_agent
    from pegboard.evaluation.agent_requests import CallOptions
    from pegboard.evaluation.agent_runs import AgentRun, open_ledger, probe_calling
    from pegboard.llm.hosted import HostedCompleter
    from pegboard.llm.pacing import Pacing

    prepared = _prepared(options)
    completer = HostedCompleter(
        options.model,
        api_base=options.api_base,
        api_key_env=options.api_key_env,
        timeout=options.timeout,
        price=options.price,
    )
    pacing = Pacing(concurrency=options.concurrency, attempts=options.attempts)
    ledger = open_ledger(options.out)
    calling = options.calling
    if calling == "auto":  # a dry run makes no call
        calling = "native" if options.dry_run else probe_calling(completer, ledger, pacing)
    how = CallOptions(calling, options.tool_choice, options.reply_tokens)
    run = AgentRun(
        completer,
        prepared.definitions,
        ledger,
        how,
        pacing,
        options.budget_usd,
        exact=options.exact,
    )
    if options.dry_run:
        return _dry_run(options, prepared, run, how)
    advance = progress_counter("asked the agent")
    evaluation = evaluate_agent(prepared, run, how, completer.name, advance)
    evaluation.write(options.out)
    if options.json:
        print_json(evaluation.to_dict())
    else:
        print_evaluation(evaluation)
    _warn(f"Replies, scores and results are in {options.out}.")
    return 0


def _prepared(options: argparse.Namespace) -> "Prepared":
    from pegboard.evaluation.agent_evaluation import AgentSpec, prepare
    from pegboard.evaluation.golden import read_queries
    from pegboard.evaluation.overhead import check_fallbacks
    from pegboard.evaluation.searcher import Searcher

    queries = read_queries(options.golden)
    llm_options = {}
    if options.strategy_llm and options.strategy_llm_api_base:
        llm_options = {"api_base": options.strategy_llm_api_base}
    searcher = Searcher.open(
        options.board,
        options.channel,
        options.release,
        llm=options.strategy_llm,
        llm_options=llm_options,
    )
    spec = AgentSpec(
        sizes=options.tools,
        ks=options.k,
        among=options.among,
        retrieved=options.retrieved,
        kind=options.retrieval,
        strategy=strategy_option(options.strategy),
        index=options.index,
        limit=options.limit,
        seed=options.seed,
        max_tools=options.max_tools,
        max_tokens=options.max_tokens,
        descriptions=options.descriptions,
    )
    with closing(searcher):
        prepared = prepare(searcher, queries, spec, progress_counter("searched for the queries"))
    retrieval = [prepared.retrieval, *prepared.restricted.values()]
    check_fallbacks([one.overhead for one in retrieval], options.max_fallbacks)
    left_out = prepared.left_out
    missing = list_text(left_out.missing, MISSING_SHOWN)
    for count, reason in (
        (left_out.without_calls, "they have no right calls"),
        (left_out.without_tools, f"they need tools that the release lacks: {missing}"),
    ):
        if count:
            _warn(f"{count} of {len(queries)} golden queries are left out: {reason}")
    for problem in prepared.dropped:
        _warn(f"Not tried: {problem}")
    return prepared


def _dry_run(
    options: argparse.Namespace, prepared: "Prepared", run: "AgentRun", how: "CallOptions"
) -> int:
    with_needed, with_retrieved = prepared.trials(how, options.model)
    estimate = run.estimate([*with_needed, *with_retrieved])
    if options.json:
        sizes = list(prepared.sizes)
        print_json({"queries": len(prepared.cases), "tools": sizes, **estimate.to_dict()})
        return 0
    cost = (
        "cost unknown: give a price (--price)"
        if estimate.cost_usd is None
        else f"at most {estimate.cost_usd:.4f} USD"
    )
    print(
        f"{len(prepared.cases)} queries with {', '.join(map(str, prepared.sizes))} tools: "
        f"{estimate.calls} calls to make, {estimate.answered} answered before\n"
        f"{estimate.prompt_tokens} tokens of prompts (an estimate), at most "
        f"{estimate.completion_tokens} of replies, {cost}"
    )
    return 0


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
