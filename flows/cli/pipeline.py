"""The pipeline's commands `pegboard init`, `plan` and `build`, found under the entry-point group
`pegboard.commands`, which registers the others.
"""

import argparse
import time
from dataclasses import fields
from pathlib import Path
from typing import Any

from flows.cli.deploy import register_deploy
from flows.cli.lint import register_lint
from flows.cli.lock import register_lock
from flows.cli.options import (
    add_config_option,
    collect_garbage_rarely,
    quiet_encoders,
    write_file,
)
from flows.cli.watch import register_watch
from flows.options import BuildOptions, failure_of, source_problems
from flows.prefect.server import use_prefect
from pegboard.cli.output import (
    BOARD_SOURCES,
    CONFIGURATIONS,
    Subparsers,
    add_command,
    add_json_option,
    add_options,
    print_error,
    print_json,
)
from pegboard.errors import ConfigurationError

BUILD_EPILOG = """\
Builds are safe to repeat and to interrupt: listings and vectors are kept, and readers see the old
release until the new one is complete. Transient failures of sources are retried. A source that
still fails keeps its last good tools and is reported; without any, a first build publishes nothing,
unless you pass --allow-missing. A source that suddenly lacks more than 30 % of its tools ([board]
max_removal) keeps them, too, until you pass --allow-removal.

With [gate] the golden queries are searched in the new release before readers see it. A release that
fails is held: it is recorded, no channel moves, the exit code is 8, and the output lists the
queries it lost, and to which tools.

examples:
  pegboard build
  pegboard build -c prod/pegboard.toml --catalog github --json
  PREFECT_API_URL=http://127.0.0.1:4200/api pegboard build      shows the run in that server's UI"""


def register(subparsers: Subparsers) -> None:
    """Add the commands, and the board of this folder's pegboard.toml for those of the reader."""
    BOARD_SOURCES["pegboard.toml"] = configured_board
    CONFIGURATIONS["pegboard.toml"] = _take_configuration
    _register_init(subparsers)
    plan = add_command(
        subparsers,
        "plan",
        _build,
        help="show what a build would do",
        description="List the sources and show what a build would do: new, changed, removed and "
        "unchanged tools, the texts to encode, and the calls, tokens and cost of the LLM, if one "
        "is configured. Nothing is published, and no LLM is called.",
    )
    _add_build_options(plan, dry_run=True)
    build_parser = add_command(
        subparsers,
        "build",
        _build,
        BUILD_EPILOG,
        help="index the catalogs and publish a release",
        description="Index the catalogs of a pegboard.toml, and publish a release if anything "
        "changed.",
    )
    _add_build_options(build_parser, dry_run=False)
    register_lock(subparsers)
    register_lint(subparsers)
    register_deploy(subparsers)
    register_watch(subparsers)


def configured_board() -> str | None:
    """Return the board of the pegboard.toml in this folder, if there is one."""
    if not Path("pegboard.toml").is_file():
        return None
    from tasks.settings.configuration import load_configuration

    return load_configuration("pegboard.toml").uri


def _take_configuration(config: str | None) -> None:
    if Path(config or "pegboard.toml").is_file():
        from tasks.settings.configuration import take_board_settings

        take_board_settings(config or "pegboard.toml")


def _register_init(subparsers: Subparsers) -> None:
    init = add_command(
        subparsers,
        "init",
        _init,
        help="write a commented pegboard.toml and three example tools",
        description="Write a commented pegboard.toml to start from, and beside it functions.json "
        "with three example tools, unless there is one.",
    )
    init.add_argument(
        "path", nargs="?", default="pegboard.toml", help="the file (default: pegboard.toml)"
    )
    add_json_option(init, "the paths")


def _add_build_options(parser: argparse.ArgumentParser, *, dry_run: bool) -> None:
    """Add an option for each field of BuildOptions but `dry_run`, which the command decides."""
    add_config_option(parser, "pegboard.toml")
    parser.set_defaults(dry_run=dry_run)
    for option in fields(BuildOptions):
        flag, text = f"--{option.name.replace('_', '-')}", option.metadata["help"]
        if option.type is str:
            parser.add_argument(flag, default=option.default, metavar="NAME", help=text)
        elif option.name != "dry_run":
            parser.add_argument(flag, action="store_true", help=text)
    parser.add_argument(
        "--texts", action="store_true", help="print the old and new text of changed tools"
    )
    add_options(parser, "--quiet")
    parser.add_argument(
        "--prefect",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="run as a Prefect flow, or directly (default: as a flow if PREFECT_API_URL names a "
        "server; with --prefect, on the server of Prefect's profile, or one that is started for "
        "the run)",
    )
    add_json_option(parser, "the run")


def _init(options: argparse.Namespace) -> int:
    path, examples = Path(options.path), Path(__file__).parents[1]
    if path.exists():
        raise ConfigurationError(f"{path} exists already. Give another path, or remove it first.")
    files = {path: (examples / "pegboard.example.toml").read_text("utf-8")}
    if not (tools := path.with_name("functions.json")).exists():  # what the example lists
        files[tools] = (examples / "functions.example.json").read_text("utf-8")
    for file, content in files.items():
        write_file(file, content)
    if options.json:
        print_json({"written": [str(file) for file in files]})
        return 0
    config = "" if options.path == "pegboard.toml" else f" -c {path}"
    names = " and ".join(map(str, files))
    print(f"Wrote {names}. Try `pegboard plan{config}` and `pegboard build{config}`; then name")
    print(f"your own sources in {path}.")
    return 0


def _build(options: argparse.Namespace) -> int:
    collect_garbage_rarely()
    from flows.build import build
    from flows.cli.printing import run_lines
    from tasks.runtime import progress
    from tasks.settings.configuration import load_configuration

    configuration = load_configuration(options.config)
    configuration.catalogs_named(options.catalog)
    values = {option.name: getattr(options, option.name) for option in fields(BuildOptions)}
    prefect, start = use_prefect(options.prefect), time.monotonic()
    with quiet_encoders(), progress.showing(not options.quiet):
        outcome = build(configuration, BuildOptions(**values), prefect=prefect)
    outcome["seconds"]["total"] = round(time.monotonic() - start, 3)
    if options.json:
        print_json(outcome)
    else:
        for line in run_lines(outcome, texts=options.texts):
            print(line)
    for problem in _problems(outcome):
        print_error(f"pegboard {options.command}", problem)
    failure = failure_of(outcome, strict=options.strict)
    return failure.exit_code if failure else 0


def _problems(outcome: dict[str, Any]) -> list[str]:
    from tasks.steps.suspicious import warnings_of

    problems = [*source_problems(outcome), *outcome["problems"], *outcome["advice"]]
    problems += warnings_of(outcome["suspicious"])
    if outcome["report"] and outcome["report"]["problem"]:
        problems.append(f"no report: {outcome['report']['problem']}")
    problems += [
        f"{name} did not finish, which does not change the outcome: {problem}"
        for name, problem in outcome["unfinished"].items()
    ]
    if outcome["outcome"] == "held":
        live = outcome["plan"]["live"]
        stays = f"stays at release {live}" if live else "has no release yet"
        problems.append(
            f"release {outcome['release']} is held by its gate; "
            f"'{outcome['plan']['channel']}' {stays}."
        )
    return problems
