"""The ledger of a board: every paid LLM reply, in the lake.

    lake/ledger/open/<run>.jsonl      journal of a run: a line per reply, durable at once
    lake/ledger/<digest>.parquet      the replies of a run that has ended

Journals that a killed run left behind are read like the rest. A truncated line is not a reply:
that call was under way."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

from pegboard.canonical import digest
from pegboard.errors import StoreError
from pegboard.llm.ledger import Ledger, decode_lines, encode_lines
from tasks.lake.files import Lake

if TYPE_CHECKING:
    import polars as pl

Step = Literal["reply", "repair"]

ABANDONED_SECONDS = 86_400
"""A journal without a write for a day belongs to a dead run; the next run closes it."""


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
    raw: str = ""
    finish_reason: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = None
    seconds: float = 0.0
    at: str = ""
    run: str = ""


class LakeLedger(Ledger[StoredReply]):
    """The ledger of one board, as one run sees it: `load` first, `close` at the end."""

    def __init__(self, lake: Lake, run: str | None = None) -> None:
        storage = _LakeStorage(lake)
        super().__init__(storage, run)
        storage.run = self.run
        self.close = storage.close


class _LakeStorage:
    """A journal per run, which `close` turns into a Parquet file."""

    def __init__(self, lake: Lake) -> None:
        self.run = ""
        self._lake = lake
        self._writes = 0
        self._own: list[str] = []

    def load(self) -> list[StoredReply]:
        # Journals first: one that another run closes meanwhile is found again among the files,
        # which are listed afterwards.
        replies = [
            reply
            for path in self._lake.files("ledger/open", "jsonl")
            for reply in self.journal(path)
        ]
        for path in self._lake.files("ledger"):
            replies += _from_frame(self._lake.read(path))
        unique = {(reply.key, reply.step, reply.run, reply.at): reply for reply in replies}
        return sorted(unique.values(), key=lambda reply: reply.at)

    def append(self, entries: Sequence[StoredReply]) -> None:
        text = encode_lines(entries)
        if self._lake.grows:
            path = f"ledger/open/{self.run}.jsonl"
            self._lake.append(path, text)
        else:
            path = f"ledger/open/{self.run}-{self._writes:06d}.jsonl"
            self._lake.write_text(path, text)
        self._writes += 1
        if path not in self._own[-1:]:
            self._own.append(path)

    def close(self) -> None:
        """Turn this run's journal, and abandoned ones, into one file of the ledger."""
        ages = self._lake.ages("ledger/open", "jsonl")
        abandoned = [path for path, age in ages.items() if age > ABANDONED_SECONDS]
        journals = list(dict.fromkeys([*self._own, *abandoned]))
        rows = [asdict(reply) for path in journals for reply in self.journal(path)]
        if rows:
            self._lake.write(f"ledger/{digest(rows)}.parquet", _to_frame(rows))
        for path in journals:
            self._lake.delete(path)
        self._own = []

    def journal(self, path: str) -> list[StoredReply]:
        """Return the replies in a journal; none if another run closed it since it was listed."""
        try:
            text = self._lake.read_text(path)
        except StoreError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return []
            raise
        return decode_lines(text, _from_row, path)


def _from_row(row: dict[str, Any]) -> StoredReply:
    return StoredReply(**{**row, "shown": tuple(row["shown"])})


def _from_frame(frame: "pl.DataFrame") -> Iterable[StoredReply]:
    import polars as pl

    names = {field.name for field in fields(StoredReply)}
    # The raw text of a reply is needed again only to repair it; hundreds of thousands of others
    # stay on the disk.
    rows = frame.with_columns(
        pl.when("final").then(pl.lit("")).otherwise("raw").alias("raw")
    ).to_dicts()
    return [_from_row({name: row[name] for name in row if name in names}) for row in rows]


def _to_frame(rows: list[dict[str, Any]]) -> "pl.DataFrame":
    import polars as pl

    kinds: dict[str, Any] = dict.fromkeys((field.name for field in fields(StoredReply)), pl.String)
    kinds |= {"shown": pl.List(pl.String), "final": pl.Boolean}
    kinds |= dict.fromkeys(("prompt_tokens", "completion_tokens"), pl.Int64)
    kinds |= dict.fromkeys(("cost_usd", "seconds"), pl.Float64)
    return pl.DataFrame(rows, schema=kinds)
