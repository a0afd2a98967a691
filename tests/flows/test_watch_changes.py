"""What the watch takes for a change."""

import json
from datetime import UTC, datetime

import pytest

from pegboard.store.releases import Release
from tasks.plan import SourceChange, compare_with_source
from tasks.snapshot import take_snapshot

OLD = [{"name": "add", "description": "Adds."}, {"name": "weather", "description": "The weather."}]
NEW = [*OLD, {"name": "send_mail"}]


@pytest.mark.parametrize(
    ("published", "source", "changed", "tools", "rejected", "problem"),
    [
        ([], OLD, True, 2, 0, ""),
        ([OLD], OLD, False, 2, 0, ""),
        ([OLD], NEW, True, 3, 0, ""),
        ([OLD, OLD[:1]], OLD, True, 2, 0, ""),
        ([OLD], [*OLD, {"description": "It has no name."}], False, 2, 1, ""),
        ([OLD], "{", False, 2, 0, "tools.json"),
        ([], "{", False, 0, 0, "tools.json"),
    ],
    ids=["new", "same", "more", "as an older", "rejected", "failed", "always failed"],
)
def test_a_source_has_changed_if_its_tools_are_not_the_published_ones(
    workshop, published, source, changed, tools, rejected, problem
):
    catalog = '[catalogs.acme]\ntype = "mcp-dump"\npath = "tools.json"\n'
    configuration = workshop.configure(catalogs=catalog)
    for listed in published:
        workshop.write("tools.json", {"tools": listed})
        digest = take_snapshot(configuration, "acme").digest
        manifest = {"catalogs": {"acme": {"snapshot": digest}}}
        workshop.store.create()
        workshop.store.add(Release(digest[:12], digest, 1, datetime.now(UTC), {}, manifest))
    workshop.write("tools.json", source if problem else {"tools": source})
    files = sorted(workshop.folder.rglob("*"))

    change = compare_with_source(configuration, "acme")

    assert (change.catalog, change.changed) == ("acme", changed)
    assert (change.tools, change.rejected) == (tools, rejected)
    assert problem in json.dumps(change.problems)
    assert bool(change.problems) == bool(problem)
    assert sorted(workshop.folder.rglob("*")) == files  # looking for a change stores nothing


def test_a_snapshot_that_was_stored_and_not_published_is_still_a_change(workshop):
    workshop.servers({"git": [workshop.tool("create_issue")]})
    configuration = workshop.configure()
    take_snapshot(configuration, "kit")

    assert compare_with_source(configuration, "kit") == SourceChange(
        "kit", changed=True, tools=1, rejected=0, problems=()
    )
