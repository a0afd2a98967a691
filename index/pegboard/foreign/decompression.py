"""The body of an HTTP answer, decompressed in pieces, so that who reads it can stop at a limit."""

import zlib
from collections.abc import AsyncIterable, AsyncIterator

PIECE = 1 << 16
"""Bytes of the largest piece of a compressed body: a chunk may decompress to a thousand times as
much."""
GZIP_OR_ZLIB = zlib.MAX_WBITS | 32
"""Recognises both formats by their headers."""


class Undecodable(Exception):
    """A body is not compressed as its header says; the message is the rest of a sentence."""


async def decompressed(chunks: AsyncIterable[bytes], encoding: str) -> AsyncIterator[bytes]:
    """Yield a body in pieces, one compression undone; one piece, if empty, for each chunk at least.

    Args:
        encoding: the header `Content-Encoding`, empty if there is none.

    Raises:
        Undecodable: the body is compressed twice, in another format, or cut.
    """
    layers = encoding.lower().replace(" ", "").split(",")
    layers = [layer for layer in layers if layer not in ("", "identity")]
    if not layers:
        async for chunk in chunks:
            yield chunk
        return
    if layers not in (["gzip"], ["x-gzip"], ["deflate"]):
        shown = ", ".join(layers)
        raise Undecodable(f"is compressed as {shown!r:.100}, expected plain, gzip or deflate")
    decompressor = zlib.decompressobj(GZIP_OR_ZLIB)
    async for chunk in chunks:
        rest = chunk
        while True:
            try:
                yield decompressor.decompress(rest, PIECE)
            except zlib.error as error:
                raise Undecodable(f"is not valid {layers[0]}: {error}") from None
            if not (rest := decompressor.unconsumed_tail):
                break
    if not decompressor.eof:
        raise Undecodable(f"is not valid {layers[0]}: its end is missing")
