"""`pegboard costs`: what a board's LLM calls cost so far, by model, product and run."""

import argparse
from typing import Any

from flows.cli.options import add_config_option
from pegboard.cli.output import Subparsers, add_command, add_json_option, print_json
from pegboard.cli.tables import count_text, print_table

GROUPS = {"models": "answered_by", "products": "product", "runs": "run"}


def register_costs(subparsers: Subparsers) -> None:
    """Add the command."""
    costs = add_command(
        subparsers,
        "costs",
        _costs,
        help="show what the LLM cost so far",
        description="Show the replies, tokens and USD that enrichment has used on this board, by "
        "model, product and run, from the ledger of its lake. A run under way is included.",
    )
    add_config_option(costs, "pegboard.toml")
    add_json_option(costs, "the sums")


def _costs(options: argparse.Namespace) -> int:
    from tasks.enrichment.ledger import cost_sums, paid_replies
    from tasks.lake.files import Lake
    from tasks.settings.configuration import load_configuration

    uri = load_configuration(options.config).uri
    replies = paid_replies(Lake(uri))
    groups = {name: cost_sums(replies, column) for name, column in GROUPS.items()}
    total = cost_sums(replies)[0]
    if options.json:
        print_json({"board": uri, "total": total, **groups})
        return 0
    if not total["replies"]:
        print(f"No LLM reply was paid for on {uri}.")
        return 0
    for name, column in GROUPS.items():
        rows = [_row(str(sums[column])[:32], sums) for sums in groups[name]]
        print_table([name, "first reply", *_HEADER], rows)
        print()
    print_table(["all", "first reply", *_HEADER], [_row("", total)])
    return 0


_HEADER = ("replies", "accepted", "prompt tokens", "reply tokens", "USD")


def _row(name: str, sums: dict[str, Any]) -> list[str]:
    usd = f"{sums['cost_usd']:.4f}"
    if sums["unpriced"]:
        usd += f" and {count_text(sums['unpriced'], 'reply', 'replies')} of unknown price"
    counts = ("replies", "accepted", "prompt_tokens", "completion_tokens")
    return [name, sums["first"][:16].replace("T", " "), *(f"{sums[key]:,}" for key in counts), usd]
