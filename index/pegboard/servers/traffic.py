"""What is read of a server before the SDK sees it: bounded, and changed where need be."""

import json
import re
from collections.abc import AsyncIterable, AsyncIterator

from pegboard.servers.config import ServerProblem

HEAD = 300
IDENTITY = re.compile(rb'\{"jsonrpc": ?"2\.0", ?"id": ?(\d{1,18}|"[\w-]{1,80}")')
"""How an answer begins, as the SDKs write it."""


class Traffic:
    """Reads what one server sends. Each message is bounded, not their sum: one that is too long
    costs its own call alone, if its beginning says which that is; else it is a ServerProblem.

    Args:
        max_bytes: of one message, decompressed.

    Attributes:
        problem: why the last message was not read, if so.
    """

    def __init__(self, max_bytes: int) -> None:
        self.problem: ServerProblem | None = None
        self._max_bytes = max_bytes

    async def body(self, chunks: AsyncIterable[bytes]) -> bytes:
        """Return a whole HTTP body."""
        body = bytearray()
        async for chunk in chunks:
            body += chunk
            if len(body) > self._max_bytes:
                return self._instead(bytes(body[:HEAD]))
        return bytes(body)

    async def lines(self, chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
        """Yield the lines of a stream without their ends; for one that is too long, an error. What
        follows the last end is left out.
        """
        line, skipping = bytearray(), False
        async for chunk in chunks:
            *ends, rest = chunk.split(b"\n")
            for end in ends:
                line += end
                if len(line) > self._max_bytes and not skipping:
                    yield self._instead(bytes(line[:HEAD]))
                elif not skipping:
                    yield bytes(line)
                line, skipping = bytearray(), False
            if skipping:
                continue
            line += rest
            if len(line) > self._max_bytes:
                yield self._instead(bytes(line[:HEAD]))
                line, skipping = bytearray(), True

    def sift(self, message: bytes) -> bytes:
        """Return a message as the SDK is to read it."""
        return message

    def _instead(self, head: bytes) -> bytes:
        """Return an error for the request that a message answers. Raises ServerProblem if its
        beginning does not say.
        """
        text = f"its answer has more than {self._max_bytes:,} bytes"
        match = IDENTITY.search(head)
        if match is None:
            self.problem = ServerProblem(text)
            raise self.problem
        prefix = b"data: " if head.startswith(b"data:") else b""
        identity = json.loads(match[1])
        error = {"code": -32_603, "message": text}
        return prefix + json.dumps({"jsonrpc": "2.0", "id": identity, "error": error}).encode()
