"""Builds on a board that an older version of Pegboard wrote: nothing that was published or paid for
is lost, and nothing is encoded or bought again.

`older/write.py` describes the board. The source of its catalog `desk` has failed since its second
release, so that every build here keeps the tools of the catalog's snapshot.
"""

import json
import logging
import re
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

import pegboard
from flows.build import build
from pegboard.errors import ContractMismatch
from pegboard.store.contract import CATALOG_TOOL, CONTRACT, Column
from pegboard.store.diff import diff_releases
from pegboard.store.verify import verify_release
from tasks.enrichment.ledger import LakeLedger
from tasks.lake import formats
from tasks.lake.formats import NewerFormat
from tasks.lake.snapshot_rows import snapshot_rows
from tasks.settings.configuration import KeepSettings
from tasks.steps.prune import prune_board
from tests.conftest import REQUESTS, Workshop
from tests.scripted_llm import scripted_llm
from tests.tasks.lake.older.later_version import build_with, make_later_version
from tests.tasks.lake.older.project import configure, versions

OLDER = Path(__file__).parent / "older"
CANNOT_BE_MADE_AGAIN = ("snapshots/", "vectors/", "ledger/", "formats")
KEPT_TOOLS = {"desk/desk/book_room", "desk/desk/call_taxi", "desk/desk/water_plants"}


@pytest.fixture
def llm():
    with scripted_llm() as llm:
        yield llm


@pytest.fixture
def older(tmp_path):
    """The workshop with the older board."""
    with tarfile.open(OLDER / "board.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    return Workshop(tmp_path / "project")


@pytest.fixture(scope="module")
def later_version(tmp_path_factory):
    """The source of a later version, whose tools have the column `title`."""
    return make_later_version(tmp_path_factory.mktemp("later"))


def replies(workshop):
    """The keys of the LLM replies in the ledger."""
    return {reply.key for reply in LakeLedger(workshop.lake).load().all()}


def live_tools(workshop):
    """The rows of the live release's tools by id."""
    pin = workshop.store.named("live").tables["tools"]
    return {row["id"]: row for row in workshop.store.read_rows(pin).to_pylist()}


def assert_whole(workshop, releases):
    """Assert that these releases are still as they were published.

    Those of another contract are recorded, and only the version that made them can verify them.
    """
    for release in map(workshop.store.get, releases):
        if release.contract == CONTRACT:
            assert verify_release(workshop.store, release).problems == ()


def test_an_unchanged_build_on_an_older_board_encodes_and_buys_nothing(older, llm, caplog):
    configuration = configure(older, llm.url)
    releases = [release.id for release in older.store.all()]
    written = json.loads((OLDER / "written.json").read_text("utf-8"))
    before = replies(older)
    tools = live_tools(older).keys()

    with caplog.at_level(logging.WARNING):
        outcome = build(configuration)
        again = build(configuration)

    # Where a release is made of something else by now, it is another one.
    unchanged = versions() == written["versions"]
    assert outcome["outcome"] == ("unchanged" if unchanged else "published")
    assert again["outcome"] == "unchanged"
    assert outcome["catalogs"]["desk"]["kept"] == ["*"]
    assert outcome["encoded"] == 0
    assert llm.log == []
    assert replies(older) == before
    assert live_tools(older).keys() == tools >= KEPT_TOOLS
    assert_whole(older, releases)
    assert caplog.text.count("An older version of Pegboard wrote") == 1


def test_a_further_column_of_tools_is_built_on_an_older_board(older, llm, later_version):
    configuration = configure(older, llm.url)
    releases = [release.id for release in older.store.all()]
    before = replies(older)
    tools = live_tools(older).keys()

    outcome, log = build_with(later_version, configuration.file)

    assert outcome["outcome"] == "published"
    assert outcome["catalogs"]["desk"]["kept"] == ["*"]
    assert outcome["encoded"] == 0
    assert llm.log == []
    assert replies(older) == before
    assert_whole(older, releases)
    assert log.count("An older version of Pegboard wrote") == 1
    assert "Traceback" not in log
    rows = live_tools(older)
    assert rows.keys() == tools
    assert rows["finance/finance/list_rates"]["title"] == "List_Rates"
    assert {rows[tool]["title"] for tool in KEPT_TOOLS} == {""}

    # The failed source comes back, and one tool changes.
    older.write("requests.json", REQUESTS)
    outcome, log = build_with(later_version, configuration.file)

    assert (outcome["outcome"], outcome["encoded"]) == ("published", 0)
    assert live_tools(older)["desk/desk/book_room"]["title"] == "Book_Room"
    assert "older version" not in log
    assert llm.log == []


def test_this_version_refuses_a_board_of_a_later_one_and_changes_nothing(older, llm, later_version):
    configuration = configure(older, llm.url)
    outcome, _ = build_with(later_version, configuration.file)
    releases = older.store.all()
    later = older.store.get(outcome["release"])
    files = older.lake.walk().keys()

    with pytest.raises(NewerFormat, match=r"the table contract, and this version .* Upgrade"):
        build(configuration)
    with pytest.raises(NewerFormat, match="Nothing was changed"):
        prune_board(older.uri, KeepSettings())
    with pytest.raises(ContractMismatch, match=rf"contract {CONTRACT + 1}; .* Upgrade pegboard"):
        pegboard.open(older.uri)
    with pytest.raises(ContractMismatch, match="Upgrade pegboard"):
        verify_release(older.store, later)
    with pytest.raises(ContractMismatch, match="Upgrade pegboard"):
        diff_releases(older.store, releases[-1], later)

    assert older.store.all() == releases
    assert older.lake.walk().keys() == files


def test_a_release_of_an_older_contract_is_refused_with_the_command_that_helps(older):
    older_release = replace(older.store.named("live"), contract=1)
    older.store.update(older_release)

    for read in (
        lambda: pegboard.open(older.uri),
        lambda: verify_release(older.store, older.store.named("live")),
    ):
        with pytest.raises(ContractMismatch, match=r"contract 1; .*`pegboard build` makes"):
            read()


def test_a_raised_format_of_every_kind_of_file_loses_and_repeats_nothing(
    older, llm, monkeypatch, caplog
):
    configuration = configure(older, llm.url)
    first = build(configuration)
    caplog.clear()
    before = replies(older)
    tools = live_tools(older).keys()
    raised = tuple(
        replace(kind, format=2, oldest=0 if kind.path.startswith(CANNOT_BE_MADE_AGAIN) else 2)
        for kind in formats.KINDS
    )
    monkeypatch.setattr(formats, "KINDS", raised)

    with caplog.at_level(logging.WARNING):
        outcome = build(configuration)

    assert (outcome["outcome"], outcome["release"]) == ("unchanged", first["release"])
    assert outcome["catalogs"]["desk"]["kept"] == ["*"]
    assert outcome["encoded"] == 0
    assert llm.log == []
    assert replies(older) == before
    assert live_tools(older).keys() == tools
    assert caplog.text.count("An older version of Pegboard wrote") == 1
    assert "row sets 1 (now 2)" in caplog.text
    pointers = [path for path in older.lake.walk() if re.match("(records|edges)/latest", path)]
    assert len(pointers) >= 3
    assert {json.loads(older.lake.read_text(path))["format"] for path in pointers} == {2}


def test_a_change_is_published_after_a_format_was_raised(older, llm, monkeypatch):
    configuration = configure(older, llm.url)
    build(configuration)
    raised = tuple(replace(kind, format=2) for kind in formats.KINDS)
    monkeypatch.setattr(formats, "KINDS", raised)
    older.write("requests.json", [*REQUESTS[:2], {**REQUESTS[2], "description": "Waters plants."}])

    outcome = build(configuration)

    assert outcome["outcome"] == "published"
    assert outcome["plan"]["changed"] == ["desk/desk/water_plants"]
    assert {entry["subject"] for entry in llm.paid()} == {"water_plants"}


def test_an_older_snapshot_is_read_with_empty_values_for_the_columns_that_it_lacks(
    older, monkeypatch
):
    further = (Column("title"), Column("links", "json"), Column("aliases", "texts"))
    nullable = Column("icon", nullable=True)
    monkeypatch.setattr(
        "tasks.lake.snapshot_rows.CATALOG_TOOL", (*CATALOG_TOOL, *further, nullable)
    )
    latest = older.lake.read_json("snapshots/desk/latest.json")

    rows = snapshot_rows(older.lake, {"desk": latest["snapshot"]}, "tools")
    titles = snapshot_rows(older.lake, {"desk": latest["snapshot"]}, "tools", ["id", "title"])

    assert rows.select("title", "links", "aliases", "icon").unique().rows() == [
        ("", "{}", [], None)
    ]
    assert set(titles.get_column("id")) == KEPT_TOOLS
    assert set(titles.get_column("title")) == {""}
