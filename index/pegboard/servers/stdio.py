"""The transport to a server over stdio: as that of the SDK, but what the server sends is bounded
and sifted."""

import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, TextIO

import anyio

from pegboard.servers.config import Server
from pegboard.servers.traffic import Traffic

EXIT_SECONDS = 2.0
"""For a server to end by itself once its input is closed, and again after it was asked to."""
POLL_SECONDS = 0.01
GONE = (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError)


@asynccontextmanager
async def stdio_streams(
    server: Server, environment: Mapping[str, str], errlog: TextIO, traffic: Traffic
) -> AsyncGenerator[Any]:
    """Start a server, and yield the streams of its messages; it ends with the block."""
    from mcp.shared.message import SessionMessage
    from mcp_types import jsonrpc_message_adapter

    process = await anyio.open_process(
        [server.command, *server.args],
        env=dict(environment),
        stderr=errlog,
        cwd=server.cwd,
        start_new_session=True,
    )
    incoming, read_stream = anyio.create_memory_object_stream[Any](0)
    write_stream, outgoing = anyio.create_memory_object_stream[Any](0)

    async def receive() -> None:
        assert process.stdout is not None
        async with incoming:
            with suppress(*GONE):
                async for line in traffic.lines(process.stdout):
                    try:
                        message = jsonrpc_message_adapter.validate_json(
                            traffic.sift(line), by_name=False
                        )
                    except ValueError as error:
                        await incoming.send(error)
                    else:
                        await incoming.send(SessionMessage(message))
        # A server that is stuck writing cannot read that it is to end.
        with suppress(*GONE, anyio.EndOfStream), anyio.CancelScope(shield=True):
            while True:
                await process.stdout.receive()

    async def send() -> None:
        assert process.stdin is not None
        with suppress(*GONE):
            async for message in outgoing:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                await process.stdin.send(f"{text}\n".encode())
            return
        await incoming.aclose()  # nothing will be answered any more

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(receive)
        tasks.start_soon(send)
        try:
            yield read_stream, write_stream
        finally:
            with anyio.CancelScope(shield=True):
                read_stream.close()
                write_stream.close()
                await _end(process)
            for stream in (incoming, outgoing):
                stream.close()
            tasks.cancel_scope.cancel()


async def _end(process: Any) -> None:
    """End a server with all that it started: close its input, wait, then kill its group."""
    with suppress(*GONE):
        await process.stdin.aclose()
    if not await _has_ended(process):
        if sys.platform == "win32":
            process.kill()
        else:
            from mcp.os.posix.utilities import terminate_posix_process_tree

            await terminate_posix_process_tree(process, EXIT_SECONDS)
        await _has_ended(process)
    with suppress(*GONE):
        await process.stdout.aclose()
    # Its pipes stay open as long as a child holds them, and nothing public closes them.
    transport: Any = getattr(getattr(process, "_process", None), "_transport", None)
    with suppress(PermissionError, AttributeError):
        transport.close()


async def _has_ended(process: Any) -> bool:
    """Wait for the process alone: its children may hold its pipes."""
    with anyio.move_on_after(EXIT_SECONDS):
        while process.returncode is None:
            await anyio.sleep(POLL_SECONDS)
    return process.returncode is not None
