"""Runs after the first: whatever changed, what they make is what a first run would have made."""

import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.records import Enrichment
from tasks.enrichment.enrichment_sets import write_enrichments
from tasks.lake import incremental
from tasks.lake.files import Lake
from tasks.lake.row_sets import read_rows
from tasks.lake.snapshot_rows import snapshot_rows
from tasks.settings.configuration import IndexSettings
from tasks.steps import release_spec
from tasks.steps.compose import compose_agents, compose_index
from tasks.steps.edges import compose_edges
from tasks.steps.release_spec import compose_records, make_release_spec, table_rows
from tasks.steps.snapshot import take_snapshot

INDEXES = (
    IndexSettings(
        name="full", parts=("agent", "name", "description", "arguments", "questions", "topics")
    ),
    IndexSettings(name="fine", shape="multi", questions=2),
)
KINDS = ["add", "change", "remove", "rename", "kind", "write", "forget", "share", "nothing"]
MOVES = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 99)), min_size=1, max_size=6)


class Office:
    """Two catalogs that change by random moves, and what was written about their tools."""

    def __init__(self, workshop):
        self.workshop = workshop
        self.agents = {"git": 0, "shop": 0}
        self.tools = {
            ("git", "create_issue"): 0,
            ("git", "merge_branch"): 0,
            ("shop", "order_lunch"): 0,
        }
        self.kind = "library"
        self.written = {}

    def move(self, move, at):
        keys = sorted(self.tools)
        owner, name = keys[at % len(keys)]
        identity = f"kit/{owner} {self.agents[owner]}/{name}"
        if move == "add":
            self.tools[owner, f"tool_{at}"] = 0
        elif move == "change":
            self.tools[owner, name] += 1
        elif move == "remove" and len(keys) > 1:
            del self.tools[owner, name]
        elif move == "rename":
            self.agents[owner] += 1
        elif move == "kind":
            self.kind = "agent" if self.kind == "library" else "library"
        elif move == "write":
            questions = tuple(f"question {number}" for number in range(at % 4))
            self.written[identity] = Enrichment(
                description=f"Words {at}.", questions=questions, topics=("a", f"b{at}")
            )
        elif move == "forget":
            self.written.pop(identity, None)
        elif move == "share":
            for number in range(6):
                self.tools[owner, f"shared_{number}"] = 0

    def configure(self):
        tool = self.workshop.tool
        servers = {}
        for (agent, name), edition in sorted(self.tools.items()):
            listed = servers.setdefault(f"{agent} {self.agents[agent]}", [])
            listed.append(tool(name, f"Edition {edition}.", item="what"))
        self.workshop.servers(servers)
        self.workshop.write(
            "rows.json",
            [{"name": name, "description": agent} for agent, name in sorted(self.tools)],
        )
        return self.workshop.configure(
            catalogs='[catalogs.kit]\ntype = "mcp-dump"\npath = "servers.json"\n'
            f'[catalogs.desk]\ntype = "records"\npath = "rows.json"\nagent_kind = "{self.kind}"\n'
        )

    def made(self, configuration, uri):
        """Every row that the steps make for this board, and the digest of the release."""
        configuration = configuration.model_copy(
            update={
                # A removal that is held keeps tools which a fresh lake never had.
                "board": configuration.board.model_copy(update={"uri": uri, "max_removal": 1.0}),
                "indexes": INDEXES,
            }
        )
        snapshots = [take_snapshot(configuration, name) for name in configuration.catalogs]
        identities = {one.catalog: one.digest for one in snapshots}
        lake = Lake(uri)
        enrichments = write_enrichments(lake, self.written, {"kit/git 0": "It hosts."})
        documents = [
            make(uri, index, identities, enrichments)
            for index in INDEXES
            for make in (compose_index, compose_agents)
        ]
        records = compose_records(uri, identities, enrichments)
        edges = compose_edges(configuration, identities)
        wanted = make_release_spec(configuration, documents, records, edges)
        frames = [snapshot_rows(lake, identities, kind) for kind in ("agents", "tools")]
        frames += [table_rows(uri, table) for table in wanted.tables]
        counts = [one.rows for one in documents], records.enriched, records.flagged, edges.to_dict()
        return (
            snapshots,
            counts,
            wanted.digest,
            [sorted(map(repr, frame.to_dicts())) for frame in frames],
        )


def test_an_incremental_run_after_every_kind_of_change_equals_a_run_from_scratch(
    tmp_path, workshop_type
):
    moves = [
        ("write", 2),
        ("change", 2),
        ("rename", 1),
        ("write", 1),
        ("forget", 2),
        ("add", 40),
        ("share", 0),
        ("change", 5),
        ("kind", 0),
        ("remove", 0),
        ("nothing", 0),
    ]
    assert {kind for kind, _ in moves} == set(KINDS)

    assert_made_as_from_scratch(workshop_type(tmp_path), moves)


def test_rows_made_in_batches_equal_rows_made_at_once(tmp_path, workshop_type, monkeypatch):
    office = Office(workshop_type(tmp_path))
    for move, at in (("write", 2), ("add", 40), ("share", 0)):
        office.move(move, at)
    configuration = office.configure()
    whole = office.made(configuration, str(tmp_path / "whole"))

    monkeypatch.setattr(incremental, "BATCH", 2)
    monkeypatch.setattr(release_spec, "DIGESTED", 2)
    monkeypatch.setattr("catalogs.shared.tool_row.ROWS_AT_ONCE", 2)

    assert len(office.tools) > 2
    assert office.made(configuration, str(tmp_path / "batches")) == whole


@pytest.mark.slow
@settings(max_examples=12)
@given(MOVES)
def test_an_incremental_run_equals_a_run_from_scratch(tmp_path_factory, workshop_type, moves):
    assert_made_as_from_scratch(workshop_type(tmp_path_factory.mktemp("office")), moves)


def assert_made_as_from_scratch(workshop, moves):
    folder = workshop.folder
    office = Office(workshop)
    office.made(office.configure(), str(folder / "grown"))
    for number, (move, at) in enumerate(moves):
        office.move(move, at)
        configuration = office.configure()

        grown = office.made(configuration, str(folder / "grown"))

        assert grown == office.made(configuration, str(folder / f"fresh-{number}"))
        assert office.made(configuration, str(folder / "grown")) == grown


class Large:
    """A board of two hundred published tools of ten agents, and its lake."""

    def __init__(self, workshop):
        self.workshop = workshop
        self.servers = {
            f"server-{agent}": [
                workshop.tool(f"tool_{number}", f"Does {number} for {agent}.")
                for number in range(20)
            ]
            for agent in range(10)
        }

    def change(self, text="Does another thing.", agent=3, number=7):
        self.servers[f"server-{agent}"][number]["description"] = text

    def publish(self):
        return self.workshop.publish(self.servers)

    def files(self, folder=None):
        return {
            path: path.stat().st_size
            for path in Path(folder or self.workshop.lake.uri).rglob("*")
            if path.is_file()
        }

    def new_rows(self, before):
        """The rows of each Parquet file of the lake that was not there before."""
        lake = self.workshop.lake
        return [
            lake.read(path.relative_to(lake.uri).as_posix()).height
            for path in self.files().keys() - before.keys()
            if path.suffix == ".parquet"
        ]


@pytest.fixture(scope="module")
def large_uri(tmp_path_factory, workshop_type):
    """A published board of two hundred tools. Do not change it."""
    large = Large(workshop_type(tmp_path_factory.mktemp("large")))
    large.publish()
    return large.workshop.uri


@pytest.fixture
def large(workshop, large_uri):
    shutil.copytree(large_uri, workshop.uri)
    return Large(workshop)


def test_one_changed_tool_writes_one_row_of_each_table_of_the_lake(large):
    before = large.files()
    large.change()

    run = large.publish()

    assert run.encoded == 1
    assert large.new_rows(before) == [1] * 6


def test_a_sentence_that_becomes_boilerplate_changes_only_the_tools_that_have_it(large):
    for number in range(5):
        large.change(f"Job {number}. Ends with {number}. Shared by many.", agent=0, number=number)
    large.publish()
    before = large.files()
    large.change("Job 5. Ends with 5. Shared by many.", agent=0, number=5)

    run = large.publish()

    assert run.encoded == 7  # six documents and the summary of the one that changed
    rows = read_rows(large.workshop.lake, run.documents[0].path, ["text"])
    assert "Shared by many" not in "".join(rows.get_column("text"))
    assert sorted(large.new_rows(before)) == [1, 1, 1, 1, 6, 7]


def test_an_unchanged_run_writes_nothing(large):
    before = large.files(large.workshop.uri)

    run = large.publish()

    assert run.release is None
    assert large.files(large.workshop.uri) == before


@pytest.mark.parametrize(
    "lost", ["documents", "records", "edges", "snapshots/kit/layers", "latest-"]
)
def test_files_missing_from_the_lake_are_made_again_and_the_release_is_unchanged(large, lost):
    large.change()
    expected = large.publish().spec
    root = Path(large.workshop.lake.uri)
    if lost == "latest-":
        for path in root.rglob("latest-*.json"):
            path.write_text("{")
    else:
        shutil.rmtree(root / lost)

    assert large.publish().spec.digest == expected.digest
