"""An MCP server over stdio without the SDK, to misbehave in the way its first argument names."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

GOOD = {
    "name": "good",
    "description": "Does good.",
    "inputSchema": {"type": "object", "properties": {}},
}

CURSORS = {
    "numbers": {"null": 0, "0": 1, "1": False},
    "circle": {"null": "a", '"a"': "b", '"b"': "a"},
    "strange": {"null": ["a"]},
    "blank": {"null": ""},
}
"""The cursor of the next page by that of a page, as JSON."""


def main(behaviour: str, *rest: str) -> None:
    if behaviour == "die":
        print("INFO Processing request of type ListToolsRequest", file=sys.stderr)
        print("Traceback (most recent call last):", file=sys.stderr)
        print(
            f"ImportError: no module named soup; token {os.environ.get('SECRET_TOKEN')}",
            file=sys.stderr,
        )
        sys.exit(1)
    if behaviour == "flaky":
        start_or_die(Path(rest[0]), rest[1], int(rest[2]))
    if behaviour == "hang":
        child = subprocess.Popen([sys.executable, __file__, "sleep", rest[1]])
        Path(rest[0]).write_text(f"{os.getpid()} {child.pid}")
        sleep_beside(int(rest[1]))
    if behaviour == "sleep":
        sleep_beside(int(rest[0]))
    if behaviour == "babble":
        print("Welcome to the babbling server!", flush=True)
        for _ in sys.stdin:
            print("Sorry, I only speak English.", flush=True)
    if behaviour == "greet":
        print("Welcome, listening on stdio", flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        if behaviour == "capabilities" and request.get("method") == "initialize":
            rest = tuple(request["params"]["capabilities"])
        answer(behaviour, request, rest)


def start_or_die(starts: Path, code: str, failures: int) -> None:
    """Record a start, and end at the first ones: with an exit code, or by SIGKILL."""
    with starts.open("a") as file:
        file.write("start\n")
    if starts.read_text().count("start") > failures:
        return
    print(f"cannot start; token {os.environ.get('SECRET_TOKEN')}", file=sys.stderr, flush=True)
    if code == "signal":
        os.kill(os.getpid(), signal.SIGKILL)
    sys.exit(int(code))


def sleep_beside(process: int) -> None:
    """Sleep as long as the process of the tests runs, so that nothing is left of them if they are
    killed.
    """
    while True:
        os.kill(process, 0)
        time.sleep(1)


def answer(behaviour: str, request: dict, rest: tuple[str, ...]) -> None:
    match request.get("method"):
        case "initialize" if behaviour == "modern":
            send(
                request,
                error={
                    "code": -32022,
                    "message": "Unsupported",
                    "data": {"supported": ["2026-07-28"]},
                },
            )
        case "initialize":
            capabilities = {} if behaviour == "prompts" else {"tools": {}}
            info = {"name": "raw", "version": "1"}
            send(
                request,
                {"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": info},
            )
        case "server/discover" if behaviour == "modern":
            send(
                request,
                {
                    "supportedVersions": ["2026-07-28"],
                    "capabilities": {"tools": {}},
                    "instructions": "Modern only.",
                    "resultType": "complete",
                    "ttlMs": 0,
                    "cacheScope": "private",
                },
            )
        case "tools/list":
            list_tools(behaviour, request, rest)
        case _ if "id" in request:
            send(request, error={"code": -32601, "message": "Method not found"})


def list_tools(behaviour: str, request: dict, rest: tuple[str, ...]) -> None:
    cursor = (request.get("params") or {}).get("cursor")
    if behaviour == "refuse":
        send(
            request, error={"code": -32603, "message": f"bad key {os.environ.get('SECRET_TOKEN')}"}
        )
    elif behaviour == "prompts":
        send(request, error={"code": -32601, "message": "Method not found"})
    elif behaviour == "pages":
        page = int(cursor or 1)
        tools = [{**GOOD, "name": f"tool_{page}_{number}"} for number in range(2)]
        send(request, {"tools": tools, "nextCursor": str(page + 1) if page < 3 else None})
    elif behaviour == "endless":
        send(request, {"tools": [GOOD] * 5_000, "nextCursor": f"{cursor or ''}+"})
    elif behaviour in CURSORS:
        name = f"tool_{json.dumps(cursor)}"
        following = CURSORS[behaviour].get(json.dumps(cursor))
        send(request, {"tools": [{**GOOD, "name": name}], "nextCursor": following})
    elif behaviour == "stuck":
        send(request, {"tools": [{**GOOD, "name": name} for name in "abc"], "nextCursor": "3"})
    elif behaviour == "file":
        send_raw(request, b'{"tools": ' + Path(rest[0]).read_bytes() + b"}")
    elif behaviour == "closed":
        send(request, error={"code": -32000, "message": "no more today"})
    elif behaviour == "stderr":
        for _ in range(100):
            print("x" * 1_000_000, file=sys.stderr)
        send(request, {"tools": [GOOD]})
    elif behaviour == "environment":
        send(request, {"tools": [{**GOOD, "name": name} for name in rest if os.environ.get(name)]})
    elif behaviour == "folder":
        send(request, {"tools": [{**GOOD, "name": Path.cwd().name}]})
    elif behaviour in ("arguments", "capabilities"):
        send(request, {"tools": [{**GOOD, "name": name} for name in rest]})
    else:
        send(request, {"tools": [GOOD]})


def send(request: dict, result: dict | None = None, error: dict | None = None) -> None:
    outcome = {"result": result} if error is None else {"error": error}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **outcome}), flush=True)


def send_raw(request: dict, result: bytes) -> None:
    """Send a result that need not be JSON."""
    head = json.dumps({"jsonrpc": "2.0", "id": request["id"]}).encode()[:-1]
    sys.stdout.buffer.write(head + b', "result": ' + result + b"}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
