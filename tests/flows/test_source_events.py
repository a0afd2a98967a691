"""The events of a source that fails and recovers, without a server."""

import pytest

from flows.prefect import events
from flows.prefect.names import catalog_resource
from flows.prefect.runner import report_source
from tasks.steps.snapshot import take_snapshot


@pytest.fixture
def emitted(monkeypatch):
    """The events that were emitted, in order."""
    rows = []
    monkeypatch.setattr(events, "server_answers", lambda: True)
    monkeypatch.setattr(events, "emit_event", lambda **row: rows.append(row))
    return rows


@pytest.fixture
def list_kit(workshop):
    """A function that takes the snapshot of the catalog `kit` as a flow's task does."""
    kit = '[catalogs.kit]\ntype = "mcp-dump"\npath = "kit.json"\n'
    configuration = workshop.configure(catalogs=kit)

    def listed(**options):
        report_source(take_snapshot)(configuration, "kit", **options)

    listed.uri = configuration.uri
    return listed


def test_a_source_that_fails_in_each_run_is_an_event_once_and_so_is_its_recovery(
    workshop, emitted, list_kit
):
    servers = {"git": [workshop.tool("create_issue")]}
    list_kit()
    list_kit()
    workshop.servers(servers, "kit.json")
    list_kit()
    list_kit()
    workshop.write("kit.json", '{"name":')
    list_kit()
    list_kit()

    assert [row["event"] for row in emitted] == [
        "pegboard.source.failed",
        "pegboard.source.recovered",
        "pegboard.source.failed",
    ]
    resource = catalog_resource(list_kit.uri, "kit")
    assert {row["resource"]["prefect.resource.id"] for row in emitted} == {resource}
    assert [row["payload"].get("kept") for row in emitted] == [[], None, ["*"]]


def test_a_run_that_does_not_list_a_dead_source_does_not_tell_that_it_recovered(
    workshop, emitted, list_kit
):
    workshop.servers({"git": [workshop.tool("create_issue")]}, "kit.json")
    list_kit()
    workshop.write("kit.json", '{"name":')
    list_kit()
    list_kit(fresh=False)
    list_kit()

    assert [row["event"] for row in emitted] == ["pegboard.source.failed"]
