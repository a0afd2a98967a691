"""The HTTP client for MCP servers: what a server answers is bounded and sifted before the SDK reads
it. Loaded when a server is reached over HTTP."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2

from pegboard.foreign.limits import ENCODINGS
from pegboard.servers.config import ServerProblem
from pegboard.servers.traffic import Traffic


class SiftingClient(httpx2.AsyncClient):
    """An HTTP client whose responses are bounded and sifted."""

    def __init__(self, traffic: Traffic, **options: Any) -> None:
        super().__init__(**options)
        self.headers["accept-encoding"] = "identity"
        self._traffic = traffic

    async def send(self, request: Any, *, stream: bool = False, **options: Any) -> Any:
        """Send a request; see httpx2."""
        response = await super().send(request, stream=True, **options)
        response.stream = _SiftedBody(response, self._traffic)
        # Decompressed here, within the bounds.
        for header in ("content-encoding", "content-length"):
            response.headers.pop(header, None)
        if not stream:
            await response.aread()
        return response


class _SiftedBody(httpx2.AsyncByteStream):
    def __init__(self, response: Any, traffic: Traffic) -> None:
        self._stream, self._traffic = response.stream, traffic
        self._type = response.headers.get("content-type", "").lower()
        self._encoding = response.headers.get("content-encoding", "").lower()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._type.startswith("text/event-stream"):
            async for line in self._traffic.lines(self._chunks()):
                yield self._sifted_line(line.rstrip(b"\r")) + b"\n"
            return
        yield self._traffic.sift(await self._traffic.body(self._chunks()))

    async def aclose(self) -> None:
        await self._stream.aclose()

    def _sifted_line(self, line: bytes) -> bytes:
        if not line.startswith(b"data:"):
            return line
        return b"data: " + self._traffic.sift(line.removeprefix(b"data:").strip(b" "))

    async def _chunks(self) -> AsyncIterator[bytes]:
        if self._encoding not in ENCODINGS:
            raise ServerProblem(f"its answer is compressed as {self._encoding!r:.100}, not by gzip")
        headers = {"content-encoding": self._encoding}
        try:
            async for piece in httpx2.Response(
                200, headers=headers, stream=self._stream
            ).aiter_bytes():
                yield piece
        except httpx2.DecodingError as error:
            raise ServerProblem(f"its answer is not valid {self._encoding}: {error}") from None
