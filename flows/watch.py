"""Builds of a watch, each as a process of its own: `pegboard build`.

So a build that dies, or needs much memory, does not end the watch, and a watch that ends can end
its build.
"""

import asyncio
import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from flows.options import source_problems
from pegboard.errors import GateFailed
from pegboard.text.redaction import redact
from tasks.settings.configuration import Configuration
from tasks.watch.loop import BuildResult

END_SECONDS = 10.0
"""Seconds that a build has to end when the watch ends."""


class ProcessBuild:
    """Builds catalogs by `pegboard build`, in a process for each build.

    Args:
        flags: further options of the command, such as `--allow-missing`.
    """

    def __init__(self, flags: Sequence[str] = ()) -> None:
        self._flags = flags

    async def __call__(self, configuration: Configuration, catalogs: list[str]) -> BuildResult:
        """Build some catalogs; return how it ended."""
        names = "all" if catalogs == [*configuration.catalogs] else ",".join(catalogs)
        command = [sys.executable, "-m", "pegboard", "build", "--config", str(configuration.file)]
        process = await asyncio.create_subprocess_exec(
            *command,
            *("--catalog", names, "--json", "--quiet", *self._flags),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,  # Ctrl-C reaches the watch, which ends the build
        )
        try:
            output, errors = await process.communicate()
        except asyncio.CancelledError:
            await asyncio.shield(_end(process))
            raise
        return _result(process.returncode or 0, output, errors)


async def _end(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        process.terminate()
    try:
        await asyncio.wait_for(process.wait(), END_SECONDS)
    except TimeoutError:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _result(code: int, output: bytes, errors: bytes) -> BuildResult:
    try:
        outcome: dict[str, Any] = json.loads(output)
    except ValueError:
        outcome = {}
    if code not in (0, GateFailed.exit_code) or "outcome" not in outcome:
        problem = outcome.get("error", {}).get("message")
        text = redact(problem or errors.decode("utf-8", "replace").strip())
        facts = {"exit_code": code, "problem": text}
        return BuildResult(text or f"exit code {code}", False, {}, code or 1, facts)
    return result_of(outcome, code)


def result_of(outcome: dict[str, Any], code: int = 0) -> BuildResult:
    """Return how a build ended, from what `pegboard build --json` prints."""
    failed = {
        name: "; ".join(row["problems"])
        for name, row in outcome["catalogs"].items()
        if row["problems"]
    }
    plan = outcome["plan"]
    counts = ", ".join(f"{len(plan[kind])} {kind}" for kind in ("new", "changed", "removed"))
    text = f"{outcome['outcome']}, release {outcome['release']}, {counts}"
    facts = {
        "outcome": outcome["outcome"],
        "release": outcome["release"],
        "problems": failed,
        "exit_code": code,
    }
    return BuildResult("; ".join([text, *source_problems(outcome)]), True, failed, code, facts)
