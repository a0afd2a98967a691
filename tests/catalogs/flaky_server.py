"""A server on loopback that fails on purpose before it answers, and counts its requests."""

import json
import socket
import threading
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

OK = 200

Reply = tuple[int, dict[str, str], Any]
"""Status, headers and JSON body of a reply."""


class FlakyServer(ThreadingHTTPServer):
    """Answers the first requests with failures, and all others with `answer`.

    Args:
        failures: for each of the first requests, a status; or a status and headers; or `CUT`, to
            close the connection within the body; or `SILENT`, never to answer.
        answer: returns the JSON value for a request, given its method, path and JSON body.
    """

    daemon_threads = True

    def __init__(self, failures: Iterable[Any], answer: Callable[[str, str, Any], Any]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.failures = list(failures)
        self.answer = answer
        self.requests: list[str] = []
        self.stopped = threading.Event()
        self.lock = threading.Lock()

    def next_failure(self, method: str, path: str) -> Any:
        """Record a request, and return its failure; None if it is to be answered."""
        with self.lock:
            self.requests.append(f"{method} {path}")
            return self.failures.pop(0) if self.failures else None


CUT = "cut"
SILENT = "silent"
CUT_REPLY = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"


class Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    server: FlakyServer

    def do_GET(self) -> None:
        self._handle("GET")

    def do_POST(self) -> None:
        self._handle("POST")

    def do_DELETE(self) -> None:
        self._send(OK, {}, None)

    def _handle(self, method: str) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        events = method == "GET" and "text/event-stream" in self.headers.get("Accept", "")
        if events and not self.path.endswith("/sse"):
            self._send(405, {}, None)  # streamable HTTP without a stream of events
            return
        failure = self.server.next_failure(method, self.path)
        if failure == SILENT:
            self.server.stopped.wait()
        elif failure == CUT:
            self.wfile.write(CUT_REPLY)
            self.close_connection = True
        elif failure is not None:
            status, headers = failure if isinstance(failure, tuple) else (failure, {})
            self._send(status, headers, {"secret": "hunter2-hunter2"})
        else:
            value = self.server.answer(method, self.path, body)
            self._send(OK if value is not None else 202, {}, value)

    def _send(self, status: int, headers: dict[str, str], value: Any) -> None:
        content = b"" if value is None else json.dumps(value).encode()
        self.send_response(status, "hunter2-hunter2")
        for name, text in headers.items():
            self.send_header(name, text)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@contextmanager
def flaky_server(
    failures: Iterable[Any], answer: Callable[[str, str, Any], Any]
) -> Generator[FlakyServer]:
    """Run a server within the block."""
    server = FlakyServer(failures, answer)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stopped.set()
        server.shutdown()
        server.server_close()
        thread.join()


def mcp_answer(method: str, path: str, body: Any) -> Any:
    """Answer as an MCP server over streamable HTTP with one tool."""
    match body.get("method"):
        case "initialize":
            result: Any = {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "flaky", "version": "1"},
            }
        case "tools/list":
            schema = {"type": "object", "properties": {}}
            result = {"tools": [{"name": "good", "description": "Good.", "inputSchema": schema}]}
        case _ if "id" in body:
            error = {"code": -32601, "message": "Method not found"}
            return {"jsonrpc": "2.0", "id": body["id"], "error": error}
        case _:
            return None
    return {"jsonrpc": "2.0", "id": body["id"], "result": result}


def refused_url() -> str:
    """Return a URL on loopback at which nothing listens."""
    with suppress(OSError), socket.create_server(("127.0.0.1", 0)) as listener:
        return f"http://127.0.0.1:{listener.getsockname()[1]}"
    raise AssertionError("no free port")
