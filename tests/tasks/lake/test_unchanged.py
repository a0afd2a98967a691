"""Sources of files that are what they were: not read again, and said alike; everything else is
read.
"""

import json
from pathlib import Path

import pytest

from tasks.plan import compare_with_source
from tasks.snapshot import take_snapshot, unchanged_snapshot

OPENAPI = {
    "openapi": "3.1.0",
    "info": {"title": "Shop", "version": "1"},
    "paths": {
        "/orders": {
            "get": {"operationId": "list_orders", "responses": {"200": {"description": "all"}}}
        }
    },
}
ROWS = [{"name": "book", "about": "Books a room."}, {"about": "has no name"}]
KINDS = {
    "mcp-dump": (
        "dump.json",
        {"git": {"tools": [{"name": "one"}, {"description": "has no name"}]}},
        'path = "dump.json"',
    ),
    "functions": ("f.json", [{"name": "add", "parameters": {}}, {"x": 1}], 'path = "*.json"'),
    "records": ("r.json", ROWS, 'path = "r.json"\ncolumns = { description = "about" }'),
    "openapi": ("api.json", OPENAPI, 'path = "api.json"'),
}


@pytest.fixture(params=KINDS)
def source(request, workshop):
    """A catalog of each kind that is made of files, listed once; its file."""
    file, content, options = KINDS[request.param]
    path = workshop.write(file, content)
    configuration = workshop.configure(
        catalogs=f'[catalogs.own]\ntype = "{request.param}"\n{options}\n'
    )
    return configuration, path, take_snapshot(configuration, "own")


def test_a_source_that_did_not_change_is_not_read_and_said_alike(source, workshop):
    configuration, path, first = source
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content)  # a checkout gives every file a new date

    assert unchanged_snapshot(configuration, "own") == first
    assert take_snapshot(configuration, "own") == first
    assert first.tools == 1


def test_a_source_whose_file_changed_is_read(source):
    configuration, path, _ = source
    path.write_text(path.read_text() + "\n")

    assert unchanged_snapshot(configuration, "own") is None


def test_a_source_with_another_option_is_read(source, workshop):
    configuration, _, first = source
    text = configuration.file.read_text().replace(
        "[catalogs.own]", '[catalogs.own]\ntags = ["new"]'
    )
    configuration.file.write_text(text)
    configuration = workshop.configure(catalogs=text.partition("\n\n")[2])

    assert unchanged_snapshot(configuration, "own") is None
    assert take_snapshot(configuration, "own").digest != first.digest


def test_another_file_that_a_pattern_matches_is_read(workshop):
    workshop.write("a.json", [{"name": "add", "parameters": {}}])
    configuration = workshop.configure(
        catalogs='[catalogs.own]\ntype = "functions"\npath = "*.json"\n'
    )
    take_snapshot(configuration, "own")
    workshop.write("b.json", [{"name": "subtract", "parameters": {}}])

    assert take_snapshot(configuration, "own").tools == 2


def test_example_queries_belong_to_the_source(workshop):
    workshop.write("rows.json", [{"name": "book"}])
    workshop.write("queries.jsonl", '{"query": "a room", "tool": "book"}')
    catalogs = (
        '[catalogs.own]\ntype = "records"\npath = "rows.json"\nexamples = { path = '
        '"queries.jsonl" }\n'
    )
    configuration = workshop.configure(catalogs=catalogs)
    first = take_snapshot(configuration, "own")
    workshop.write("queries.jsonl", '{"query": "a hall", "tool": "book"}')

    assert take_snapshot(configuration, "own").digest != first.digest


@pytest.mark.parametrize("there", [True, False], ids=["there", "missing"])
def test_a_document_that_refers_to_other_files_is_read_in_every_run(workshop, there):
    document = json.loads(json.dumps(OPENAPI))
    schema = {"$ref": "parts.json#/Query"}
    document["paths"]["/orders"]["get"]["parameters"] = [
        {"name": "q", "in": "query", "schema": schema}
    ]
    workshop.write("api.json", document)
    if there:
        workshop.write("parts.json", {"Query": {"type": "string"}})
    configuration = workshop.configure(
        catalogs='[catalogs.own]\ntype = "openapi"\npath = "api.json"\n'
    )
    first = take_snapshot(configuration, "own")
    workshop.write("parts.json", {"Query": {"type": "integer"}})

    assert unchanged_snapshot(configuration, "own") is None
    assert take_snapshot(configuration, "own").digest != first.digest


def test_a_source_that_runs_code_is_read_in_every_run(workshop):
    workshop.write("office.py", "def book(): ...")
    catalogs = '[catalogs.own]\ntype = "python"\ntarget = "office"\nsearch_path = "."\n'
    configuration = workshop.configure(catalogs=catalogs)
    take_snapshot(configuration, "own")

    assert unchanged_snapshot(configuration, "own") is None


def test_an_agent_that_lists_nothing_is_said_in_every_run_until_that_is_meant(workshop):
    workshop.servers({"git": [workshop.tool("one")], "shop": [workshop.tool("two")]})
    configuration = workshop.configure()
    take_snapshot(configuration, "kit")
    workshop.servers({"git": [], "shop": [workshop.tool("two")]})
    first = take_snapshot(configuration, "kit")

    assert unchanged_snapshot(configuration, "kit") == first
    assert (first.kept, len(first.problems)) == (("kit/git",), 1)
    assert take_snapshot(configuration, "kit", allow_empty=True).tools == 1
    assert take_snapshot(configuration, "kit").problems == ()


def test_a_source_that_fails_is_read_and_said(source):
    configuration, path, first = source
    path.unlink()

    failed = take_snapshot(configuration, "own")

    assert (failed.digest, failed.kept) == (first.digest, ("*",))
    assert len(failed.problems) == 1


@pytest.mark.parametrize("lost", ["layers/*", "*/tools.json", "rejected-*", "latest.json"])
def test_a_source_whose_snapshot_is_lost_is_read(source, workshop, lost):
    configuration, _, first = source
    for path in (Path(workshop.lake.uri) / "snapshots" / "own").glob(lost):
        path.unlink()

    assert unchanged_snapshot(configuration, "own") is None
    assert take_snapshot(configuration, "own") == first
    assert unchanged_snapshot(configuration, "own") == first


def test_a_watch_does_not_read_what_did_not_change(source):
    configuration, _, first = source

    change = compare_with_source(configuration, "own")

    assert (change.changed, change.tools, change.rejected) == (
        True,
        first.tools,
        len(first.rejected),
    )
