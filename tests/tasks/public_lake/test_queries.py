"""The queries of docs/how-to/query-the-lake.md over a board of ten releases, with answers that the
library gives in another way.
"""

import contextlib
import io
import json
import re
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from types import SimpleNamespace

import duckdb
import pytest

from flows.build import build
from pegboard.store.diff import tools_with_kinds
from tasks.enrichment.ledger import LakeLedger
from tasks.gate.results import read_details
from tasks.lake.formats import PUBLIC
from tasks.public_lake.schema import TABLES
from tests.conftest import REQUESTS, SERVERS, Workshop, tool
from tests.scripted_llm import scripted_llm

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "query-the-lake.md"
CATALOGS = """
[catalogs.kit]
type = "mcp-dump"
path = "servers.json"

[catalogs.desk]
type = "records"
path = "requests.json"
agent = "desk"

[golden]
queries = "golden.jsonl"
min_queries = 10

[gate]
rules = ["Recall@5 >= 0"]

[enrich]
model = "openai/scripted"
api_base = "URL"
products = ["questions"]
questions = 3

[enrich.price]
input = 1.0
output = 2.0
"""
GOLDEN = [
    {"query": f"{words} number {number}", "tools": [name]}
    for number in range(5)
    for name, words in (("create_issue", "open an issue"), ("merge_branch", "join two branches"))
]
FAILED = (3, 6, 7)
"""The builds, from 0, for which the file of the catalog `desk` is missing."""


@pytest.fixture(scope="module")
def ten_releases(tmp_path_factory):
    """A board after ten releases, and what each build returned. In every build the first tool has
    another description; the second tool is missing in builds 4 and 5.
    """
    workshop = Workshop(tmp_path_factory.mktemp("public"))
    workshop.write("golden.jsonl", "\n".join(map(json.dumps, GOLDEN)))
    first, second, *others = (tool for tool in SERVERS["git"] if tool["name"] != "list_commits")
    outcomes = []
    with scripted_llm() as llm:
        configuration = workshop.configure(
            catalogs=CATALOGS.replace("URL", llm.url), board="public_lake = true"
        )
        for number in range(10):
            changing = tool("create_issue", f"Opens an issue, edition {number}.")
            tools = [changing, *others] if number in (4, 5) else [changing, second, *others]
            workshop.servers({"git": tools})
            requests = workshop.write("requests.json", REQUESTS)
            if number in FAILED:
                requests.unlink()
            outcomes.append(build(configuration))
    assert first["name"] == "create_issue"
    assert {outcome["outcome"] for outcome in outcomes} == {"published"}
    assert all(outcome["unfinished"] == {} for outcome in outcomes)
    return SimpleNamespace(workshop=workshop, outcomes=outcomes)


@pytest.fixture
def ask(ten_releases):
    """A function that runs the query of the page which contains a text, over the page's views."""
    blocks = re.findall(r"```sql\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    connection = duckdb.connect()
    connection.sql(blocks[0].replace("'board/", f"'{ten_releases.workshop.uri}/"))

    def ask(part):
        (query,) = (block for block in blocks[1:] if part in block)
        return connection.sql(query).fetchall()

    return ask


def releases(ten_releases):
    """The recorded releases, the oldest first."""
    return ten_releases.workshop.store.all()[::-1]


def test_the_history_of_a_tool_is_that_of_the_releases(ten_releases, ask):
    store = ten_releases.workshop.store

    history = [(release, change, text) for _, release, change, text in ask("description")]

    descriptions = [
        (release.id, tools_with_kinds(store, release, ["kit/git/create_issue"]))
        for release in releases(ten_releases)
    ]
    assert history == [
        (release, "changed" if number else "new", tools["kit/git/create_issue"][0].description)
        for number, (release, tools) in enumerate(descriptions)
    ]


def test_a_tool_that_left_and_came_back_is_removed_and_new(ten_releases):
    path = f"{ten_releases.workshop.uri}/lake/public/tools/*/*.parquet"

    history = duckdb.sql(
        f"SELECT release, change, description <> '' FROM '{path}' "
        "WHERE id = 'kit/git/merge_branch' ORDER BY released_at"
    ).fetchall()

    ids = [release.id for release in releases(ten_releases)]
    assert history == [(ids[0], "new", True), (ids[4], "removed", True), (ids[6], "new", True)]


def test_the_spend_by_model_is_that_of_the_ledger_and_of_the_builds(ten_releases, ask):
    replies = [*LakeLedger(ten_releases.workshop.lake).load().all()]

    [(model, count, usd)] = ask("llm_calls")

    assert (model, count) == (replies[0].answered_by, len(replies))
    assert usd == pytest.approx(sum(reply.cost_usd for reply in replies))
    actual = [outcome["enrichment"]["actual"] for outcome in ten_releases.outcomes]
    assert usd == pytest.approx(sum(figures["cost_usd"] for figures in actual), abs=1e-5)
    assert usd > 0


def test_recall_over_releases_is_what_the_gate_measured(ten_releases, ask):
    uri = ten_releases.workshop.uri
    measures = [
        (release.id, row["value"], row["low"], row["high"])
        for release in releases(ten_releases)
        for row in read_details(uri, release)["measures"]
        if row["measure"] == "Recall@5"
    ]

    assert ask("evaluations") == measures
    assert len(measures) == 10


def test_the_tools_of_each_catalog_in_each_release_are_those_of_its_manifest(ten_releases, ask):
    counts = [
        (release.id, catalog, entry["tools"])
        for release in releases(ten_releases)
        for catalog, entry in sorted(release.manifest["catalogs"].items())
    ]

    assert ask("states") == counts
    assert {count for _, catalog, count in counts if catalog == "kit"} == {2, 3}


def test_the_sources_that_failed_are_those_of_the_builds(ten_releases, ask):
    failures = [
        name
        for outcome in ten_releases.outcomes
        for name, catalog in outcome["catalogs"].items()
        if catalog["problems"]
    ]

    assert ask("failures") == [("desk", len(failures), len(ten_releases.outcomes))]
    assert len(failures) == len(FAILED)


def test_runs_and_releases_are_those_of_the_builds(ten_releases):
    public = f"{ten_releases.workshop.uri}/lake/public"

    runs = duckdb.sql(
        f"SELECT release, outcome, new, changed, removed, unchanged, failed_sources "
        f"FROM '{public}/runs/*/*.parquet' ORDER BY ended_at"
    ).fetchall()
    rows = duckdb.sql(
        f"SELECT release, new, changed, removed, unchanged, tools, gate_passed "
        f"FROM '{public}/releases/*/*.parquet' ORDER BY released_at"
    ).fetchall()

    plans = [outcome["plan"] for outcome in ten_releases.outcomes]
    changes = [
        (*(len(plan[name]) for name in ("new", "changed", "removed")), plan["unchanged"])
        for plan in plans
    ]
    ids = [outcome["release"] for outcome in ten_releases.outcomes]
    failed = [int(number in FAILED) for number in range(10)]
    assert runs == [(ids[n], "published", *changes[n], failed[n]) for n in range(10)]
    counts = [release.manifest["counts"]["tools"] for release in releases(ten_releases)]
    assert rows == [(ids[n], *changes[n], counts[n], True) for n in range(10)]


def test_the_page_reads_the_tables_with_polars(ten_releases):
    code, _ = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    printed = io.StringIO()

    with contextlib.redirect_stdout(printed):
        exec(code.replace('"board/', f'"{ten_releases.workshop.uri}/'))

    assert all(release.id in printed.getvalue() for release in releases(ten_releases))


def test_neither_prompts_nor_replies_are_public(ten_releases):
    replies = [*LakeLedger(ten_releases.workshop.lake).load().all()]
    path = f"{ten_releases.workshop.uri}/lake/public/llm_calls/*/*.parquet"

    cells = str(duckdb.sql(f"FROM '{path}'").fetchall())

    assert replies[0].subject in cells
    assert not any(reply.value in cells for reply in replies if reply.value)
    assert not any(len(reply.prompt) > 8 and reply.prompt in cells for reply in replies)


def test_the_page_describes_every_table_and_its_columns():
    text = PAGE.read_text("utf-8")
    section = r"^### (\w+)\n\n(.*?)\n\n(\|.*?)(?:\n\n|\Z)"
    headings = re.findall(section, text, re.DOTALL | re.MULTILINE)

    described = {
        name: (sentence, [row.strip("|\n ").split(" | ") for row in rows.splitlines()[2:]])
        for name, sentence, rows in headings
    }

    assert described == {
        table.name: (
            f"A row is {table.rows}. A folder for each {table.partition}.",
            [[f"`{column.name}`", column.kind, column.meaning] for column in table.columns],
        )
        for table in TABLES
    }
    assert f"the version of this schema, {PUBLIC}," in text
    by_partition = {
        partition: [table.name for table in group]
        for partition, group in groupby(TABLES, lambda table: table.partition)
    }
    assert [*by_partition] == ["release", "day"]
    assert itemgetter("day")(by_partition) == ["runs", "sources", "llm_calls"]
