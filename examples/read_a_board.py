"""A service that answers requests from a board: the standard library and `pegboard` only.

    python examples/read_a_board.py ./board --port 8000
    curl 'http://127.0.0.1:8000/tools?request=restore+the+database&k=3'

The reply holds the tools as an OpenAI API call takes them, best first, and the release that
answered."""

import argparse
import json
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pegboard
from pegboard.errors import QueryError


def answer(board: pegboard.Board, query: dict[str, list[str]]) -> dict[str, Any]:
    """Return the reply to a parsed query string.

    Raises:
        ValueError: `request` is missing or `k` is not an integer.
        PegboardError: the request is invalid, or the board cannot answer.
    """
    if "request" not in query:
        raise ValueError("Expected ?request=..., the words to find tools for.")
    hits = board.find(query["request"][0], k=int(query.get("k", ["5"])[0]))
    return {"release": hits.release, "tools": pegboard.as_openai_tools(hits)}


def serve(board: pegboard.Board, port: int) -> ThreadingHTTPServer:
    """Return a server on loopback, all of whose threads share the board. Port 0 is any free
    port.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            try:
                if url.path != "/tools":
                    status, value = HTTPStatus.NOT_FOUND, {"error": "The only path is /tools."}
                else:
                    status, value = HTTPStatus.OK, answer(board, parse_qs(url.query))
            except (ValueError, QueryError) as error:
                status, value = HTTPStatus.BAD_REQUEST, {"error": str(error)}
            except pegboard.PegboardError as error:
                status, value = HTTPStatus.SERVICE_UNAVAILABLE, {"error": str(error)}
            self._reply(status, value)

        def _reply(self, status: HTTPStatus, value: dict[str, Any]) -> None:
            body = json.dumps(value, ensure_ascii=False).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve the tools of a board over HTTP.")
    parser.add_argument("board", help="the board's root: a folder, s3://, az:// or gs://")
    parser.add_argument("--port", type=int, default=8000)
    options = parser.parse_args()
    # The board follows its channel: a release that is promoted while this runs answers within
    # seconds.
    with pegboard.open(options.board) as board, serve(board, options.port) as server:
        print(f"Serving http://127.0.0.1:{server.server_port}/tools", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
