"""The ledger of a board: every paid LLM reply, in the lake, durable before it is used.

A run looks up a request here first, so a resumed run pays for nothing twice.

    lake/ledger/open/<run>.jsonl      journal of a run: a line per reply, durable at once
    lake/ledger/<digest>.parquet      the replies of a run that has ended

In an object store, whose objects do not grow, a journal is several files. Journals that a killed
run left behind are read like the rest. Truncated and damaged lines are skipped."""

import asyncio
import json
import logging
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, Self
from zlib import crc32

from pegboard.canonical import digest
from pegboard.errors import StoreError
from tasks.lake.files import Lake
from tasks.lake.formats import FORMAT, kind_of
from tasks.settings.enrichment import DEFAULT_REPLY_TOKENS

if TYPE_CHECKING:
    import polars as pl

Step = Literal["reply", "repair"]

logger = logging.getLogger(__name__)

OPEN = "ledger/open"
ABANDONED_SECONDS = 86_400
"""Seconds without a write after which a journal belongs to a dead run; the next run closes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredReply:
    """One reply and its verdict.

    Attributes:
        key: the request's key: product, content, prompt version, model, parameters.
        content: the digest of what the reply is about; replies to an earlier prompt or model have
            the same.
        prompt: the version and digest of the prompt file.
        model, answered_by: the configured model, and the one that answered.
        shown: the neighbours in the prompt, as `id@digest`.
        final: whether it is the last reply to its question: accepted, or rejected after its repair.
        value: JSON text of what was accepted; None if nothing was.
        reason, detail: why nothing was accepted.
        max_reply_tokens: the limit of the reply; the default where it was not recorded.
        dropped: JSON list of [item, reason] of list items that were left out.
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
    content: str = ""
    max_reply_tokens: int = DEFAULT_REPLY_TOKENS
    raw: str = ""
    finish_reason: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = None
    seconds: float = 0.0
    at: str = ""
    run: str = ""


FIELDS = frozenset(field.name for field in fields(StoredReply))


class LakeLedger:
    """The replies to each request, as one run sees them: `load` first, `close` at the end.

    Attributes:
        run: the id of this run.
    """

    def __init__(self, lake: Lake) -> None:
        self.run = uuid.uuid4().hex
        self._lake = lake
        self._entries: dict[str, list[StoredReply]] = {}
        self._received: dict[StoredReply, None] = {}
        self._waiting: list[StoredReply] = []
        self._writing = asyncio.Lock()

    def load(self) -> Self:
        """Load the replies of all earlier runs."""
        # Journals first: one that another run closes meanwhile is found again among the files,
        # which are listed afterwards.
        replies = [reply for path in self._lake.files(OPEN, "jsonl") for reply in self._read(path)]
        for path in self._lake.files("ledger"):
            replies += _from_frame(self._lake.read(path))
        unique = {(reply.key, reply.step, reply.run, reply.at): reply for reply in replies}
        self._remember(sorted(unique.values(), key=lambda reply: reply.at))
        return self

    def entries(self, key: str) -> list[StoredReply]:
        """Return the replies to a request, oldest first."""
        return self._entries.get(key, [])

    def all(self) -> Iterable[StoredReply]:
        """Return every reply."""
        return (entry for entries in self._entries.values() for entry in entries)

    async def add(self, entry: StoredReply) -> None:
        """Store a reply, durable when this returns; replies that arrive together go together."""
        self._received[entry] = None
        self._waiting.append(entry)
        async with self._writing:
            if entry not in self._waiting:
                return  # another task wrote it with its own
            batch = self._waiting
            self._waiting = []
            writing = asyncio.get_running_loop().run_in_executor(None, self._append, batch)
            try:
                await asyncio.shield(writing)  # goes on if the task is cancelled
            except Exception:
                self._waiting = batch + self._waiting  # each of the others tries it, too
                raise

    def _append(self, entries: Sequence[StoredReply]) -> None:
        self._lake.append(f"{OPEN}/{self.run}.jsonl", "".join(map(_to_line, entries)))
        self._remember(entries)

    def _remember(self, entries: Iterable[StoredReply]) -> None:
        for entry in entries:
            self._entries.setdefault(entry.key, []).append(entry)

    def close(self) -> None:
        """Turn this run's replies, and abandoned journals, into one file of the ledger."""
        self._remember(self._waiting)  # their tasks were cancelled before their turn
        ages = self._lake.ages(OPEN, "jsonl")
        run_journals = [path for path in ages if path.startswith(f"{OPEN}/{self.run}")]
        others = {*ages} - {*run_journals}
        abandoned = sorted(path for path in others if ages[path] > ABANDONED_SECONDS)
        replies = [*self._received, *(reply for path in abandoned for reply in self._read(path))]
        if rows := [asdict(reply) for reply in replies]:
            self._lake.write(f"ledger/{digest(rows)}.parquet", _to_frame(rows))
        self._lake.delete(*run_journals, *abandoned)

    def _read(self, path: str) -> list[StoredReply]:
        """The replies in a journal, without lines that were cut off or damaged; none if another run
        closed it since it was listed.
        """
        try:
            text = self._lake.read_text(path)
        except StoreError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return []
            raise
        replies: list[StoredReply] = []
        for line in filter(str.strip, text.split("\n")):
            try:
                row = _from_line(line)
                stated = row.pop(FORMAT, 0)
                replies.append(_from_row(self._lake.upgraded(path, row, stated)))
            except (ValueError, TypeError, KeyError):
                logger.warning("%s: skipped a reply that was cut off or damaged", path)
        return replies


def _to_line(reply: StoredReply) -> str:
    """The reply as JSON, a tab, which JSON escapes in texts, and the CRC-32 of the JSON."""
    row = {FORMAT: kind_of(f"{OPEN}/run.jsonl").format, **asdict(reply)}
    text = json.dumps(row, ensure_ascii=False)
    return f"{text}\t{crc32(text.encode())}\n"


def _from_line(line: str) -> dict[str, Any]:
    text, _, checksum = line.partition("\t")
    # Lines of earlier versions, and one that was cut at its very end, have none.
    if checksum and int(checksum) != crc32(text.encode()):
        raise ValueError("the line differs from its checksum")
    return json.loads(text)


def _from_row(row: dict[str, Any]) -> StoredReply:
    # A later version may have stored more about a reply.
    fields: dict[str, Any] = {name: row[name] for name in row if name in FIELDS}
    fields["shown"] = tuple(row["shown"])
    return StoredReply(**fields)


def _from_frame(frame: "pl.DataFrame") -> Iterable[StoredReply]:
    import polars as pl

    # The raw text of a reply is needed again only to repair it; hundreds of thousands of others
    # stay on the disk.
    rows = frame.with_columns(
        pl.when("final").then(pl.lit("")).otherwise("raw").alias("raw")
    ).to_dicts()
    return [_from_row(row) for row in rows]


def _to_frame(rows: list[dict[str, Any]]) -> "pl.DataFrame":
    import polars as pl

    kinds: dict[str, Any] = dict.fromkeys((field.name for field in fields(StoredReply)), pl.String)
    kinds |= {"shown": pl.List(pl.String), "final": pl.Boolean}
    kinds |= dict.fromkeys(("prompt_tokens", "completion_tokens", "max_reply_tokens"), pl.Int64)
    kinds |= dict.fromkeys(("cost_usd", "seconds"), pl.Float64)
    return pl.DataFrame(rows, schema=kinds)
