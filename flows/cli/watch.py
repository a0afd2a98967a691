"""`pegboard watch`: builds the catalogs whose sources change, without a server."""

import argparse
import json
import signal
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from flows.cli.options import add_config_option
from flows.prefect.server import use_prefect
from pegboard.cli.output import Subparsers, add_command, escape_controls
from pegboard.errors import ConfigurationError
from pegboard.formatting import plain

if TYPE_CHECKING:
    from anyio import CancelScope

    from tasks.watch.loop import Watch
    from tasks.watch.watcher import WatchEvent

MIN_INTERVAL = 0.05
EPILOG = """\
Files are noticed at once, MCP servers that announce changes of their list, too. URLs are requested
on the condition that they changed, registries are asked for updates, and everything else is listed
and compared, each at an interval. A change starts `pegboard build` for its catalogs only, one build
at a time; what changes meanwhile is taken up after it. A build that fails, or a source that cannot
be listed, is tried again. A changed pegboard.toml is read again. Ctrl-C and SIGTERM end the watch.

What was built is recorded on the board: a watch that starts again continues, and --once, for cron
and timers, builds what changed since, and ends with the exit code of the build.

examples:
  pegboard watch
  pegboard watch --interval 60 --json
  pegboard watch --once"""


def register_watch(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = add_command(
        subparsers,
        "watch",
        _watch,
        EPILOG,
        help="build catalogs when their sources change",
        description="Notice changes of files, URLs, MCP servers and registries, and build the "
        "catalogs that they are of.",
    )
    add_config_option(parser, "pegboard.toml")
    add = parser.add_argument
    add(
        "--interval",
        type=float,
        default=15.0,
        metavar="SECONDS",
        help="between two looks at a source that does not announce changes (default: 15)",
    )
    add("--once", action="store_true", help="look once, build what changed, and end")
    add(
        "--allow-missing",
        action="store_true",
        help="publish a first release without the catalogs whose sources failed",
    )
    add("--locked", action="store_true", help="hold releases with definitions not approved")
    add(
        "--prefect",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="run each build as a Prefect flow, or directly (default: as `pegboard build`)",
    )
    add("--json", action="store_true", help="print a line of JSON for each event")


def _watch(options: argparse.Namespace) -> int:
    if not options.interval >= MIN_INTERVAL:
        raise ConfigurationError(
            f"--interval {options.interval:g}: expected seconds, at least {MIN_INTERVAL}."
        )
    use_prefect(options.prefect)
    import anyio

    from flows.watch import ProcessBuild
    from tasks.watch.loop import Watch

    build = ProcessBuild(_flags(options))
    report = _print_json if options.json else _print_line
    watch = Watch(options.config, build, report, options.interval)
    return anyio.run(_run, watch, options.once, report)


async def _run(watch: "Watch", once: bool, report: "Callable[[WatchEvent], None]") -> int:
    import anyio

    code = 130 if once else 0  # of a watch that a signal ends
    async with anyio.create_task_group() as group:
        group.start_soon(_stop_at_signal, group.cancel_scope, report)
        if once:
            code = await watch.once()
        else:
            await watch.run()
        group.cancel_scope.cancel()
    return code


async def _stop_at_signal(scope: "CancelScope", report: "Callable[[WatchEvent], None]") -> None:
    import anyio

    from tasks.watch.watcher import WatchEvent

    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for number in signals:
            report(WatchEvent("stopped", signal.Signals(number).name))
            scope.cancel()
            return


def _flags(options: argparse.Namespace) -> list[str]:
    """Return the options that each build gets."""
    flags = [f"--{name}" for name in ("allow-missing", "locked") if _is_set(options, name)]
    if options.prefect is not None:
        flags.append("--prefect" if options.prefect else "--no-prefect")
    return flags


def _is_set(options: argparse.Namespace, name: str) -> bool:
    return bool(getattr(options, name.replace("-", "_")))


def _print_line(event: "WatchEvent") -> None:
    print(plain(f"{datetime.now():%H:%M:%S} {event.kind:<12} {event.text}"), flush=True)


def _print_json(event: "WatchEvent") -> None:
    time = datetime.now().astimezone().isoformat(timespec="milliseconds")
    row = {"time": time, "event": event.kind, "text": event.text, **event.facts}
    print(escape_controls(json.dumps(row, ensure_ascii=False, default=str)), flush=True)
