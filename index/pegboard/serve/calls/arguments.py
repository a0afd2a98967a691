"""The arguments of a call against the input schema of its tool, before anything is called."""

import asyncio
import hashlib
import json
import logging
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from pegboard.records import Tool
from pegboard.serve.calls.results import CallProblem

WORKER = Path(__file__).with_name("argument_worker.py")
MAX_WORKERS = 2
"""Processes that check at once; callers let in no more."""

log = logging.getLogger("pegboard.serve")


class ArgumentCheck:
    """Checks arguments in processes of its own: a schema or arguments that take long to check cost
    their call alone.

    A schema that cannot be used checks nothing: the tool itself will judge.
    """

    def __init__(self) -> None:
        self._workers: list[asyncio.subprocess.Process] = []
        self._idle: list[asyncio.subprocess.Process] = []

    async def check(self, tool: Tool, arguments: Mapping[str, Any]) -> None:
        """Raise CallProblem with all that is wrong with the arguments, or if that takes too much
        time or memory to tell.
        """
        line = _request(tool, arguments)
        if line is None:
            return
        problems = await self._problems(line)
        if problems is None:
            log.warning("The arguments of a call of %s took too long to check.", tool.id)
            raise CallProblem(
                "invalid",
                f"It takes too long to check these arguments against the inputSchema of {tool.id}, "
                f"and it was not called. Send less, or tell whoever publishes the tool that its "
                f"schema is too complex.",
            )
        if problems:
            lines = "\n".join(f"- {problem}" for problem in problems)
            raise CallProblem(
                "invalid",
                f"The arguments do not fit the tool's inputSchema, and it was not called:\n{lines}",
            )

    async def close(self) -> None:
        """End the processes."""
        workers, self._workers, self._idle = self._workers, [], []
        await asyncio.gather(*(_end(worker) for worker in workers))

    async def _problems(self, line: bytes) -> list[str] | None:
        """Return what a process answers; None if that ended it."""
        worker = await self._worker()
        answer = await _answer(worker, line)
        if answer is not None:
            self._idle.append(worker)
        return answer

    async def _worker(self) -> asyncio.subprocess.Process:
        """Return a process that is ready."""
        while self._idle:
            if (worker := self._idle.pop()).returncode is None:
                return worker
        self._workers = [worker for worker in self._workers if worker.returncode is None]
        worker = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", str(WORKER)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        self._workers.append(worker)
        if await _answer(worker, b"") is None:
            raise CallProblem("failed", "The process that checks arguments does not start.")
        return worker


def _request(tool: Tool, arguments: Mapping[str, Any]) -> bytes | None:
    """Return the line for a process; None for a schema that cannot be used."""
    try:
        # Halves of characters are refused here: no tool could be sent them.
        text = json.dumps(dict(arguments), allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise CallProblem(
            "invalid",
            f"The arguments are not JSON, or too deep: {error!s:.200}. {tool.id} was not called.",
        ) from None
    try:
        schema = json.dumps(dict(tool.input_schema))
    except (TypeError, ValueError, RecursionError):
        return None
    digest = hashlib.sha256(schema.encode()).hexdigest()
    return f'["{digest}", {schema}, '.encode() + text + b"]\n"


async def _answer(worker: asyncio.subprocess.Process, line: bytes) -> list[str] | None:
    """Return the next answer of a process; one that gives none to us is ended."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    try:
        with suppress(ConnectionError):
            worker.stdin.write(line)
            await worker.stdin.drain()
        answer = await worker.stdout.readline()
    except BaseException:
        _kill(worker)
        raise
    return json.loads(answer) if answer.endswith(b"\n") else None


def _kill(worker: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        worker.kill()


async def _end(worker: asyncio.subprocess.Process) -> None:
    _kill(worker)
    with suppress(ConnectionError):
        await worker.communicate()
