"""When the public lake is written: nothing twice, nothing lost, and never at the cost of a run."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import polars as pl
import pytest

from flows.build import BuildOptions, build
from pegboard.errors import StoreError
from pegboard.store.contract import CHECKSUM, column_names
from pegboard.store.releases import ReleaseStore
from tasks.enrichment.ledger import StoredReply
from tasks.lake.files import Lake
from tasks.public_lake.days import MAX_FILES, REPLY_COLUMNS, merge_days, write_run
from tasks.public_lake.schema import TABLES, public_table
from tasks.public_lake.writing import write_public_lake
from tasks.settings.configuration import KeepSettings
from tasks.steps.prune import prune_board

OUTCOME = {
    "outcome": "unchanged",
    "release": "0a1b2c",
    "plan": {"new": [], "changed": [], "removed": [], "unchanged": 3},
    "catalogs": {"kit": {"tools": 3, "agents": 1, "rejected": 0, "kept": [], "problems": []}},
    "rejected": [],
    "encoded": 0,
    "truncated": 0,
    "enrichment": None,
    "unfinished": {},
    "seconds": {"snapshot": 1.0},
}


@pytest.fixture
def public(workshop):
    """A board with public tables: `build` publishes tools of these names; `rows` reads a table."""

    def publish(*names, **options):
        workshop.servers(workshop.named(*names))
        return build(workshop.configure(board="public_lake = true"), BuildOptions(**options))

    def rows(table):
        frame = pl.read_parquet(f"{workshop.uri}/lake/public/{table}/*/*.parquet")
        return frame.sort(frame.columns)

    def files():
        return {*workshop.lake.walk("public")}

    return SimpleNamespace(build=publish, rows=rows, files=files)


def changes(public, table="tools"):
    """The names of tools, or the keys of rows, by the release and the change."""
    frame = public.rows(table)
    named = "name" if "name" in frame.columns else "key"
    return sorted(frame.select("release", "change", named).rows())


def test_a_release_writes_only_the_rows_that_differ_from_the_one_before(public):
    first = public.build("one", "two", "three")["release"]
    before = public.files()
    second = public.build("one", "two", "four")["release"]

    assert changes(public) == sorted(
        [
            *((first, "new", name) for name in ("one", "two", "three")),
            (second, "new", "four"),
            (second, "removed", "three"),
        ]
    )
    assert {row["change"] for row in public.rows("documents").to_dicts()} == {"new", "removed"}
    assert {*public.rows("documents").get_column("index")} == {"full"}
    assert before < public.files()
    folders = {path.split("/")[1] for path in public.files() - before}
    assert folders == {"tools", "documents", "releases", "runs", "sources"}  # agents are the same


def test_an_unchanged_build_adds_its_run_and_nothing_else(public):
    public.build("one", "two")
    before = public.files()

    assert public.build("one", "two")["outcome"] == "unchanged"

    added = sorted(path.split("/")[1] for path in public.files() - before)
    assert added == ["runs", "sources"]
    assert {*public.rows("runs").get_column("outcome")} == {"published", "unchanged"}


def test_a_table_without_rows_can_be_read(public):
    public.build("one")

    for table in TABLES:
        assert public.rows(table.name).schema == table.types()
    assert public.rows("llm_calls").height == 0


def test_a_dry_run_and_a_board_without_public_tables_write_none(public, workshop):
    public.build("one", dry_run=True)
    workshop.servers(workshop.named("one"))
    build(workshop.configure(board="public_lake = false"))

    assert public.files() == set()


@pytest.mark.parametrize("writes", [0, 5, 10, 11, 12, 13, 14, 15])
def test_a_run_that_was_killed_while_it_wrote_is_completed_by_the_next(
    public, monkeypatch, writes, workshop
):
    """The first build's public files are cut off after so many writes."""
    left = iter(range(writes))
    write = Lake.write
    write_json = Lake.write_json

    def counted(original):
        def counted(lake, path, value, **options):
            if path.startswith("public/") and next(left, None) is None:
                raise StoreError("the disk is full")
            return original(lake, path, value, **options)

        return counted

    with monkeypatch.context() as patch:
        patch.setattr(Lake, "write", counted(write))
        patch.setattr(Lake, "write_json", counted(write_json))
        outcome = public.build("one", "two")
    assert outcome["outcome"] == "published"
    assert "the disk is full" in outcome["unfinished"]["public lake"]
    assert workshop.store.named("live").id == outcome["release"]

    assert public.build("one", "two")["unfinished"] == {}

    assert changes(public) == [(outcome["release"], "new", name) for name in ("one", "two")]
    assert public.rows("releases").height == 1
    assert public.rows("documents").height == 2


def test_an_unexpected_error_leaves_the_release_published(public, workshop, monkeypatch):
    def fail(*_):
        raise RuntimeError("no such type")

    monkeypatch.setattr("tasks.public_lake.writing.write_releases", fail)

    outcome = public.build("one")

    assert (outcome["outcome"], [*outcome["unfinished"]]) == ("published", ["public lake"])
    assert workshop.store.named("live").id == outcome["release"]


def test_a_prune_removes_the_rows_of_its_releases_and_the_rest_still_adds_up(public, workshop):
    releases = [public.build(*names)["release"] for names in (["a"], ["a", "b"], ["b", "c"])]
    later = datetime.now(UTC) + timedelta(days=60)
    keep = KeepSettings(releases=1, days=0, grace_hours=1)

    removed = prune_board(workshop.uri, keep, later).removed

    assert removed == (releases[0],)
    assert {*public.rows("releases").get_column("release")} == {*releases[1:]}
    assert changes(public) == sorted(
        [
            *((releases[1], "new", name) for name in "ab"),
            (releases[2], "new", "c"),
            (releases[2], "removed", "a"),
        ]
    )
    before = public.files()
    write_public_lake(workshop.uri)
    assert public.files() == before


def test_the_release_tables_are_written_again_if_the_folder_was_deleted(public, workshop):
    public.build("one")
    public.build("one", "two")
    before = changes(public)
    files = public.files()

    workshop.lake.delete(*files)
    write_public_lake(workshop.uri)

    assert changes(public) == before
    days = {path for path in files if path.split("/")[1] in ("runs", "sources")}
    assert public.files() >= files - days


def test_a_release_that_cannot_be_read_keeps_none_of_the_others_back(public, workshop, monkeypatch):
    first, second = (public.build(*names)["release"] for names in (["one"], ["one", "two"]))
    workshop.lake.delete(*public.files())
    read = ReleaseStore.read_rows

    def read_rows(store, pin, *args, **kwargs):
        if pin == store.get(second).tables["tools"]:
            raise StoreError("version 7 is gone")
        return read(store, pin, *args, **kwargs)

    monkeypatch.setattr(ReleaseStore, "read_rows", read_rows)
    with pytest.raises(StoreError, match=f"release {second}: version 7 is gone"):
        write_public_lake(workshop.uri)

    assert {*public.rows("releases").get_column("release")} == {first}


def test_the_files_of_a_day_become_one_when_it_is_over_or_there_are_many(lake):
    yesterday = datetime(2026, 3, 1, 12, tzinfo=UTC)
    today = datetime(2026, 3, 2, 12, tzinfo=UTC)
    for minute in range(3):
        write_run(lake, OUTCOME, yesterday + timedelta(minutes=minute))
    for minute in range(MAX_FILES):
        write_run(lake, OUTCOME, today + timedelta(minutes=minute))
    runs = lambda: pl.concat(lake.read(path) for path in lake.walk("public/runs"))  # noqa: E731
    before = runs().sort("ended_at")

    merge_days(lake, lake.walk("public"), today.date())
    assert len(lake.walk("public/runs/2026-03-01")) == 1
    assert len(lake.walk("public/runs/2026-03-02")) == MAX_FILES

    write_run(lake, OUTCOME, today + timedelta(hours=1))
    merge_days(lake, lake.walk("public"), today.date())
    assert len(lake.walk("public/runs/2026-03-02")) == 1
    assert runs().sort("ended_at").head(before.height).equals(before)
    assert runs().height == before.height + 1


def test_a_merge_that_was_killed_leaves_no_row_twice(lake, monkeypatch):
    day = datetime(2026, 3, 1, 12, tzinfo=UTC)
    for minute in range(3):
        write_run(lake, OUTCOME, day + timedelta(minutes=minute))
    with monkeypatch.context() as patch:
        patch.setattr(Lake, "delete", lambda *_: None)
        merge_days(lake, lake.walk("public"), day.date() + timedelta(days=1))
    assert len(lake.walk("public/runs")) == 4

    merge_days(lake, lake.walk("public"), day.date() + timedelta(days=1))

    [path] = lake.walk("public/runs")
    assert lake.read(path).height == 3


def test_every_column_of_tools_agents_and_edges_is_public():
    for name in ("tools", "agents", "edges"):
        public = [column.name for column in public_table(name).columns]
        assert public[3:] == [column for column in column_names(name) if column != CHECKSUM]


def test_no_column_of_a_reply_that_holds_a_text_is_read_for_llm_calls():
    assert not {"raw", "detail", "content", "prompt", "shown"} & {*REPLY_COLUMNS}
    assert {*REPLY_COLUMNS} < {*StoredReply.__slots__}
    assert "value" not in public_table("llm_calls").types()
