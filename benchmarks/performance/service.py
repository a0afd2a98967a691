"""`python -m benchmarks.performance.service [--rows 1200] [--json]`: a FastAPI service under load.

A process serves a board of synthetic tools (see `boards`) by FastAPI and uvicorn, which have to be
installed. This process sends as many requests at once as there are clients, over connections that
stay open, waits for all answers, and repeats that. Every request is another one, so each is
encoded. `find` answers by `AsyncBoard.find`; `lancedb` by an encoder and a plain search of the same
vectors in a thread; `empty` by nothing, which is what HTTP costs. Each has a process of its own,
and they take turns. `best` is of the round with the lowest; `MB` is resident memory, after the
first request and after the last.
"""

import asyncio
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from benchmarks.performance.boards import synthetic_board
from benchmarks.performance.service_app import URI
from benchmarks.performance.shared import parser_of, print_rows, requests

SYSTEMS = ("empty", "lancedb", "find")


@contextmanager
def served(uri: str) -> Iterator[tuple[int, int]]:
    """The port and the process of a service of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [sys.executable, "-m", "uvicorn", "--factory", "benchmarks.performance.service_app:app"]
    words += ["--port", str(port), "--log-level", "error", "--timeout-keep-alive", "600"]
    process = subprocess.Popen(words, env={**os.environ, URI: uri})
    try:
        yield port, process.pid
    finally:
        process.terminate()
        process.wait()


class Client:
    """One connection that stays open."""

    def __init__(self, port: int) -> None:
        self._port = port

    async def connect(self) -> None:
        """Connect, as soon as the service is up."""
        while True:
            try:
                self._streams = await asyncio.open_connection("127.0.0.1", self._port)
                return
            except OSError:
                await asyncio.sleep(0.1)

    async def seconds(self, path: str) -> float:
        """How long the answer to a request took. Raises RuntimeError if that is an error."""
        reader, writer = self._streams
        began = time.perf_counter()
        writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = next(line for line in head.lower().split("\r\n") if "content-length" in line)
        body = await reader.readexactly(int(length.split(":")[1]))
        if " 200 " not in head.split("\r\n")[0]:
            raise RuntimeError(f"{path}: {head.splitlines()[0]} {body[:200]!r}")
        return time.perf_counter() - began

    async def close(self) -> None:
        """Close the connection."""
        self._streams[1].close()
        await self._streams[1].wait_closed()


async def bursts(
    ports: dict[str, int], pids: dict[str, int], clients: int, rounds: int
) -> list[dict[str, Any]]:
    """One row for each system, of rounds in which all clients of one ask at once."""
    texts = [requests(number) for number in range(clients)]
    pools = {system: [Client(port) for _ in range(clients)] for system, port in ports.items()}
    first: dict[str, float] = {}
    for system, pool in pools.items():
        for client in pool:
            await client.connect()
        await pool[0].seconds(f"/{system}?q=first")
        first[system] = resident_mb(pids[system])
    taken: dict[str, list[float]] = {system: [] for system in ports}
    whole: dict[str, list[float]] = {system: [] for system in ports}
    for _ in range(rounds + 1):  # the first warms up
        for system, pool in pools.items():
            paths = [f"/{system}?q={quote(next(own))}" for own in texts]
            began = time.perf_counter()
            asked = [client.seconds(path) for client, path in zip(pool, paths, strict=True)]
            taken[system] += await asyncio.gather(*asked)
            whole[system].append(time.perf_counter() - began)
    rows: list[dict[str, Any]] = []
    for system, pool in pools.items():
        own = taken[system][clients:] or taken[system]
        p50, p99 = (float(value) * 1000 for value in np.percentile(own, [50, 99]))
        best = min(float(np.median(own[at : at + clients])) for at in range(0, len(own), clients))
        row = {"system": system, "clients": clients, "p50 ms": p50, "p99 ms": p99}
        row |= {
            "best p50 ms": best * 1000,
            "round ms": 1000 * float(np.median(whole[system])),
        }
        rows.append(row | {"MB at first": first[system], "MB at last": resident_mb(pids[system])})
        for client in pool:
            await client.close()
    return rows


def resident_mb(process: int) -> float:
    """The resident memory of a process; not a number where /proc does not say."""
    try:
        status = Path(f"/proc/{process}/status").read_text("utf-8")
    except OSError:
        return float("nan")
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def measure(folder: Path, rows: int, clients: int, rounds: int) -> list[dict[str, Any]]:
    """One row for each system, each served by a process of its own."""
    from pegboard.encoders import DEFAULT_ENCODER, load_encoder

    encoder = load_encoder(DEFAULT_ENCODER)
    uri = synthetic_board(folder, rows, (encoder.name, encoder.fingerprint))
    ports, pids = dict[str, int](), dict[str, int]()
    with ExitStack() as services:
        for system in SYSTEMS:
            ports[system], pids[system] = services.enter_context(served(uri))
        return asyncio.run(bursts(ports, pids, clients, rounds))


def main() -> None:
    """Print one line for each system."""
    parser = parser_of(__doc__)
    parser.add_argument("--rows", type=int, default=1_200)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measured = measure(Path(folder), options.rows, options.clients, options.rounds)
    print_rows("service", measured, as_json=options.json)


if __name__ == "__main__":
    main()
