"""An append-only ledger of paid replies: each is durable before it is used.

A run looks up a request here first, so a resumed run pays for nothing twice:

    ledger = Ledger(storage).load()
    if ledger.last(key) is None:
        await ledger.add(entry)

An entry is a dataclass with a `key`, the key of its request. A `Storage` holds the entries.
"""

import asyncio
import json
import logging
import uuid
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

logger = logging.getLogger(__name__)

CHECKSUM = "checksum"
"""The last field of a line: the CRC-32 of the others as they are written."""


class LedgerEntry(Protocol):
    """A dataclass with the key of its request."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def key(self) -> str: ...


E = TypeVar("E", bound=LedgerEntry)


class Storage(Protocol[E]):
    """Where a ledger keeps its entries."""

    def load(self) -> Iterable[E]:
        """Return every stored entry, in the order in which they were made."""
        ...

    def append(self, entries: Sequence[E]) -> None:
        """Store entries; they are durable when this returns."""
        ...


class Ledger(Generic[E]):
    """The replies to each request, as one run sees them.

    Args:
        run: the id of this run; by default a random one.
    """

    def __init__(self, storage: Storage[E], run: str | None = None) -> None:
        self.run = run or uuid.uuid4().hex
        self._storage = storage
        self._entries: dict[str, list[E]] = {}
        self._pending: list[tuple[E, asyncio.Future[None]]] = []
        self._writer: asyncio.Task[None] | None = None

    def load(self) -> Self:
        """Load the entries of all earlier runs."""
        self._remember(self._storage.load())
        return self

    def __len__(self) -> int:
        """Return the number of requests that have a reply."""
        return len(self._entries)

    def entries(self, key: str) -> list[E]:
        """Return the replies to a request, oldest first."""
        return self._entries.get(key, [])

    def last(self, key: str) -> E | None:
        """Return the last reply to a request; None if there is none."""
        return next(reversed(self.entries(key)), None)

    def all(self) -> Iterable[E]:
        """Return every reply."""
        return (entry for entries in self._entries.values() for entry in entries)

    async def add(self, entry: E) -> None:
        """Store a reply, durable when this returns; replies that arrive together go together."""
        done = asyncio.get_running_loop().create_future()
        self._pending.append((entry, done))
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write_pending())
        await asyncio.shield(done)

    async def flush(self) -> None:
        """Wait until all added replies are durable."""
        if self._writer is not None:
            await asyncio.shield(self._writer)

    async def _write_pending(self) -> None:
        while self._pending:
            batch, self._pending = self._pending, []
            entries, error = [entry for entry, _ in batch], None
            try:
                await asyncio.to_thread(self._storage.append, entries)
                self._remember(entries)
            except Exception as failure:
                error = failure
            for done in (done for _, done in batch if not done.done()):
                if error is None:
                    done.set_result(None)
                else:
                    done.set_exception(error)

    def _remember(self, entries: Iterable[E]) -> None:
        for entry in entries:
            self._entries.setdefault(entry.key, []).append(entry)


def encode_lines(entries: Iterable[LedgerEntry]) -> str:
    """Return entries as JSON lines."""
    every = [asdict(entry) for entry in entries]
    lines = ({**fields, CHECKSUM: _checksum(fields)} for fields in every)
    return "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)


def _checksum(fields: dict[str, Any]) -> int:
    # In ASCII, since the file cannot hold every text that an LLM may return.
    return zlib.crc32(json.dumps(fields).encode())


def decode_lines(text: str, decode: Callable[[dict[str, Any]], E], source: str) -> list[E]:
    """Return the entries of JSON lines, leaving out lines that were cut off or damaged."""
    entries: list[E] = []
    for line in filter(str.strip, text.split("\n")):
        try:
            fields = json.loads(line)
            if fields.pop(CHECKSUM) != _checksum(fields):
                raise ValueError
            entries.append(decode(fields))
        except (ValueError, TypeError, KeyError, AttributeError):
            logger.warning(
                "%s: skipped a reply that was cut off or damaged (%d characters)",
                source,
                len(line),
            )
    return entries
