"""A document from the network, within limits: bytes on the wire, bytes decompressed, and seconds
from the first connection to the last byte.
"""

import os
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from pegboard.errors import SourceError
from pegboard.foreign.decompression import Undecodable, decompressed
from pegboard.redaction import public_url

if TYPE_CHECKING:
    import httpx


def download(url: str, headers: Mapping[str, str], *, timeout: float, max_bytes: int) -> bytes:
    """Return the bytes at a URL. Redirects are not followed: the headers may hold its keys.

    Args:
        headers: their values may hold `${NAME}`, which stands for an environment variable.
        timeout: seconds for everything together.
        max_bytes: of the answer, on the wire and decompressed.

    Raises:
        SourceError: there is no answer in time, or one that is an error, a redirect or too large.
            Its message has neither headers nor the query of the URL.
    """
    import anyio
    import httpx

    where = public_url(url)
    expanded = {name: _expanded(name, value) for name, value in headers.items()}

    async def fetch() -> bytes:
        # httpx's own timeout is for each read: a server that sends a byte now and then never
        # meets it.
        with anyio.fail_after(timeout):
            async with (
                httpx.AsyncClient(timeout=None) as client,  # noqa: S113  limited as a whole
                client.stream(
                    "GET", url, headers={"Accept-Encoding": "identity", **expanded}
                ) as response,
            ):
                _check_status(response, url, where)
                return await _body(response, where, max_bytes)

    try:
        return anyio.run(fetch)
    except TimeoutError:
        raise SourceError(
            f"{where} has not sent the document after {timeout:g} seconds. Raise `timeout`."
        ) from None
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        # Only its type is named: some messages quote the request.
        raise SourceError(
            f"Cannot fetch {where}: {type(error).__name__}. Check the address and the network."
        ) from None


def _check_status(response: "httpx.Response", url: str, where: str) -> None:
    if response.is_redirect:
        target = public_url(urljoin(url, response.headers.get("location", "")))
        raise SourceError(
            f"{where} has moved to {target}. Write that address, if you trust it with the headers."
        )
    if not response.is_success:
        status = response.status_code
        # The server's own phrase is foreign text.
        phrase = HTTPStatus(status).phrase if status in set(HTTPStatus) else "an unknown status"
        raise SourceError(f"{where} answers {status} {phrase}, expected the document.")


async def _body(response: "httpx.Response", where: str, max_bytes: int) -> bytes:
    body = bytearray()
    encoding = response.headers.get("content-encoding", "")
    try:
        async for piece in decompressed(response.aiter_raw(), encoding):
            body += piece
            if max(response.num_bytes_downloaded, len(body)) > max_bytes:
                raise SourceError(
                    f"{where} sends more than {max_bytes:,} bytes. Split the document, or raise "
                    f"`max_bytes` of its catalog."
                )
    except Undecodable as error:
        raise SourceError(f"The document at {where} {error}.") from None
    return bytes(body)


def _expanded(header: str, value: str) -> str:
    """Return a header's value with each `${NAME}` replaced by that environment variable."""

    def variable(match: re.Match[str]) -> str:
        value = os.environ.get(match[1])
        if value is None:
            raise SourceError(
                f"The environment variable {match[1]}, which the header {header} needs, is not "
                f"set. Set it."
            )
        return value

    expanded = re.sub(r"\$\{(\w+)\}", variable, value)
    if not (expanded.isascii() and expanded.isprintable()):
        raise SourceError(
            f"The value of the header {header} has characters that a header cannot hold. Correct "
            f"it."
        )
    return expanded
