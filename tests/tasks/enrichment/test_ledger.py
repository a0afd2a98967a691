"""The ledger: replies are on the disk before anything else happens, and are found whatever became
of the run.
"""

import asyncio
import json
import os
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from pegboard.errors import StoreError
from tasks.enrichment.ledger import ABANDONED_SECONDS, LakeLedger, StoredReply
from tasks.lake.files import Lake

ENTRY = StoredReply(
    key="k1", step="reply", product="questions", subject="kit/git/a", prompt="1:abc",
    model="m", answered_by="m", shown=("kit/git/b@1",), final=True,
    value='["Wer hat die Tür geöffnet?"]', raw="Tür\u2028 \x85 {\n}",
    prompt_tokens=3, completion_tokens=4, cost_usd=0.25, seconds=1.5,
    at="2026-01-01T00:00:00.000000+00:00", run="r",
)  # fmt: skip


def add(ledger: LakeLedger, *entries: StoredReply) -> None:
    async def work() -> None:
        await asyncio.gather(*(ledger.add(entry) for entry in entries))

    asyncio.run(work())


def load(folder: Path, key: str = "k1") -> list[StoredReply]:
    return LakeLedger(Lake(str(folder))).load().entries(key)


def test_a_reply_is_on_the_disk_when_add_returns_and_a_closed_ledger_is_one_file(
    tmp_path: Path,
) -> None:
    lake = Lake(str(tmp_path))
    ledger = LakeLedger(Lake(str(tmp_path)))
    repaired = replace(ENTRY, key="k2", final=False)
    add(ledger, ENTRY, repaired)
    assert load(tmp_path) == [ENTRY]

    ledger.close()
    (file,) = lake.files("ledger")
    assert lake.files("ledger/open", "jsonl") == []
    assert load(tmp_path, "k2") == [repaired]
    # The raw text of a final reply stays in the file and out of memory.
    assert load(tmp_path) == [replace(ENTRY, raw="")]
    assert lake.read(file, ["raw"]).get_column("raw").to_list() == [ENTRY.raw] * 2


class SlowLake(Lake):
    """Fails the first time, and writes the second time when it is let."""

    writing = threading.Event()
    let = threading.Event()

    def append(self, path: str, text: str) -> None:
        if not self.writing.is_set():
            self.writing.set()
            raise StoreError("the disk is full")
        self.let.wait()
        super().append(path, text)


def test_replies_of_cancelled_tasks_and_of_a_failed_write_are_stored(tmp_path: Path) -> None:
    lake = SlowLake(str(tmp_path))
    ledger = LakeLedger(lake)

    async def work() -> None:
        failing, *others = (
            asyncio.create_task(ledger.add(replace(ENTRY, key=key))) for key in ("k1", "k2", "k3")
        )
        with pytest.raises(StoreError):
            await failing
        late = asyncio.create_task(ledger.add(replace(ENTRY, key="k4")))
        await asyncio.sleep(0)
        for task in (*others, late):
            task.cancel()
        await asyncio.gather(*others, late, return_exceptions=True)
        lake.let.set()

    asyncio.run(work())
    ledger.close()

    stored = LakeLedger(Lake(str(tmp_path))).load().all()
    assert {reply.key for reply in stored} == {"k1", "k2", "k3", "k4"}


def flipped(journal: bytes) -> bytes:
    """The journal with another digit in the tokens of its last reply."""
    head, field, tail = journal.rpartition(b'"prompt_tokens": 3')
    return head + field[:-1] + bytes([field[-1] ^ 1]) + tail


@pytest.mark.parametrize("damage", [lambda journal: journal[:-60], flipped], ids=["cut", "flipped"])
def test_a_reply_that_a_kill_cut_in_two_or_that_was_damaged_is_left_out_and_the_others_stay(
    tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    ledger = LakeLedger(Lake(str(tmp_path)))
    add(ledger, ENTRY, replace(ENTRY, key="k2"))
    (journal,) = (tmp_path / "lake/ledger/open").iterdir()
    journal.write_bytes(damage(journal.read_bytes()))
    assert load(tmp_path) == [ENTRY]
    assert load(tmp_path, "k2") == []


def test_the_journal_of_an_earlier_version_without_checksums_is_read(tmp_path: Path) -> None:
    Lake(str(tmp_path)).append("ledger/open/old.jsonl", json.dumps(asdict(ENTRY)) + "\n")
    assert load(tmp_path) == [ENTRY]


def test_the_many_files_of_a_journal_in_an_object_store_are_deleted_in_one_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = LakeLedger(Lake(str(tmp_path)))
    calls = list[object]()
    for name in "ab":
        Lake(str(tmp_path)).append(f"ledger/open/{ledger.run}-{name}.jsonl", "")
    monkeypatch.setattr(Lake, "delete", lambda _, *paths: calls.append(len(paths)))

    ledger.close()

    assert calls == [2]


def test_closing_leaves_the_journal_of_another_run_alone_unless_it_was_abandoned(
    tmp_path: Path,
) -> None:
    lake = Lake(str(tmp_path))
    add(LakeLedger(lake), ENTRY)
    LakeLedger(lake).close()
    (journal,) = (tmp_path / "lake/ledger/open").iterdir()

    long_ago = time.time() - ABANDONED_SECONDS - 60
    os.utime(journal, (long_ago, long_ago))
    LakeLedger(lake).close()
    assert lake.files("ledger/open", "jsonl") == []
    assert load(tmp_path) == [replace(ENTRY, raw="")]


def test_a_journal_that_another_run_closes_meanwhile_is_neither_lost_nor_counted_twice(
    tmp_path: Path,
) -> None:
    class Closing(Lake):
        """Closes the other run's journal once the journals were listed."""

        def files(self, folder: str, kind: str = "parquet") -> list[str]:
            paths = super().files(folder, kind)
            if kind == "jsonl":
                other.close()
            return paths

    other = LakeLedger(Lake(str(tmp_path)))
    add(other, replace(ENTRY, final=False))
    assert LakeLedger(Closing(str(tmp_path))).load().entries("k1") == [replace(ENTRY, final=False)]

    again = LakeLedger(Lake(str(tmp_path)))
    add(again, replace(ENTRY, final=False, run="again", at="2027"))
    shutil.copytree(tmp_path / "lake/ledger/open", tmp_path / "kept")
    again.close()
    shutil.copytree(tmp_path / "kept", tmp_path / "lake/ledger/open", dirs_exist_ok=True)
    assert len(load(tmp_path)) == 2
