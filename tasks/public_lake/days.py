"""The public tables of days: the runs of a board, what their sources listed, and the replies of an
LLM that were paid for.

A run writes a file of its own, so that concurrent runs lose nothing. The files of a day become one
when the day is over, or when there are many. A reply is public once its run closed the ledger.
Nothing here is pruned."""

import logging
import uuid
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

from pegboard.canonical import digest
from tasks.lake.files import DamagedFile, Lake
from tasks.public_lake.schema import FOLDER, public_table

if TYPE_CHECKING:
    import polars as pl

MAX_FILES = 20
"""Files of one day that stay apart while the day lasts."""
IDENTITY = {"runs": ["run"], "sources": ["run", "catalog"]}
"""The columns that identify a row, by the table whose files are merged."""
DIGITS = 16
"""Hexadecimal digits of a digest in a file's name."""
REPLY_COLUMNS = (
    *("at", "run", "product", "subject", "step", "model", "answered_by", "value", "reason"),
    *("finish_reason", "prompt_tokens", "completion_tokens", "cost_usd", "seconds"),
)
"""The columns of the ledger that are read: neither prompts nor replies, but for whether there is a
`value`.
"""

logger = logging.getLogger(__name__)


def write_run(lake: Lake, outcome: Mapping[str, Any], ended: datetime | None = None) -> None:
    """Add a run and its sources.

    Args:
        outcome: what `flows.reindex` returns.
        ended: when the run ended; by default now.
    """
    ended = ended or datetime.now(UTC)
    run = {"day": ended.date(), "ended_at": ended, "run": uuid.uuid4().hex}
    catalogs: Mapping[str, Mapping[str, Any]] = outcome["catalogs"]
    sources = [
        {
            **run,
            "release": outcome["release"],
            "catalog": name,
            **{key: catalog[key] for key in ("tools", "agents", "rejected", "kept", "problems")},
            "failed": bool(catalog["problems"]),
        }
        for name, catalog in catalogs.items()
    ]
    for table, rows in (("sources", sources), ("runs", [{**run, **_run_row(outcome)}])):
        path = f"{FOLDER}/{table}/{run['day']}/{run['run']}.parquet"
        lake.write(path, public_table(table).frame(rows), new=True)


def merge_days(lake: Lake, files_there: Collection[str], today: date | None = None) -> None:
    """Merge the files of each day that is over, and of today if there are many.

    Args:
        files_there: the paths of the files of the public lake.
    """
    today = today or datetime.now(UTC).date()
    for table in IDENTITY:
        days: dict[str, list[str]] = {}
        for path in sorted(files_there):
            if path.startswith(f"{FOLDER}/{table}/"):
                days.setdefault(path.split("/")[-2], []).append(path)
        for day, paths in days.items():
            if len(paths) > (MAX_FILES if day == str(today) else 1):
                _merge(lake, table, day, paths)


def write_replies(lake: Lake, files_there: Collection[str]) -> None:
    """Add the LLM replies of the files of the ledger that were closed since the last time.

    Args:
        files_there: the paths of the files of the public lake.
    """
    folder = f"{FOLDER}/llm_calls/"
    names = {path.rpartition("/")[2] for path in files_there if path.startswith(folder)}
    for path in lake.files("ledger"):
        name = f"{path.rpartition('/')[2][:DIGITS]}.parquet"
        if name in names:
            continue
        frame = _calls(lake.read(path, [*REPLY_COLUMNS]))
        if frame.height:
            lake.write(f"{FOLDER}/llm_calls/{frame.item(0, 'day')}/{name}", frame)


def _run_row(outcome: Mapping[str, Any]) -> dict[str, Any]:
    plan = outcome["plan"]
    catalogs = outcome["catalogs"].values()
    llm = (outcome["enrichment"] or {}).get("actual") or {}
    changes = {name: len(plan[name]) for name in ("new", "changed", "removed")}
    return {
        "outcome": outcome["outcome"],
        "release": outcome["release"],
        "failed_sources": sum(bool(catalog["problems"]) for catalog in catalogs),
        **changes,
        "unchanged": plan["unchanged"],
        "rejected": len(outcome["rejected"]),
        "encoded": outcome["encoded"],
        "truncated": outcome["truncated"],
        "llm_replies": llm.get("replies", 0),
        "llm_cost_usd": llm.get("cost_usd", 0.0),
        "unfinished": list(outcome["unfinished"]),
        "seconds": round(sum(outcome["seconds"].values()), 3),
    }


def _merge(lake: Lake, table: str, day: str, paths: Sequence[str]) -> None:
    import polars as pl

    frames: list[pl.DataFrame] = []
    for path in paths:
        try:
            frames.append(lake.read(path))
        except DamagedFile as error:
            logger.warning("%s Its rows of '%s' are gone.", error, table)
    if not frames:
        lake.delete(*paths)
        return
    rows = pl.concat(frames, how="diagonal")
    rows = rows.unique(IDENTITY[table], maintain_order=True).sort("ended_at", *IDENTITY[table])
    name = digest(rows.select(IDENTITY[table]).rows())[:DIGITS]
    target = f"{FOLDER}/{table}/{day}/{name}.parquet"
    lake.write(target, rows)
    lake.delete(*(path for path in paths if path != target))


def _calls(replies: "pl.DataFrame") -> "pl.DataFrame":
    """Return replies of the ledger as rows of `llm_calls`, the oldest first."""
    import polars as pl

    table = public_table("llm_calls")
    at = pl.col("at").str.to_datetime(time_unit="us", time_zone="UTC")
    rows = replies.with_columns(arrived_at=at, accepted=pl.col("value").is_not_null())
    rows = rows.sort("arrived_at").with_columns(day=pl.col("arrived_at").min().dt.date())
    return rows.select(pl.col(name).cast(kind) for name, kind in table.types().items())
