"""`python -m benchmarks gateway [--sessions 200] [--rounds 10] [--json]`: many agents
at once, each in a session of its own, search and call through `pegboard serve` on loopback.

The board has the 2,000 tools of one live MCP server, which repeats the text of a call. Each round
of a session is a search in words that nobody else asks and a call with a text that nobody else
sends: an answer with another text counts as mixed up, one that does not come as lost. Then one
session after the other goes on until `--requests` are reached, while the gateway's memory is read.
Client, gateway and server share the machine."""

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles
from typing import Any

from benchmarks.performance.shared import parser_of, print_rows, requests

TOOLS = 2_000
MODES = ("legacy", "2026-07-28")
UPSTREAM = Path(__file__).with_name("gateway_upstream.py")
START_SECONDS = 60


@dataclass(slots=True)
class Measured:
    """What the sessions measured: milliseconds by kind of request, and what went wrong."""

    search: list[float] = field(default_factory=list[float])
    call: list[float] = field(default_factory=list[float])
    lost: int = 0
    mixed: int = 0

    def rows(self, mode: str, sessions: int) -> list[dict[str, Any]]:
        """Return a row for each kind of request."""
        rows: list[dict[str, Any]] = []
        for kind, taken in (("search_tools", self.search), ("call_tool", self.call)):
            cuts = quantiles(taken, n=100) if len(taken) > 1 else [0.0] * 99
            rows.append(
                {
                    "protocol": mode,
                    "request": kind,
                    "sessions": sessions,
                    "requests": len(taken),
                    "p50 ms": round(cuts[49], 1),
                    "p99 ms": round(cuts[98], 1),
                    "lost": self.lost,
                    "mixed up": self.mixed,
                }
            )
        return rows


async def session(url: str, mode: str, number: int, rounds: int, measured: Measured) -> None:
    """Search and call in one session, `rounds` times."""
    import mcp

    words = requests(number)
    try:
        async with mcp.Client(url, mode=mode) as client:
            for turn in range(rounds):
                began = time.perf_counter()
                found = await client.call_tool("search_tools", {"query": next(words), "k": 3})
                measured.search.append((time.perf_counter() - began) * 1_000)
                name = found.structured_content["tools"][0]["name"]
                text = f"session {number}, round {turn}, {os.urandom(8).hex()}"
                began = time.perf_counter()
                call = {"name": name, "arguments": {"text": text}}
                answer: Any = await client.call_tool("call_tool", call)
                measured.call.append((time.perf_counter() - began) * 1_000)
                measured.mixed += answer.content[0].text != text
    except Exception as error:
        print(f"session {number}: {error!r:.300}", file=sys.stderr)
        measured.lost += 1


async def at_once(url: str, mode: str, sessions: int, rounds: int) -> Measured:
    """Return what concurrent sessions measured."""
    measured = Measured()
    await asyncio.gather(
        *(session(url, mode, number, rounds, measured) for number in range(sessions))
    )
    return measured


@contextmanager
def serving(folder: Path, encoder: str, tools: int = TOOLS) -> Generator[tuple[str, int]]:
    """Build a board of the server's tools and serve it; gives the address and the process id."""
    server = json.dumps(str(UPSTREAM))
    file = folder / "pegboard.toml"
    file.write_text(
        f'[board]\nuri = "board"\nreport = false\n\n[catalogs.mill]\ntype = "mcp"\n\n'
        f'[catalogs.mill.servers.mill]\ncommand = "{sys.executable}"\n'
        f'args = [{server}, "{tools}"]\n\n[[indexes]]\nencoder = "{encoder}"\n\n'
        f"[serve.calls]\nconcurrency = 1000\n"
    )
    command = [sys.executable, "-m", "pegboard"]
    subprocess.run([*command, "build", "-c", str(file), "--quiet"], check=True, stdout=2)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
    gateway = subprocess.Popen([*command, "serve", "-c", str(file), "--port", str(port)])
    try:
        _wait_for(f"http://127.0.0.1:{port}/healthz")
        yield f"http://127.0.0.1:{port}/mcp", gateway.pid
    finally:
        gateway.terminate()
        gateway.wait()


def memory(process: int) -> float:
    """Return the resident memory of a process in MB; Linux alone tells."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1_024


def memory_rows(url: str, process: int, total: int) -> list[dict[str, Any]]:
    """Return the gateway's memory after each tenth of `total` requests, each in a new session."""
    rows: list[dict[str, Any]] = []
    done = 0
    for step in range(1, 11):
        while done < total * step // 10:
            measured = asyncio.run(at_once(url, MODES[done // 200 % 2], 10, 10))
            done += len(measured.search) + len(measured.call)
            if measured.lost:
                raise SystemExit("A session was lost.")
        rows.append({"requests": done, "memory MB": round(memory(process), 1)})
    return rows


def _wait_for(url: str) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        with suppress(OSError), urllib.request.urlopen(url):
            return
        time.sleep(0.1)
    raise SystemExit(f"{url} did not answer within {START_SECONDS} seconds.")


def main() -> None:
    """Measure, and print two tables."""
    parser = parser_of(__doc__)
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--encoder", default="local/minilm-tools-v1")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(Path(folder), options.encoder) as (url, process),
    ):
        asyncio.run(at_once(url, MODES[0], 5, 2))  # starts the server, loads the encoder
        rows: list[dict[str, Any]] = []
        for mode in MODES:
            measured = asyncio.run(at_once(url, mode, options.sessions, options.rounds))
            rows += measured.rows(mode, options.sessions)
        print_rows("latency", rows, as_json=options.json)
        if options.requests:
            print_rows("memory", memory_rows(url, process, options.requests), as_json=options.json)
