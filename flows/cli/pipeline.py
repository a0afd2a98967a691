"""The pipeline's commands of `pegboard`: init, plan and build. Found under the entry-point group
`pegboard.commands`.
"""

import argparse
import gc
import sys
from pathlib import Path

from flows.cli.options import add_prefect_option, process_seconds, quiet_encoders
from flows.cli.printing import print_run
from flows.cli.prompts import register_prompts
from flows.prefect.server import use_prefect
from pegboard.cli.output import Subparsers, print_json
from pegboard.errors import CompletionError, ConfigurationError, GateFailed, SourceError

BUILD_EPILOG = """\
A build is safe to repeat and to kill: what was listed and encoded is kept, and readers see the old release until the new
one is complete. If nothing changed, no release is made. A source that fails keeps its last good tools, which is said here
and in the JSON; with --strict the exit code is then 3, after publishing the rest.

With [gate] the golden queries are asked of the new release before readers see it. One that does not pass is held: it is
recorded, no channel moves, the exit code is 8, and what is printed says which queries were lost, and to which tools.

examples:
  pegboard build
  pegboard build -c prod/pegboard.toml --catalog github --json
  PREFECT_API_URL=http://127.0.0.1:4200/api pegboard build      the run then shows in that server's UI"""


def register(subparsers: Subparsers) -> None:
    """Add the commands."""
    init: argparse.ArgumentParser = subparsers.add_parser(
        "init",
        help="write a commented pegboard.toml",
        description="Write a commented pegboard.toml to start from.",
    )
    init.add_argument(
        "path",
        nargs="?",
        default="pegboard.toml",
        help="where to write it (default: pegboard.toml)",
    )
    init.add_argument("--stdout", action="store_true", help="print it instead")
    init.add_argument("--force", action="store_true", help="replace a file that is there")
    init.add_argument(
        "--json", action="store_true", help="print what was written as one JSON object"
    )
    init.set_defaults(run=_init)

    plan: argparse.ArgumentParser = subparsers.add_parser(
        "plan",
        help="say what a build would do",
        description="List the sources and say what a build would do: new, changed, removed and "
        "unchanged tools, the texts "
        "to encode, and the calls, tokens and cost of the LLM, if one is configured. Nothing is "
        "published, and no LLM is called.",
    )
    _run_options(plan)
    plan.set_defaults(run=_build, dry_run=True)

    build: argparse.ArgumentParser = subparsers.add_parser(
        "build",
        help="index the catalogs and publish a release",
        description="Index the catalogs of a pegboard.toml and publish a release if anything "
        "changed.",
        epilog=BUILD_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _run_options(build)
    build.add_argument(
        "--dry-run", action="store_true", help="stop after the plan, as `pegboard plan` does"
    )
    build.set_defaults(run=_build)
    register_prompts(subparsers)


def _run_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-c", "--config", default="pegboard.toml", metavar="FILE", help="default: pegboard.toml"
    )
    parser.add_argument(
        "--catalog", default="all", metavar="NAME", help="list only this one anew (default: all)"
    )
    parser.add_argument(
        "--allow-empty",
        action="store_true",
        help="accept an empty listing from a source that had tools",
    )
    parser.add_argument(
        "--strict",
        action="store_true",
        help="end with 3 if any source failed, with 7 if the LLM left something unwritten",
    )
    parser.add_argument(
        "--refresh-neighbours",
        action="store_true",
        help="have descriptions rewritten whose nearest neighbours changed, however far away "
        "those are",
    )
    parser.add_argument(
        "--retry-rejected",
        action="store_true",
        help="ask the LLM again where its reply was rejected in an earlier run",
    )
    add_prefect_option(parser)
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    parser.add_argument("--json", action="store_true", help="print the run as one JSON object")


def _init(options: argparse.Namespace) -> int:
    text = Path(__file__).parents[1].joinpath("pegboard.example.toml").read_text("utf-8")
    if options.stdout:
        print(text, end="")
        return 0
    path = Path(options.path)
    if path.exists() and not options.force:
        raise ConfigurationError(
            f"{path} is there already. Give another path, or --force to replace it."
        )
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be written: {error.strerror}. Choose a folder that can be."
        ) from error
    if options.json:
        print_json({"written": str(path)})
    else:
        print(f"Wrote {path}. Name your sources in it, then: pegboard build -c {path}")
    return 0


def _build(options: argparse.Namespace) -> int:
    gc.set_threshold(100_000, 50, 50)  # imports make objects, not garbage
    from tasks.settings.configuration import load_configuration

    configuration = load_configuration(options.config)
    configuration.catalogs_named(options.catalog)
    import lancedb  # noqa: F401
    import polars  # noqa: F401

    from flows.build import build
    from tasks import progress
    from tasks.enrichment.request_builder import EnrichOptions

    prefect = use_prefect(options.prefect)
    loaded = process_seconds()
    with quiet_encoders(), progress.showing(not options.quiet):
        outcome = build(
            configuration,
            catalog=options.catalog,
            allow_empty=options.allow_empty,
            dry_run=options.dry_run,
            enrich_options=EnrichOptions(options.refresh_neighbours, options.retry_rejected),
            prefect=prefect,
        )
    outcome["seconds"] = _all_phases(outcome["seconds"], loaded, process_seconds(), prefect=prefect)
    if options.json:
        print_json(outcome)
    else:
        print_run(outcome)
    problems = [
        problem for catalog in outcome["catalogs"].values() for problem in catalog["problems"]
    ]
    for problem in [*problems, *outcome["problems"]]:
        print(f"pegboard {options.command}: {problem}", file=sys.stderr)
    if outcome["report"] and outcome["report"]["problem"]:
        print(
            f"pegboard {options.command}: no report: {outcome['report']['problem']}",
            file=sys.stderr,
        )
    if outcome["outcome"] == "held":
        channel, there = outcome["plan"]["channel"], outcome["plan"]["live"]
        stays = f"stays at release {there}" if there else "names no release yet"
        print(
            f"pegboard {options.command}: release {outcome['release']} is held by its gate; "
            f"'{channel}' {stays}.",
            file=sys.stderr,
        )
        return GateFailed.exit_code
    if not options.strict:
        return 0
    return (
        SourceError.exit_code
        if problems
        else CompletionError.exit_code
        if outcome["problems"]
        else 0
    )


def _all_phases(
    phases: dict[str, float], loaded: float, total: float, *, prefect: bool
) -> dict[str, float]:
    """All phases: `load` is our own imports; `prefect` is Prefect's import, its server's start, and
    its work in the flow.
    """
    around = {"prefect": round(total - loaded - sum(phases.values()), 3)} if prefect else {}
    return {"load": round(loaded, 3), **around, **phases, "total": round(total, 3)}
