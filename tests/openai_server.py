"""A server on loopback that speaks OpenAI's chat and embeddings protocol, in the tests' process.

It answers each request with the next reply of its script; without one it echoes the last message
of a chat, and encodes texts by their length."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

KEY = "sk-abcdefgh12345678"
LITELLM_WARNINGS = [
    # pydantic says so while LiteLLM defines its types; it concerns nothing that is used here.
    pytest.mark.filterwarnings(
        "ignore:Item .* on TypedDict class .* is using the `ReadOnly` qualifier:UserWarning"
    ),
    # pydantic says so when the OpenAI client rewrites a malformed reply.
    pytest.mark.filterwarnings("ignore:Pydantic serializer warnings:UserWarning"),
]

Reply = tuple[int, dict[str, Any], Any]
"""Status, headers, and the body: bytes, or a value to write as JSON."""


class OpenAIServer(ThreadingHTTPServer):
    """A scripted server.

    Attributes:
        script: replies, or functions of the handler, which then answer themselves.
        default: what answers a request beyond the script, by its body.
        bodies, keys: of the requests so far.
        released: what hangs, hangs until the test ends.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script: list[Reply | Callable[[Any], None]] = []
        self.default: Callable[[dict[str, Any]], Reply | Callable[[Any], None]] = default_reply
        self.bodies: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.released = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: OpenAIServer

    def do_POST(self) -> None:
        self.body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.bodies.append(self.body)
        self.server.keys.append(self.headers["Authorization"])
        script = self.server.script
        reply = script.pop(0) if script else self.server.default(self.body)
        if callable(reply):
            self.close_connection = True
            reply(self)
        else:
            self.answer(*reply)

    def answer(
        self, status: int, headers: dict[str, Any], content: Any, length: int | None = None
    ) -> None:
        content = content if isinstance(content, bytes) else json.dumps(content).encode()
        head: dict[str, Any] = {
            "Content-Type": "application/json",
            "Content-Length": length or len(content),
        }
        # Nobody closes the connections of an encoder; a connection that is closed without a word
        # is one that a client may use again.
        if "input" in self.body or self.close_connection:
            head["Connection"] = "close"
        self.send_response(status)
        for name, value in {**head, **headers}.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def serve_openai() -> Iterator[OpenAIServer]:
    server = OpenAIServer()
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
    )
    thread.start()
    yield server
    server.released.set()
    server.shutdown()
    server.server_close()
    thread.join()


def default_reply(body: dict[str, Any]) -> Reply:
    if "input" in body:
        return vectors([[float(len(text)), 1.0, 0.0] for text in body["input"]])
    return chat(body["messages"][-1]["content"])


def chat(
    content: str | None = "hello",
    finish: str = "stop",
    usage: tuple[int, int] | None = (10, 5),
    calls: Any = (),
    **message: Any,
) -> Reply:
    """A chat reply; `calls` are names of tools and texts of their arguments."""
    body = completion(content, finish, usage)
    made = [
        {"id": f"{at}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for at, (name, arguments) in enumerate(calls)
    ]
    body["choices"][0]["message"] |= message | ({"tool_calls": made} if made else {})
    return 200, {}, body


def completion(
    content: str | None, finish: str = "stop", usage: tuple[int, int] | None = (1000, 100)
) -> dict[str, Any]:
    message = {"role": "assistant", "content": content}
    choice = {"index": 0, "finish_reason": finish, "message": message}
    body = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    if usage:
        body["usage"] = {
            "prompt_tokens": usage[0],
            "completion_tokens": usage[1],
            "total_tokens": sum(usage),
        }
    return body


def vectors(rows: list[Any], indices: list[int] | None = None) -> Reply:
    data = [
        {"object": "embedding", "index": at, "embedding": row}
        for at, row in zip(indices or range(9), rows, strict=False)
    ]
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return 200, {}, {"object": "list", "model": "m", "data": data, "usage": usage}


def failure(status: int, message: str = "no", code: str | None = None, **headers: str) -> Reply:
    """A refusal that quotes the key."""
    error = {"message": f"{message} (you sent {KEY})", "type": "x", "code": code}
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return status, fields, {"error": error}


def hang(handler: Handler) -> None:
    handler.server.released.wait()


def hang_up(handler: Handler) -> None:
    pass


def break_off(handler: Handler) -> None:
    handler.answer(200, {}, b'{"id": "1", "choi', 1000)


def trickle(handler: Handler) -> None:
    handler.answer(200, {}, b" ", 1000)
    while not handler.server.released.wait(0.1):
        try:
            handler.wfile.write(b" ")
        except OSError:
            return
