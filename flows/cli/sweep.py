"""`pegboard sweep`. Found under the entry-point group `pegboard.commands`."""

import argparse
import gc
import sys
from typing import Any, cast

from flows.cli.options import add_prefect_option, quiet_encoders
from flows.prefect.server import use_prefect
from pegboard.cli.output import Subparsers, plain, print_json
from pegboard.errors import ConfigurationError

EPILOG = """\
Every [[indexes]] of the configuration is asked the golden queries by every strategy, among samples of the catalog of every size, each sample
within the next; and what is found is measured at every k. The board for it is built in the output folder, on a channel of its own:
nothing live moves. A sweep that was killed goes on where it stopped: what is done is a file. Options may stand in a table [sweep] of the
configuration, too, under their long names, but --golden, --strategy, --tools, --index and --measure as golden, strategies, tools, indexes, measures.

The best index, strategy and k are those of the whole catalog by the first measure; recommended is the cheapest that is not significantly worse
(paired tests, Holm). Milliseconds are those of this machine, one request at a time; prompt tokens are an estimate.

examples:
  pegboard sweep --golden golden.jsonl
  pegboard sweep --golden golden.jsonl --strategy search --strategy clauses -k 1..20 --tools 100,500,1000,all
  pegboard sweep --golden golden.jsonl --max-tokens 1000 --max-ms 50 --write
  pegboard sweep --golden golden.jsonl --board ./board --release live --json"""


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "sweep",
        help="measure index configurations, encoders, strategies and k, and name the best",
        description="Measure every index configuration with every strategy, at every k, in "
        "catalogs of several sizes; name the best.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "-c", "--config", default="pegboard.toml", metavar="FILE", help="default: pegboard.toml"
    )
    parser.add_argument(
        "--golden", metavar="FILE", help="golden queries as JSON lines (default: [golden] queries)"
    )
    parser.add_argument(
        "--strategy",
        action="append",
        help="a strategy's name or JSON file; may be repeated (default: search, clauses)",
    )
    parser.add_argument(
        "-k",
        action="append",
        metavar="K",
        help="numbers of tools: 5, or 1,5,10, or 1..20 (default)",
    )
    parser.add_argument(
        "--tools",
        metavar="SIZES",
        help="sizes of samples of the catalog (default: 100,500,1000,... as far as smaller, and "
        "all)",
    )
    parser.add_argument(
        "--measure",
        action="append",
        metavar="NAME",
        help="such as Recall, Complete, nDCG; the first decides (default: Recall, Complete)",
    )
    parser.add_argument(
        "--index",
        action="append",
        metavar="NAME",
        help="only this index; may be repeated (default: all)",
    )
    parser.add_argument(
        "--max-tokens",
        type=float,
        metavar="N",
        help="the most prompt tokens that the k tools may take",
    )
    parser.add_argument(
        "--max-ms",
        type=float,
        metavar="N",
        help="the most milliseconds that 95 of 100 requests may take",
    )
    parser.add_argument("--seed", type=int, metavar="N", help="of the samples (default: 0)")
    parser.add_argument(
        "--samples",
        type=int,
        metavar="N",
        help="how many samples of each size are drawn (default: 1)",
    )
    parser.add_argument(
        "--timed",
        type=int,
        metavar="N",
        help="requests of each cell that are timed, 0 for none (default: 20)",
    )
    parser.add_argument(
        "--board",
        metavar="URI",
        help="build the board there, or with --release: the board to measure",
    )
    parser.add_argument(
        "--release",
        metavar="ID",
        help="measure a published release, or a channel's, instead of building one",
    )
    parser.add_argument(
        "--out",
        metavar="DIR",
        help="the folder for results (default: sweep, beside the configuration)",
    )
    parser.add_argument(
        "--llm", metavar="MODEL", help="a LiteLLM model that parts of strategies may ask"
    )
    parser.add_argument(
        "--llm-api-base", metavar="URL", help="where that model is served, if not by its provider"
    )
    parser.add_argument(
        "--write",
        action="store_true",
        help="write the recommended index and strategy into the configuration",
    )
    add_prefect_option(parser)
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    parser.add_argument("--json", action="store_true", help="print the summary as one JSON object")
    parser.set_defaults(run=_sweep)


def _sweep(options: argparse.Namespace) -> int:
    gc.set_threshold(100_000, 50, 50)  # imports make objects, not garbage
    given = _given(options)
    from tasks.settings.sweep import read_sweep

    settings = read_sweep(
        options.config, given, write=options.write
    )  # errors are reported before anything is started
    from tasks import progress

    prefect = use_prefect(options.prefect)
    with quiet_encoders(), progress.showing(not options.quiet):
        if prefect:
            from flows.prefect.flows import sweep as sweep_flow

            outcome: dict[str, Any] = cast("Any", sweep_flow)(
                config=options.config, write=options.write, **given
            )
        else:
            from flows.sweep import sweep

            outcome = sweep(settings, write=options.write)
    if options.json:
        print_json(outcome)
    else:
        _print(outcome)
    for warning in outcome["warnings"]:
        print(f"pegboard sweep: {plain(warning)}", file=sys.stderr)
    if options.write and outcome["written"] is None:
        raise ConfigurationError("Nothing was written: no candidate keeps within the limits.")
    return 0


def _given(options: argparse.Namespace) -> dict[str, Any]:
    """The flow's parameters; None for what was not given."""
    same = (
        "golden", "tools", "max_tokens", "max_ms", "seed", "samples", "timed", "board", "release", "out", "llm", "llm_api_base", "k",
    )  # fmt: skip
    given = {name: getattr(options, name) for name in same}
    given |= {"strategies": options.strategy, "measures": options.measure, "indexes": options.index}
    return {
        name: [value] if name == "tools" and value is not None else value
        for name, value in given.items()
    }


def _print(outcome: dict[str, Any]) -> None:
    """The table of the measure at the k that is recommended, what size does, and the choice."""
    rows = outcome["table"]
    sizes = sorted({row["tools"] for row in rows})
    counts = {row["tools"]: row["n"] for row in rows}
    cells = outcome["cells"]
    print(
        f"release {outcome['release']}: {cells['total']} cells, {cells['finished_before']} of "
        f"them done before, "
        f"{outcome['seconds']['all']:.0f} s. {rows[0]['measure']}@{rows[0]['k']} and its 95 % "
        f"interval; n queries"
    )
    head = [
        "index",
        "strategy",
        *(f"{size} tools, n {counts[size]}" for size in sizes),
        "tokens",
        "ms",
    ]
    lines = [
        [
            index,
            strategy,
            *(_interval(row) for row in own),
            f"{own[-1]['tokens']:.0f}",
            f"{own[-1]['ms_p50'] or 0:.0f}",
        ]
        for (index, strategy), own in _systems(rows).items()
    ]
    _print_table(head, lines)
    if falls := outcome["falls"]:
        print(
            f"\nthe same {falls[0]['n']} queries among {falls[0]['largest']} tools against "
            f"{falls[0]['smallest']}"
        )
        _print_table(
            ["index", "strategy", "difference"],
            [
                [
                    one["index"],
                    one["strategy"],
                    f"{one['value']:+.3f} [{one['low']:+.3f}, {one['high']:+.3f}]",
                ]
                for one in falls
            ],
        )
    print()
    for line in outcome["says"]:
        print(plain(line))
    for name, change in (outcome["written"] or {}).items():
        print(plain(f"Wrote {name} = {change['now']!r} (before: {change['before']!r})."))
    if outcome["written"] is not None:
        print(
            f"A k has no place in a configuration: callers ask for k = "
            f"{outcome['choice']['recommended']['k']}."
        )
    print(f"All of it: {outcome['files']['page']}")


def _systems(rows: list[dict[str, Any]]) -> dict[tuple[str, str], list[dict[str, Any]]]:
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in sorted(rows, key=lambda one: one["tools"]):
        found.setdefault((row["index"], row["strategy"]), []).append(row)
    return found


def _interval(row: dict[str, Any]) -> str:
    return f"{row['value']:.3f} [{row['low']:.3f}, {row['high']:.3f}]"


def _print_table(head: list[str], rows: list[list[str]]) -> None:
    widths = [max(len(row[at]) for row in [head, *rows]) for at in range(len(head))]
    for row in [head, *rows]:
        print(
            "  ".join(
                plain(cell).ljust(width) for cell, width in zip(row, widths, strict=True)
            ).rstrip()
        )
