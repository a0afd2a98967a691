"""Programs that know only LanceDB, polars or DuckDB read a board as the how-to page shows."""

import re
from pathlib import Path

import lancedb
import pytest

from pegboard.store.contract import CONTRACT
from tasks.settings.configuration import KeepSettings
from tasks.steps.prune import prune_board

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "read-a-board.md"
SECTION = PAGE.read_text("utf-8").partition("## Read the tables with")[2].partition("\n## ")[0]
BLOCKS = re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL)[:3]


def tagged(workshop, tag):
    """The version of each table that has a tag."""
    database = lancedb.connect(f"{workshop.uri}/tables")
    tags = {name: database.open_table(name).tags.list() for name in database.list_tables().tables}
    return {name: all_tags[tag]["version"] for name, all_tags in tags.items() if tag in all_tags}


def pinned(release):
    return {pin.table: pin.version for pin in release.tables.values()}


@pytest.mark.parametrize("block", BLOCKS, ids=["lancedb", "duckdb", "polars"])
def test_the_examples_of_the_page_run(workshop, monkeypatch, capsys, block):
    workshop.publish(workshop.named("create_issue", "delete_issue", "list_commits"))
    monkeypatch.chdir(workshop.folder)

    exec(block, {})

    assert re.search("cosine|kit/git|create_issue", capsys.readouterr().out)


def test_a_table_names_its_contract_index_encoder_and_metric(workshop):
    workshop.run(workshop.full())
    database = lancedb.connect(f"{workshop.uri}/tables")

    def metadata(name):
        stored = database.open_table(name).schema.metadata
        return {key.decode(): value.decode() for key, value in stored.items()}

    documents = metadata("emb_full")
    assert documents.pop("pegboard.fingerprint")
    assert documents == {
        "pegboard.contract": str(CONTRACT),
        "pegboard.table": "emb_full",
        "pegboard.index": "full",
        "pegboard.encoder": "hashing/256",
        "pegboard.metric": "cosine",
        "pegboard.vector_column": "vector",
        "pegboard.text_column": "tokens",
    }
    for name in ("tools", "edges", "channels", "releases"):
        assert metadata(name) == {"pegboard.contract": str(CONTRACT), "pegboard.table": name}


def test_a_tag_of_the_channels_name_follows_publishing_promotion_and_rollback(workshop):
    first = workshop.publish(workshop.named("one")).release
    assert tagged(workshop, "live") == pinned(first)
    workshop.servers(workshop.named("one", "two"))
    second = workshop.run(
        workshop.configure('[[indexes]]\nname = "other"\nencoder = "hashing/256"\n')
    ).release
    assert "emb_full" not in pinned(second)
    assert tagged(workshop, "live") == pinned(second)

    workshop.store.rollback()
    workshop.store.promote(second.id, "canary")

    assert tagged(workshop, "live") == pinned(first)
    assert tagged(workshop, "canary") == pinned(second)


def test_tags_that_a_full_disk_left_empty_are_set_again(workshop):
    first = workshop.publish(workshop.named("one")).release
    for tag in Path(workshop.uri).glob("tables/*/_refs/tags/*.json"):
        tag.write_text("")

    second = workshop.publish(workshop.named("one", "two")).release
    prune_board(workshop.uri, KeepSettings())

    assert tagged(workshop, "live") == pinned(second)
    for release in (first, second):
        version = release.tables["tools"].version
        assert tagged(workshop, f"{release.id}-v{version}")["tools"] == version
