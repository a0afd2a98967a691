"""Per-client limits for the number and the bytes of concurrent requests."""

from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager

from pegboard.serve.access import ANYONE, Client
from pegboard.serve.http_errors import ApiError

MAX_BYTES = 33_554_432
"""Of the requests of one client that are under way: eight of the largest that MCP takes."""


class RequestShare:
    """What the requests of one client may take while they are under way: half of the connections
    that the process may have, and some memory. Without clients that are told apart, all there is.
    """

    def __init__(self) -> None:
        self._share = max(1, _max_files() // 2)
        self._under_way, self._bytes = Counter[str](), Counter[str]()

    @contextmanager
    def of(self, client: Client, size: int = 0) -> Generator[Callable[[int], None]]:
        """Count a request of a client in the block, with so many bytes.

        Yields:
            A function that adds bytes, and raises ApiError as this does.

        Raises:
            ApiError: the client has too much under way.
        """
        own = 0

        def add(more: int) -> None:
            nonlocal own
            if client != ANYONE and self._bytes[client.name] + more > MAX_BYTES:
                raise _too_much(f"Requests of more than {MAX_BYTES:,} bytes are under way.")
            self._bytes[client.name] += more
            own += more

        if client != ANYONE and self._under_way[client.name] >= self._share:
            raise _too_much(f"More than {self._share:,} requests are under way.")
        self._under_way[client.name] += 1
        try:
            add(size)
            yield add
        finally:
            self._under_way[client.name] -= 1
            self._bytes[client.name] -= own


def _too_much(what: str) -> ApiError:
    return ApiError(429, "too_many_requests", what, "client", "Wait for some of them to end.")


def _max_files() -> int:
    try:
        import resource
    except ImportError:  # Windows, which has no such limit
        return 100_000
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 100_000 if soft == resource.RLIM_INFINITY else soft
