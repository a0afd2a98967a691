"""`pegboard doctor`: what is missing, and how to get it."""

import argparse
import importlib.util
import platform
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, entry_points, version
from typing import Literal

from pegboard.cli.output import (
    Subparsers,
    add_command,
    add_json_option,
    add_options,
    default_board,
    print_json,
)
from pegboard.encoders import DEFAULT_ENCODER, UNDERSTOOD, load_encoder
from pegboard.errors import PegboardError
from pegboard.extras import install_command
from pegboard.formatting import count_text

GROUP = "pegboard.checks"
"""Entry points of other distributions: functions that take the parsed options and yield checks."""

MARKS = {"good": "ok", "missing": "missing", "wrong": "WRONG"}


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at. `missing` is only needed by some; `wrong` makes the command end
    with 1.
    """

    what: str
    state: Literal["good", "missing", "wrong"]
    say: str


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = add_command(
        subparsers,
        "doctor",
        _doctor,
        help="say what is missing, and how to get it",
        description="Look at the installation, the configuration and the board, and say what is "
        "missing and how to get it. Ends with 1 if something is wrong; something optional that is "
        "missing is no fault.",
    )
    parser.add_argument(
        "--board", metavar="URI", help="a board to look at (default: as for other commands, if any)"
    )
    add_options(parser, "--hosted-encoder")
    parser.add_argument("-c", "--config", metavar="FILE", help="a pegboard.toml to look at")
    add_json_option(parser, "wrong, checks")


def _doctor(options: argparse.Namespace) -> int:
    checks = [*_installation(), *_board(options)]
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        more: Callable[[argparse.Namespace], Iterable[Check]] = point.load()
        checks += more(options)
    wrong = any(check.state == "wrong" for check in checks)
    if options.json:
        print_json({"wrong": wrong, "checks": [asdict(check) for check in checks]})
    else:
        for check in checks:
            print(f"{MARKS[check.state]:<7}  {check.what}: {check.say}")
    return 1 if wrong else 0


def _installation() -> Iterable[Check]:
    yield Check("python", "good", platform.python_version())
    yield Check("pegboard", "good", version("pegboard"))
    for package in ("lancedb", "pyarrow"):
        try:
            yield Check(package, "good", version(package))
        except PackageNotFoundError:
            yield Check(package, "wrong", "not installed. In the checkout: pip install ./index")
    try:
        encoder = load_encoder(DEFAULT_ENCODER)
        yield Check("embedded encoder", "good", encoder.fingerprint)
    except PegboardError as error:
        yield Check("embedded encoder", "missing", str(error))
    for package, what in (("litellm", "hosted encoders"), ("fastembed", "fastembed encoders")):
        if importlib.util.find_spec(package):
            yield Check(what, "good", f"{package} {version(package)}")
        else:
            yield Check(what, "missing", f"optional. Install it: {install_command(package)}")


def _board(options: argparse.Namespace) -> Iterable[Check]:
    import pegboard

    try:
        # With --config the board of that file is checked (by the pipeline), not this folder's.
        uri = options.board or (None if options.config else default_board())
        if uri is None:
            return
        board = pegboard.open(uri)
    except PegboardError as error:
        yield Check("board", "wrong", str(error))
        return
    release = board.release
    yield Check(
        "board",
        "good",
        f"release {release.id}, {count_text(release.manifest['counts']['tools'], 'tool')}",
    )
    for name, index in release.manifest["indexes"].items():
        what = f"index {name}"
        try:
            hits = board.search("what can these tools do?", 1, index=name, mode="vector")
            yield Check(
                what,
                "good",
                f"{index['encoder']} answers" + ("" if hits else ", the board is empty"),
            )
        except PegboardError as error:
            yield Check(what, "wrong", str(error))
        if (understood := index.get("understood", 1.0)) < UNDERSTOOD:
            yield Check(
                f"languages of {name}",
                "missing",
                f"{index['encoder']} does not know the languages of {1 - understood:.0%} of the "
                "texts. Take a multilingual encoder: docs/how-to/other-languages.md",
            )
