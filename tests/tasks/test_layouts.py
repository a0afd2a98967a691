"""Boards of an earlier table contract: they are read, compared with, published beside, and gone
back to.
"""

import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest

import pegboard
from pegboard.search.loaded import LoadedRelease
from pegboard.store.contract import layout
from pegboard.store.database import open_table
from pegboard.store.diff import diff_releases
from pegboard.store.releases import Pin, Release
from pegboard.store.verify import verify_release
from tasks.lake.files import Lake
from tasks.lake.row_sets import read_rows
from tasks.lake.row_vectors import row_vectors
from tasks.lake.snapshot_rows import snapshot_rows
from tasks.wanted import table_digest

MODES = ["hybrid", "vector", "text"]


@pytest.fixture
def first(workshop, encoder):
    """A board whose live release follows contract 1."""
    servers = {
        "git": [
            workshop.tool("create_issue", "Opens an issue.", title="its headline"),
            workshop.tool("merge_branch", "Merges a branch into another."),
        ]
    }
    workshop.servers(servers)
    return publish_in_layout_1(workshop, workshop.configure(), encoder)


def publish_in_layout_1(workshop, configuration, encoder):
    """What a pipeline of contract 1 published: the rows as the catalogs give them, in tables of
    that layout.
    """
    run = workshop.run(configuration, "embed")
    (snapshot,) = run.snapshots
    identities = {snapshot.catalog: snapshot.digest}
    old, lake = layout(1), Lake(workshop.uri)
    documents = read_rows(lake, run.documents[0].path)
    vectors = row_vectors(workshop.uri, encoder.fingerprint, documents, encoder.dimensions)
    rows = {
        "tools": (old.tools(), snapshot_rows(lake, identities, "tools")),
        "agents": (old.agents(), snapshot_rows(lake, identities, "agents")),
        "emb_full": (
            old.embeddings(encoder.dimensions),
            documents.with_columns(
                pl.Series("vector", vectors, dtype=pl.Array(pl.Float32, encoder.dimensions))
            ),
        ),
    }
    store, pins = workshop.store, {}
    store.create()
    for name, (schema, frame) in rows.items():
        table = store.database.create_table(
            name, frame.select(schema.names).to_arrow().cast(schema), schema=schema
        )
        key = schema.names[0]
        pins[name] = Pin(
            name, table.version, frame.height, table_digest(frame.select(key, "digest"))
        )
    index = {
        "encoder": encoder.name,
        "fingerprint": encoder.fingerprint,
        "dimensions": encoder.dimensions,
        "shape": "single",
    }
    manifest = {
        "default_index": "full",
        "indexes": {"full": index},
        "catalogs": {"kit": {"snapshot": snapshot.digest}},
        "counts": {"tools": 2, "agents": 1},
    }
    release = Release("1" * 12, "1" * 64, 1, datetime.now(UTC), pins, manifest)
    store.add(release)
    store.promote(release.id)
    return release


@pytest.mark.parametrize("rows", [50_000, 0])
@pytest.mark.parametrize("mode", MODES)
def test_a_release_of_the_first_contract_is_searched(workshop, first, encoder, mode, rows):
    board = pegboard.open(workshop.uri, encoder=encoder, in_memory_rows=rows)

    (hit,) = board.search("open an issue", 1, mode=mode)

    assert board.release == first
    assert (hit.tool.name, hit.tool.description, hit.agent.name) == (
        "create_issue",
        "Opens an issue.",
        "git",
    )
    assert (hit.tool.enrichment, hit.tool.flags, hit.agent.enrichment) == (None, (), None)


def test_tools_of_a_release_of_the_first_contract_are_unchanged_until_their_catalog_says_something_else(
    workshop, first
):
    same = workshop.run(workshop.configure(), "plan").plan
    workshop.servers(
        {"git": [workshop.tool("create_issue", "Closes an issue."), workshop.tool("fresh")]}
    )
    other = workshop.run(workshop.configure(), "plan").plan

    assert (same.live, same.new, same.changed, same.removed, same.unchanged) == (
        first.id,
        (),
        (),
        (),
        2,
    )
    assert (other.new, other.changed, other.removed, other.unchanged) == (
        ("kit/git/fresh",), ("kit/git/create_issue",), ("kit/git/merge_branch",), 0,
    )  # fmt: skip


def test_the_next_release_goes_beside_and_a_reader_follows_to_it_and_back(workshop, first, encoder):
    board = pegboard.open(workshop.uri, encoder=encoder, refresh=0)
    before = board.search("merge a branch", 2)
    workshop.servers(
        {
            "git": [
                workshop.tool("create_issue", "Opens an issue. Key: ghp_0123456789abcdefghij0123")
            ]
        }
    )

    second = workshop.run(workshop.configure()).release
    after = board.search("merge a branch", 2)
    workshop.store.rollback()

    assert {name: pin.table for name, pin in second.tables.items()} == {
        "tools": "tools_v3", "agents": "agents_v3", "edges": "edges", "emb_full": "emb_full_256", "agents_full": "agents_full",
    }  # fmt: skip
    assert (second.contract, [hit.tool.flags for hit in after]) == (4, [("credential",)])
    assert board.release == first
    assert board.search("merge a branch", 2) == before
    for name, pin in first.tables.items():
        assert (
            open_table(workshop.store.database, pin.table, workshop.uri, pin.version).count_rows()
            == pin.rows
        ), name


def test_releases_after_the_first_of_a_contract_stay_in_its_tables(workshop, first):
    second = workshop.run(workshop.configure()).release
    workshop.servers({"git": [workshop.tool("create_issue", "Opens an issue.")]})

    third = workshop.run(workshop.configure()).release

    assert [one.tables["tools"].table for one in (first, second, third)] == [
        "tools",
        "tools_v3",
        "tools_v3",
    ]
    assert third.tables["tools"].version > second.tables["tools"].version


SPECIMEN = Path(__file__).parents[1] / "contract" / "board_3"
"""A board as the code of contract 3 published it."""


def test_a_release_of_contract_3_has_the_dependencies_that_its_catalogs_declared(workshop, hashing):
    workshop.write("rows.json", [{"name": "book", "needs": ["find"]}, {"name": "find"}])
    catalog = (
        '[catalogs.desk]\ntype = "records"\npath = "rows.json"\nagent = "desk"\ncolumns = '
        '{dependencies = "needs"}\n'
    )
    now = workshop.run(
        workshop.configure("[graph]\ninfer = false\n", catalog), encoder=hashing()
    ).release
    tables = {name: now.tables[name] for name in ("tools", "agents", "emb_full")}
    then = replace(now, id="3" * 12, digest="3" * 64, contract=3, tables=tables)
    store = workshop.store
    store.add(then)
    store.promote(then.id, "old")

    graphs = [LoadedRelease(store, store.get(one.id), 50_000).graph for one in (now, then)]

    for graph in graphs:
        assert [one.target for one in graph.edges_from("desk/desk/book")] == ["desk/desk/find"]
    assert verify_release(store, then).problems == ()
    assert diff_releases(store, then, now).edges is None
    assert diff_releases(store, then, now).counts["unchanged"] == 2


def test_a_build_after_contract_3_goes_on_in_its_tables(workshop, hashing):
    shutil.copytree(SPECIMEN, workshop.uri)
    before = workshop.store.get(workshop.store.channel().release)
    workshop.servers({"git": [workshop.tool("create_issue", "Opens an issue.")]})

    after = workshop.run(workshop.configure(), encoder=hashing()).release

    assert (before.contract, after.contract) == (3, 4)
    assert {name: pin.table for name, pin in after.tables.items()} == {
        name: name for name in ("tools", "agents", "edges", "emb_full", "agents_full")
    }
    assert verify_release(workshop.store, before).problems == ()
    old_encoder = SimpleNamespace(
        name="stub/hashing", fingerprint="hashing-16", dimensions=16, encode=hashing().encode
    )
    assert pegboard.open(workshop.uri, release=before.id, encoder=old_encoder).search("invoice", 1)
