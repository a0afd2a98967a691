"""What a live MCP server sends, bounded and read before the SDK reads it.

The SDK reads a message as a whole or not at all: one tool with a lone surrogate, a number of 6,000
digits or a thousand levels would cost all tools of the server, and most of its time. So tools are
taken out of every message here, as JSON that says what could not be read, and the SDK sees none."""

import json
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from typing import Any, cast

from pydantic_core import from_json

from pegboard.errors import SourceError
from pegboard.foreign.files import parse_json
from pegboard.servers.config import ServerProblem


class Traffic:
    """The bytes received from one server.

    Args:
        max_bytes: of it, decompressed.

    Attributes:
        page: the last answer to tools/list, with its tools.
        problem: why no more is read, if so.
    """

    def __init__(self, max_bytes: int) -> None:
        self.page: Mapping[str, Any] = {}
        self.problem: ServerProblem | None = None
        self._max_bytes, self._left = max_bytes, max_bytes

    def count(self, chunk: bytes) -> bytes:
        """Return the bytes; raises ServerProblem if the server has sent too many."""
        self._left -= len(chunk)
        if self._left < 0:
            self.problem = ServerProblem(
                f"it sent more than {self._max_bytes:,} bytes; correct the server, or raise "
                f"max_bytes of its catalog"
            )
            raise self.problem
        return chunk

    async def body(self, chunks: AsyncIterable[bytes]) -> bytes:
        """Return a whole body."""
        return b"".join([self.count(chunk) async for chunk in chunks])

    async def lines(self, chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
        """Yield the lines of a stream without their ends; what follows the last end is left out."""
        parts: list[bytes] = []
        async for chunk in chunks:
            *ended, rest = self.count(chunk).split(b"\n")
            for line in ended:
                yield b"".join([*parts, line])
                parts.clear()
            parts.append(rest)

    def sift(self, message: bytes) -> bytes:
        """Return a message as the SDK can read it, without the tools, which become `page`."""
        try:
            value = parse_json(message.decode("utf-8", "surrogateescape"), "")
        except SourceError:
            return message
        if isinstance(value, Mapping):
            row = cast("Mapping[str, Any]", value)
            result = row.get("result")
            if isinstance(result, Mapping) and isinstance(result.get("tools"), list):
                self.page = cast("Mapping[str, Any]", result)
                return _encoded({**row, "result": {**result, "tools": []}})
        try:
            from_json(message)
        except ValueError:
            return _encoded(value)
        return message


def _encoded(value: Any) -> bytes:
    """Return JSON in UTF-8; U+FFFD stands for what cannot be written in it."""
    text = json.dumps(value, ensure_ascii=False, default=lambda _: "\ufffd")
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace").encode()
