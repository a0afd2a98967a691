"""The options that choose the systems to evaluate: a release, strategies, indexes and an LLM."""

import argparse
from itertools import product
from typing import TYPE_CHECKING

from pegboard.cli.find import strategy_option
from pegboard.cli.output import add_board_option, add_channel_option
from pegboard.errors import QueryError

if TYPE_CHECKING:
    from pegboard.evaluation.searcher import Searcher
    from pegboard.evaluation.systems import ReleaseSystem


def add_golden_options(parser: argparse.ArgumentParser) -> None:
    """Add the file of golden queries, and --board, --channel and --release."""
    parser.add_argument("golden", help="golden queries as JSON lines")
    add_board_option(parser)
    add_channel_option(parser)
    parser.add_argument(
        "--release", help="a release to ask instead of a channel, by id or a prefix of it"
    )


def add_system_options(parser: argparse.ArgumentParser) -> None:
    """Add --strategy and --index, which may be repeated, --limit, --llm and --quiet."""
    parser.add_argument(
        "--strategy",
        action="append",
        metavar="STRATEGY",
        help="a strategy's name or JSON file; may be repeated (default: the release's)",
    )
    parser.add_argument(
        "--index",
        action="append",
        metavar="NAME",
        help="an index; may be repeated (default: the strategy's)",
    )
    parser.add_argument("--limit", type=int, metavar="N", help="ask the first N queries only")
    parser.add_argument("--llm", metavar="MODEL", help="a LiteLLM model for parts of a strategy")
    parser.add_argument(
        "--llm-api-base", metavar="URL", help="where that model is served, if not by its provider"
    )
    parser.add_argument("--quiet", action="store_true", help="show no progress")


def open_searcher(options: argparse.Namespace) -> "Searcher":
    """Open the release that the options name. Raises QueryError for options without effect."""
    from pegboard.evaluation.searcher import Searcher

    if options.llm_api_base and not options.llm:
        raise QueryError("--llm-api-base needs a model. Expected --llm MODEL beside it.")
    llm_options = {"api_base": options.llm_api_base} if options.llm_api_base else {}
    return Searcher.open(
        options.board,
        options.channel,
        options.release,
        llm=options.llm,
        llm_options=llm_options,
    )


def chosen_systems(options: argparse.Namespace, searcher: "Searcher") -> "list[ReleaseSystem]":
    """Every strategy of the options in every index of them."""
    from pegboard.evaluation.systems import ReleaseSystem

    strategies = [strategy_option(name) for name in options.strategy or [None]]
    return [
        ReleaseSystem.resolve(searcher, strategy, index)
        for strategy, index in product(strategies, options.index or [None])
    ]
