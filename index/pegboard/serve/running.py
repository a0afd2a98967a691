"""The gateway as a process: over HTTP, or over stdin and stdout."""

import asyncio
import logging
import os
import signal
import socket
from contextlib import suppress

from fastapi import FastAPI

from pegboard.errors import ConfigurationError
from pegboard.serve.gateway import Gateway
from pegboard.serve.mcp.changes import following_changes
from pegboard.serve.mcp.server import mcp_server

BACKLOG = 2048
"""Most connections that wait to be accepted."""
STOP_SECONDS = 3
"""Seconds in which requests are still answered after SIGTERM or Ctrl-C."""


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address of this machine; port 0 takes a free port.

    Raises:
        ConfigurationError: the address is in use, or is not an address of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        # `create_server` leaves its socket open if one of these fails in it.
        host.encode("idna")
        port.to_bytes(2, "big")
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except (OSError, UnicodeError, OverflowError) as error:
        raise ConfigurationError(
            f"Cannot listen on {host}, port {port}: {getattr(error, 'strerror', None) or error}. "
            f"Expected an address of this machine with --host, such as 127.0.0.1, and with --port "
            f"one from 1024 that no other process listens on; --port 0 takes a free one."
        ) from None


def serve_http(app: FastAPI, listening: socket.socket) -> bool:
    """Serve an application over HTTP until interrupted; return whether it started."""
    import uvicorn

    # Keep idle connections open for longer than clients reuse them.
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=STOP_SECONDS,
    )
    server = uvicorn.Server(config)
    # uvicorn writes tracebacks of the requests that a second Ctrl-C cut off.
    logging.getLogger("uvicorn.error").addFilter(lambda _: not server.force_exit)
    with suppress(KeyboardInterrupt, SystemExit):  # uvicorn exits where the app cannot start
        server.run(sockets=[listening])
    return server.started


async def serve_stdio(gateway: Gateway) -> None:
    """Serve a gateway over stdin and stdout until stdin ends. SIGINT or SIGTERM end the process."""
    gateway.access.stdio_client()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, _start_to_end_process, gateway, number)
    try:
        server = mcp_server(gateway)
        async with following_changes(gateway, server.sessions):
            await server.run_stdio_async(show_banner=False)
    finally:
        await gateway.close()


def _start_to_end_process(gateway: Gateway, number: int) -> None:
    signal.signal(number, signal.SIG_DFL)  # a second one does not wait for the servers
    asyncio.get_running_loop().create_task(_end_process(gateway, number))


async def _end_process(gateway: Gateway, number: int) -> None:
    """End the servers, and then the process: one of its threads still waits for stdin."""
    await gateway.close()
    os._exit(128 + number)
