"""A server on loopback that answers with JSON, for sources that are fetched."""

import json
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


class JsonServer(ThreadingHTTPServer):
    """Answers each GET by a function of the query's parameters, which returns JSON or bytes.

    Attributes:
        url: without a path.
        queries, headers: of the requests, in their order.
    """

    def __init__(self, answer: Callable[[dict[str, str]], Any]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answer = answer
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.queries: list[dict[str, str]] = []
        self.headers: list[Any] = []


class Handler(BaseHTTPRequestHandler):
    """Answers a request."""

    server: JsonServer

    def do_GET(self) -> None:
        query = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        self.server.queries.append(query)
        self.server.headers.append(self.headers)
        answer = self.server.answer(query)
        body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def json_server(answer: Callable[[dict[str, str]], Any]) -> Generator[JsonServer]:
    """Run a server within the block."""
    server = JsonServer(answer)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
