"""The ledger: every reply that was ever paid for, durable the moment it arrives. A run looks here
before it asks.

    lake/ledger/open/<run>.jsonl      written now: a line for each reply, on the disk before
    anything else happens
    lake/ledger/<digest>.parquet      the replies of a run that has ended

What a killed run left open is read like the rest. A line that the kill cut in two is no reply: that
call was under way."""

import asyncio
import json
import logging
import uuid
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

from pegboard.canonical import digest
from pegboard.errors import StoreError
from tasks.lake.files import Lake

if TYPE_CHECKING:
    import polars as pl

logger = logging.getLogger(__name__)

Step = Literal["think", "reply", "repair"]

ABANDONED_SECONDS = 86_400
"""A journal that nobody wrote to for a day belongs to a run that is gone, and is closed by the next
one.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One reply, and what was made of it.

    `key` says what was asked (product, subject, prompt version, model, parameters); `shown` are the
    neighbours that stood in the prompt. `value` is JSON text of what was accepted, None if nothing
    was; then `reason` says why not. `final` marks the
    last reply to its question: an accepted one, or one that was rejected after its repair.
    """

    key: str
    step: Step
    product: str
    subject: str
    prompt: str
    model: str
    answered_by: str
    shown: tuple[str, ...] = ()
    final: bool = False
    value: str | None = None
    reason: str = ""
    detail: str = ""
    dropped: str = "[]"
    raw: str = ""
    finish_reason: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = None
    seconds: float = 0.0
    at: str = ""
    run: str = ""


class Ledger:
    """The ledger of one board, as one run sees it. `load` first; `close` at the end."""

    def __init__(self, lake: Lake, run: str | None = None) -> None:
        self.run = run or uuid.uuid4().hex
        self._lake = lake
        self._entries: dict[str, list[Entry]] = {}
        self._writes = 0
        self._own: list[str] = []
        self._pending: list[tuple[Entry, asyncio.Future[None]]] = []
        self._writer: asyncio.Task[None] | None = None

    def load(self) -> "Ledger":
        """Read everything that was bought, by this run or any before."""
        # Journals first: one that another run closes meanwhile is found again among the files,
        # which are looked for afterwards.
        found = [
            entry
            for path in self._lake.files("ledger/open", "jsonl")
            for entry in self._journal(path)
        ]
        found += [
            entry
            for path in self._lake.files("ledger")
            for entry in _entries(self._lake.read(path))
        ]
        once = {(entry.key, entry.step, entry.run, entry.at): entry for entry in found}
        self._remember(sorted(once.values(), key=lambda entry: entry.at))
        return self

    def entries(self, key: str) -> list[Entry]:
        """The replies to one question, in the order in which they came."""
        return self._entries.get(key, [])

    def all(self) -> Iterable[Entry]:
        """Every reply."""
        return (entry for entries in self._entries.values() for entry in entries)

    async def add(self, entry: Entry) -> None:
        """Keep a reply; it is durable when this returns. Replies that arrive together are written
        together.
        """
        done = asyncio.get_running_loop().create_future()
        self._pending.append((entry, done))
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write_pending())
        await asyncio.shield(done)

    async def flush(self) -> None:
        """Wait until everything that was added is durable."""
        if self._writer is not None:
            await asyncio.shield(self._writer)

    def add_all(self, entries: Iterable[Entry]) -> None:
        """Keep the replies of a batch; they are durable when this returns."""
        entries = list(entries)
        if entries:
            self._write("".join(_line(entry) for entry in entries))
            self._remember(entries)

    def close(self) -> None:
        """Turn this run's journal, and those that were abandoned, into one file of the ledger."""
        abandoned = [
            path
            for path, age in self._lake.ages("ledger/open", "jsonl").items()
            if age > ABANDONED_SECONDS
        ]
        journals = [*self._own, *(path for path in abandoned if path not in self._own)]
        entries = [entry for path in journals for entry in self._journal(path)]
        if entries:
            rows = [asdict(entry) for entry in entries]
            self._lake.write(f"ledger/{digest(rows)}.parquet", _frame(rows))
        for path in journals:
            self._lake.delete(path)
        self._own = []

    def _journal(self, path: str) -> list[Entry]:
        """The replies in a journal; none if another run has closed it since it was listed."""
        try:
            return _lines(self._lake.read_text(path))
        except StoreError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return []
            raise

    async def _write_pending(self) -> None:
        while self._pending:
            batch, self._pending = self._pending, []
            text = "".join(_line(entry) for entry, _ in batch)
            try:
                await asyncio.to_thread(self._write, text)
            except Exception as error:
                for _, done in batch:
                    if not done.done():
                        done.set_exception(error)
                continue
            self._remember(entry for entry, _ in batch)
            for _, done in batch:
                if not done.done():
                    done.set_result(None)

    def _write(self, text: str) -> None:
        if self._lake.grows:
            path = f"ledger/open/{self.run}.jsonl"
            self._lake.append(path, text)
        else:
            path = f"ledger/open/{self.run}-{self._writes:06d}.jsonl"
            self._lake.write_text(path, text)
        self._writes += 1
        if path not in self._own[-1:]:
            self._own.append(path)

    def _remember(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self._entries.setdefault(entry.key, []).append(entry)


def _line(entry: Entry) -> str:
    return json.dumps(asdict(entry), ensure_ascii=False) + "\n"


def _lines(text: str) -> list[Entry]:
    entries: list[Entry] = []
    for line in text.split("\n"):
        try:
            entries.append(_entry(json.loads(line)))
        except (ValueError, TypeError, KeyError):
            if line.strip():
                logger.warning(
                    "A reply that a kill cut in two is left out of the ledger: %s characters",
                    len(line),
                )
    return entries


def _entry(row: dict[str, Any]) -> Entry:
    return Entry(**{**row, "shown": tuple(row["shown"])})


def _entries(frame: "pl.DataFrame") -> list[Entry]:
    import polars as pl

    known = {field.name for field in fields(Entry)}
    # The raw text of a reply is needed again only to repair it; hundreds of thousands of others
    # stay on the disk.
    rows = frame.with_columns(
        pl.when("final").then(pl.lit("")).otherwise("raw").alias("raw")
    ).to_dicts()
    return [_entry({name: row[name] for name in row if name in known}) for row in rows]


def _frame(rows: list[dict[str, Any]]) -> "pl.DataFrame":
    import polars as pl

    kinds: dict[str, Any] = dict.fromkeys((field.name for field in fields(Entry)), pl.String)
    kinds |= {"shown": pl.List(pl.String), "final": pl.Boolean}
    kinds |= {
        "prompt_tokens": pl.Int64,
        "completion_tokens": pl.Int64,
        "cost_usd": pl.Float64,
        "seconds": pl.Float64,
    }
    return pl.DataFrame(rows, schema=kinds)
