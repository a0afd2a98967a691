"""Sources of files that did not change are not read again, and give the same snapshot; everything
else is read.
"""

import json
from pathlib import Path

import pytest

from tasks.steps import snapshot
from tasks.steps.snapshot import take_snapshot, unchanged_snapshot

OPERATION = {"operationId": "list_orders", "responses": {"200": {"description": "all"}}}
OPENAPI = {
    "openapi": "3.1.0",
    "info": {"title": "Shop", "version": "1"},
    "paths": {"/orders": {"get": OPERATION}},
}
DUMP = {"git": {"tools": [{"name": "one"}, {"description": "has no name"}]}}
ROWS = [{"name": "book", "about": "Books a room."}, {"about": "has no name"}]
SOURCES = {
    "mcp-dump": ("dump.json", DUMP, 'path = "dump.json"'),
    "functions": ("f.json", [{"name": "add", "parameters": {}}, {"x": 1}], 'path = "*.json"'),
    "records": ("r.json", ROWS, 'path = "r.json"\ncolumns = { description = "about" }'),
    "openapi": ("api.json", OPENAPI, 'path = "api.json"'),
}


def configure(workshop, kind, options):
    catalogs = f'[catalogs.own]\ntype = "{kind}"\n{options}\n'
    return workshop.configure(catalogs=catalogs)


@pytest.fixture(params=SOURCES)
def source(request, workshop):
    """A catalog of each kind that is made of files, listed once; its file."""
    file, content, options = SOURCES[request.param]
    path = workshop.write(file, content)
    configuration = configure(workshop, request.param, options)
    return configuration, path, take_snapshot(configuration, "own")


def test_an_unchanged_source_is_not_read_and_keeps_its_snapshot(source):
    configuration, path, first = source
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content)  # a checkout gives every file a new date

    assert unchanged_snapshot(configuration, "own") == first
    assert take_snapshot(configuration, "own") == first
    assert first.tools == 1


def test_a_changed_file_a_missing_file_and_a_changed_option_are_detected(source, workshop):
    configuration, path, first = source
    path.write_text(path.read_text() + "\n")
    assert unchanged_snapshot(configuration, "own") is None

    take_snapshot(configuration, "own")
    text = configuration.file.read_text().partition("\n\n")[2]
    tagged = text.replace("[catalogs.own]", '[catalogs.own]\ntags = ["new"]')
    tagged = workshop.configure(catalogs=tagged)
    assert unchanged_snapshot(tagged, "own") is None
    second = take_snapshot(tagged, "own")
    assert second.digest != first.digest

    path.unlink()
    failed = take_snapshot(tagged, "own")
    assert (failed.digest, failed.kept, len(failed.problems)) == (second.digest, ("*",), 1)


@pytest.mark.parametrize("pattern", ["layers/*", "*/tools.json", "latest.json"])
def test_a_source_whose_snapshot_is_missing_is_read(source, workshop, pattern):
    configuration, _, first = source
    for path in (Path(workshop.lake.uri) / "snapshots" / "own").glob(pattern):
        path.unlink()

    assert unchanged_snapshot(configuration, "own") is None
    assert take_snapshot(configuration, "own") == first
    assert unchanged_snapshot(configuration, "own") == first


def test_another_file_that_a_pattern_matches_is_read(workshop):
    workshop.write("a.json", [{"name": "add", "parameters": {}}])
    configuration = configure(workshop, "functions", 'path = "*.json"')
    take_snapshot(configuration, "own")
    workshop.write("b.json", [{"name": "subtract", "parameters": {}}])

    assert take_snapshot(configuration, "own").tools == 2


def test_the_code_that_lists_a_source_is_one_of_its_inputs(monkeypatch):
    read = []
    monkeypatch.setattr(snapshot, "_file_digest", lambda path: read.append(path.parent.name) or "")

    snapshot._code.__wrapped__(__file__)

    assert {"catalogs", "openapi", "schemas", "foreign", "pegboard"} <= set(read)


@pytest.mark.parametrize("exists", [True, False], ids=["exists", "missing"])
def test_a_document_that_refers_to_other_files_is_read_in_every_run(workshop, exists):
    document = json.loads(json.dumps(OPENAPI))
    schema = {"$ref": "parts.json#/Query"}
    parameter = {"name": "q", "in": "query", "schema": schema}
    document["paths"]["/orders"]["get"]["parameters"] = [parameter]
    workshop.write("api.json", document)
    if exists:
        workshop.write("parts.json", {"Query": {"type": "string"}})
    configuration = configure(workshop, "openapi", 'path = "api.json"')
    first = take_snapshot(configuration, "own")
    workshop.write("parts.json", {"Query": {"type": "integer"}})

    assert unchanged_snapshot(configuration, "own") is None
    assert take_snapshot(configuration, "own").digest != first.digest


def test_a_source_that_runs_code_is_read_in_every_run(workshop):
    workshop.write("office.py", "def book(): ...")
    configuration = configure(workshop, "python", 'target = "office"\nsearch_path = "."')
    take_snapshot(configuration, "own")

    assert unchanged_snapshot(configuration, "own") is None
