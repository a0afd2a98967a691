"""An MCP server over stdin and stdout: its process, and the messages that it reads and writes.

The SDK's client of such servers reads lines of any length, in time that grows with the square of
the length, and waits for a server's output in a way that no cancellation ends. Here a line has a
limit, and the process group is killed whatever interrupts the end of the session."""

import asyncio
import os
import re
import signal
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

import anyio
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter

from pegboard.servers.config import Server, ServerProblem

FLUSH_SECONDS = 0.5
"""Seconds in which the last messages to a server are written before its stdin is closed."""
EXIT_SECONDS = 2.0
"""Seconds that a server has to exit after its stdin was closed, and again after SIGTERM."""
POLL_SECONDS = 0.01
"""Seconds between two looks at whether a process has exited."""
CHUNK = 65_536
"""Most bytes of one read."""
MAX_SKIPPED = 256_000_000
"""Most bytes of one line; a server that writes more of it is ended."""
ENDS = 4_096
"""Bytes of the beginning and of the end of a skipped line that are kept to find the id."""
TOO_LARGE = "pegboard/too-large"
"""The data of the error that answers the request of a skipped message."""
_GAP = rb"\s{0,20}"
_VERSION = rb'"jsonrpc"%b:%b"2\.0"' % (_GAP, _GAP)
_START = rb"%b\{%b(?:%b%b,%b)?" % (_GAP, _GAP, _VERSION, _GAP, _GAP)
_ID = rb'"id"%b:%b(\d{1,30})%b' % (_GAP, _GAP, _GAP)
_RESULT = rb'"(?:result|error)"'
_ID_FIRST = re.compile(
    rb"%b%b,%b(?:%b%b,%b)?%b" % (_START, _ID, _GAP, _VERSION, _GAP, _GAP, _RESULT)
)
_RESULT_FIRST = re.compile(_START + _RESULT)
_ID_LAST = re.compile(rb",%b%b(?:,%b%b%b)?\}%b\Z" % (_GAP, _ID, _GAP, _VERSION, _GAP, _GAP))
"""Match the id of an answer that names it before or after its result, as all SDKs do."""


class ServerProcess:
    """The process of a server, which leads a group of its own.

    Args:
        process: with pipes for stdin and stdout, started in a new session.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        assert process.stdin is not None
        assert process.stdout is not None
        self.stdin = process.stdin
        self.stdout = process.stdout

    @property
    def exit_code(self) -> int | None:
        """Its exit code; negative is the number of a signal. None while it runs."""
        return self._process.returncode

    def signal_group(self, number: int) -> None:
        """Send a signal to the process and all its descendants in its group."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    async def exited(self, seconds: float) -> bool:
        """Return whether it exits in time. A descendant that holds its pipes does not count."""
        with anyio.move_on_after(seconds):
            while self.exit_code is None:
                await anyio.sleep(POLL_SECONDS)
        return self.exit_code is not None

    async def stop(self) -> None:
        """End it as the protocol says: close its stdin, then SIGTERM, then SIGKILL. If the wait is
        interrupted, SIGKILL follows at once.
        """
        try:
            self.stdin.close()
            if not await self.exited(EXIT_SECONDS):
                self.signal_group(signal.SIGTERM)
                await self.exited(EXIT_SECONDS)
            self.signal_group(signal.SIGKILL)
            await self.exited(EXIT_SECONDS)
        finally:
            self.kill()

    def kill(self) -> None:
        """Kill the group, and close the pipes."""
        self.signal_group(signal.SIGKILL)
        # Nothing public closes stdout while a descendant still holds its other end.
        self._process._transport.close()  # pyright: ignore


async def start_process(
    server: Server, environment: Mapping[str, str], stderr: TextIO
) -> ServerProcess:
    """Start the process of a server. Raises OSError if that fails.

    Args:
        environment: variables besides those that the SDK passes (HOME, PATH, ...).
    """
    process = await asyncio.create_subprocess_exec(
        server.command,
        *server.args,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=stderr,
        env={**get_default_environment(), **environment},
        cwd=Path(server.cwd),
        start_new_session=True,
    )
    return ServerProcess(process)


@asynccontextmanager
async def message_streams(process: ServerProcess, max_line: int) -> AsyncGenerator[tuple[Any, Any]]:
    """Yield a stream of the messages that a server writes, and one of those that it reads. Its
    process is ended with the block. The last message of a server that cannot be read any further is
    a `ServerProblem`.

    Args:
        max_line: most bytes of one message. A longer one is skipped, and its request answered with
            an error.
    """
    to_session, from_server = anyio.create_memory_object_stream[Any](0)
    to_server, from_session = anyio.create_memory_object_stream[SessionMessage](0)
    written = anyio.Event()

    async def read() -> None:
        async with to_session:
            with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
                try:
                    async for item in _lines(process.stdout, max_line):
                        await to_session.send(item)
                except ServerProblem as problem:
                    process.signal_group(signal.SIGKILL)
                    await to_session.send(problem)
        # A server that cannot write may not exit.
        while await process.stdout.read(CHUNK):
            pass

    async def write() -> None:
        try:
            async with from_session:
                async for item in from_session:
                    line = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                    process.stdin.write(line.encode("utf-8", "replace") + b"\n")
                    await process.stdin.drain()
        except OSError:
            # It may still run: end the stream, so that no request waits for an answer.
            await to_session.aclose()
        finally:
            written.set()

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            tasks.start_soon(write)
            try:
                yield from_server, to_server
            finally:
                try:
                    with anyio.CancelScope(shield=True):
                        from_server.close()
                        to_server.close()
                        with anyio.move_on_after(FLUSH_SECONDS):
                            await written.wait()
                        await process.stop()
                finally:
                    process.kill()  # if the flush was interrupted
                    tasks.cancel_scope.cancel()
    finally:
        for stream in (to_session, from_server, to_server, from_session):
            stream.close()


async def _lines(stdout: asyncio.StreamReader, max_line: int) -> AsyncGenerator[Any]:
    """Yield the messages of a server; for a line that is none, the error of the SDK.

    Raises:
        ServerProblem: a line does not end, or is too long for an answer.
    """
    line = bytearray()
    size = 0
    while True:
        chunk = await stdout.read(CHUNK)
        if not chunk:
            return
        first, *others = chunk.split(b"\n")
        for number, part in enumerate((first, *others)):
            if number:
                if size > max_line:
                    message = _too_long(bytes(line), max_line)
                else:
                    message = _parsed(bytes(line)) if line.strip() else None
                if message is not None:
                    yield message
                line.clear()
                size = 0
            size += len(part)
            line += part
            if size > MAX_SKIPPED:
                raise ServerProblem(
                    f"it wrote {MAX_SKIPPED:,} bytes without the end of a line; correct the server"
                )
            if size > max_line:
                del line[ENDS:-ENDS]


def _parsed(line: bytes) -> Any:
    """Return the message of a line, or the error that says that it is none."""
    text = line.decode("utf-8", "replace")
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(text, by_name=False))
    except ValueError as error:
        return error


def _too_long(ends: bytes, max_line: int) -> Any:
    """Return the error that answers the request of a skipped message; None if it answers none.

    Args:
        ends: the beginning and the end of the message.

    Raises:
        ServerProblem: it may be an answer, and does not say of which request.
    """
    head = ends[:ENDS]
    found = _ID_FIRST.match(head)
    if found is None and _RESULT_FIRST.match(head):
        found = _ID_LAST.search(ends[-ENDS:])
    problem = f"a message of more than {max_line:,} bytes"
    if found is not None:
        error = ErrorData(code=INTERNAL_ERROR, message=problem, data=TOO_LARGE)
        return SessionMessage(JSONRPCError(jsonrpc="2.0", id=int(found[1]), error=error))
    if head.lstrip().startswith(b"{") and b'"method"' not in head:
        raise ServerProblem(f"it wrote {problem}; correct the server")
    return None
