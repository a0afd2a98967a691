"""The formats of the lake's files: stated by each, read if older, refused if newer."""

import asyncio
import io
import json
from dataclasses import replace

import polars as pl
import pyarrow.parquet
import pytest

from tasks.enrichment.ledger import OPEN, LakeLedger, StoredReply
from tasks.lake import formats, row_sets
from tasks.lake.files import DamagedFile
from tasks.lake.formats import NewerFormat, kind_of
from tasks.lake.opening import NOTE, check_lake, open_lake
from tests.conftest import SERVERS

DIGEST = "a" * 64
LAYER = f"documents/layers/{DIGEST}.parquet"
POINTER = "documents/latest-x.json"
FRAME = pl.DataFrame({"key": ["a", "b"], "text": ["one", "two"]})
REPLY = StoredReply(
    key="k",
    step="reply",
    product="questions",
    subject="s",
    prompt="1",
    model="m",
    answered_by="m",
    at="2026",
)
SETTINGS = """
[golden]
queries = "golden.jsonl"
min_queries = 10

[gate]
rules = ["Recall@5 >= 0"]

[overrides."kit/git/create_issue"]
description = "Files a bug."
"""
GOLDEN = [
    {"query": f"open issue number {number}", "tools": ["create_issue"]} for number in range(10)
]


@pytest.fixture
def change_kind(monkeypatch):
    """A function that changes attributes of the kind that a path has, for the rest of the test."""

    def change_kind(path, **attributes):
        changed = [
            replace(kind, **attributes) if kind is kind_of(path) else kind for kind in formats.KINDS
        ]
        monkeypatch.setattr(formats, "KINDS", tuple(changed))

    return change_kind


def stated_formats(path, content):
    """The formats that a file states: of a journal, that of each line."""
    if path.endswith(".parquet"):
        metadata = pyarrow.parquet.read_schema(io.BytesIO(content)).metadata
        return [int(metadata[formats.PARQUET_FORMAT])]
    lines = content.decode().splitlines() if path.endswith(".jsonl") else [content.decode()]
    return [json.loads(line.partition("\t")[0])["format"] for line in lines]


def test_every_file_of_a_lake_is_of_a_listed_kind_and_states_its_format(workshop, written):
    workshop.write("golden.jsonl", "\n".join(map(json.dumps, GOLDEN)))
    workshop.servers(SERVERS)
    configuration = workshop.configure(SETTINGS, board="public_lake = true")
    workshop.run(configuration, enrichments=written())
    asyncio.run(LakeLedger(workshop.lake).add(REPLY))
    ledger = LakeLedger(workshop.lake)
    asyncio.run(ledger.add(replace(REPLY, key="another")))
    ledger.close()

    kinds = set()
    for path in workshop.lake.walk():
        content = workshop.lake._place.get(path)
        kind = kind_of(path)
        assert kind in formats.KINDS, f"{path} is of no kind that tasks/lake/formats.py lists"
        assert set(stated_formats(path, content)) == {kind.format}, path
        kinds.add(kind.name)
    not_of_a_build = {"journals of prunes", "failures of sources"}
    assert {kind.name for kind in formats.KINDS} - kinds == not_of_a_build


def test_what_cannot_be_made_again_is_read_in_every_format():
    kept = ("LLM replies", "vectors", "listings", "snapshots")
    assert {kind.oldest for kind in formats.KINDS if kind.name.endswith(kept)} == {0}


def test_a_file_of_a_newer_format_is_refused_and_never_removed(lake, lake_files, change_kind):
    change_kind(LAYER, format=2)
    change_kind(POINTER, format=2)
    lake.write(LAYER, FRAME)
    lake.write_json(POINTER, {"path": f"documents/{DIGEST}"})
    change_kind(LAYER, format=1)
    change_kind(POINTER, format=1)
    files = lake_files().keys()

    for read in (
        lambda: lake.read(LAYER),
        lambda: lake.read(LAYER, ["key"]),
        lambda: lake.read_json(POINTER),
        lambda: row_sets.latest_rows(lake, POINTER.removesuffix(".json")),
        lake.remove_damaged,
    ):
        with pytest.raises(NewerFormat, match=r"format 2 of .* reads up to 1.*Upgrade Pegboard"):
            read()
    assert lake_files().keys() == files


def test_a_file_of_an_older_format_is_read_through_the_functions_that_change_it(lake, change_kind):
    lake.write(LAYER, FRAME)
    lake.write_json(POINTER, {"set": "documents/x"})
    change_kind(LAYER, format=3, upgrades={1: lambda table: table.rename({"text": "words"})})
    change_kind(POINTER, format=2, upgrades={1: lambda value: {"path": value["set"]}})

    assert lake.read(LAYER).columns == ["key", "words"]
    assert lake.read(LAYER, ["words"]).to_series().to_list() == ["one", "two"]
    assert lake.column_types(LAYER) == {"key": "String", "words": "String"}
    assert lake.read_json(POINTER) == {"path": "documents/x"}


def test_a_file_that_is_too_old_to_be_read_counts_as_damaged(lake, change_kind):
    lake.write(LAYER, FRAME)
    change_kind(LAYER, format=3, oldest=2)

    with pytest.raises(DamagedFile, match=r"format 1 .* reads 2 to 3.*`pegboard build`"):
        lake.read(LAYER)
    assert lake.remove_damaged() == [LAYER]


def test_a_reply_in_a_newer_journal_is_refused_not_bought_again(lake, change_kind):
    journal = f"{OPEN}/x.jsonl"
    change_kind(journal, format=2)
    asyncio.run(LakeLedger(lake).add(REPLY))
    change_kind(journal, format=1)

    with pytest.raises(NewerFormat, match="Upgrade Pegboard"):
        LakeLedger(lake).load()


def test_a_reply_in_an_older_journal_is_kept(lake, change_kind):
    journal = f"{OPEN}/x.jsonl"
    asyncio.run(LakeLedger(lake).add(REPLY))
    change_kind(journal, format=2, upgrades={1: lambda row: {**row, "detail": "upgraded"}})

    [reply] = LakeLedger(lake).load().all()

    assert reply == replace(REPLY, detail="upgraded")


def test_a_set_with_other_columns_than_an_earlier_one_is_written_whole(lake):
    first = row_sets.write_rows(lake, "things/a", "key", FRAME)
    wider = pl.DataFrame({"key": [*"abcdefgh"], "text": [*"abcdefgh"], "title": [*"abcdefgh"]})

    second = row_sets.write_frame(lake, "things/b", "key", wider, first, ["text"])
    third = row_sets.write_frame(lake, "things/c", "key", wider.head(7), second, ["text"])

    assert row_sets.read_rows(lake, "things/a").equals(FRAME)
    assert row_sets.read_rows(lake, "things/b").equals(wider)
    assert row_sets.read_rows(lake, "things/c").equals(wider.head(7))
    assert len(second.layers) == 1
    assert set(second.layers) < set(third.layers)
    with pytest.raises(ValueError, match="other columns"):
        row_sets.write_rows(lake, "things/d", "key", wider, first)


def test_a_set_that_names_no_columns_has_those_of_its_newest_layer(lake):
    first = row_sets.write_rows(lake, "things/a", "key", FRAME)
    base = row_sets.write_rows(lake, "things/b", "key", FRAME.clear(), first, ["b"])
    for name in ("things/a", "things/b"):  # as before sets named their columns
        record = lake.read_json(f"{name}.json")
        del record["columns"]
        lake.write_json(f"{name}.json", record)

    older = row_sets.find_rows(lake, "things/b", ["text"])

    assert older.columns is None
    assert row_sets.find_rows(lake, "things/b", ["title"]) is None
    more = pl.concat([FRAME.head(1), pl.DataFrame({"key": ["c"], "text": ["three"]})])
    next_set = row_sets.write_frame(lake, "things/c", "key", more, older, ["text"])
    assert next_set.layers[:-1] == base.layers
    assert row_sets.read_rows(lake, "things/c").equals(more)


def test_a_lake_is_reported_as_older_once_and_a_newer_one_is_refused(workshop, change_kind, caplog):
    open_lake(workshop.uri)
    assert caplog.text == ""  # it is new

    change_kind(LAYER, format=2)
    open_lake(workshop.uri)
    open_lake(workshop.uri)
    assert caplog.text.count("rows of row sets 1 (now 2)") == 1

    change_kind(LAYER, format=1)
    note = workshop.lake.read_text(NOTE)
    for refuse in (open_lake, check_lake):
        with pytest.raises(NewerFormat, match=r"format 2 of rows of row sets.*Upgrade Pegboard"):
            refuse(workshop.uri)
    assert workshop.lake.read_text(NOTE) == note
