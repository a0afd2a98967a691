"""What needs approval: everything that a source says which ranks a tool, is shown, or is called."""

import json

import pytest

from flows.options import BuildOptions
from flows.reindex import reindex
from pegboard.cli.main import main

CATALOG = """[catalogs.kit]
type = "records"
path = "tools.jsonl"
[catalogs.kit.columns]
name = "name"
description = "description"
examples = "examples"
dependencies = "needs"
tags = "tags"
"""
TOOL = {
    "name": "send",
    "description": "Sends a message.",
    "examples": ["write to Ann"],
    "needs": [],
    "tags": [],
}
CHANGES = [
    ({"examples": ["write to Ann", "pay the rent"]}, "examples"),
    ({"needs": ["list_friends"]}, "dependencies"),
    ({"tags": ["bank"]}, "tags"),
]


class Records:
    """A catalog of records, and the builds that index it."""

    def __init__(self, workshop):
        self.workshop = workshop

    def write(self, settings="", catalog=CATALOG, **changes):
        rows = [{"name": "list_friends", "description": "Lists friends."}, TOOL | changes]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        self.workshop.write("tools.jsonl", text)
        self.configuration = self.workshop.configure(settings, catalog)

    def lock(self):
        assert main(["lock", "-c", str(self.configuration.file), "--quiet"]) == 0

    def build(self, *, locked):
        outcome = reindex(self.configuration, BuildOptions(locked=locked))
        waiting = {
            tool: list(row["fields"])
            for tool, rows in outcome["suspicious"].items()
            for row in rows
            if row["flag"] == "unapproved"
        }
        return outcome["outcome"], waiting


@pytest.fixture
def records(workshop):
    return Records(workshop)


@pytest.mark.parametrize(("change", "field"), CHANGES)
def test_a_locked_build_holds_whatever_changed(records, change, field):
    records.write()
    records.lock()
    assert records.build(locked=True) == ("published", {})

    records.write(**change)

    assert records.build(locked=True) == ("held", {"kit/kit/send": [field]})
    records.lock()
    assert records.build(locked=True) == ("published", {})


@pytest.mark.parametrize(("change", "field"), CHANGES)
def test_in_a_catalog_of_limited_trust_it_waits_or_is_left_out(records, change, field):
    limited = CATALOG.replace("[catalogs.kit.columns]", 'trust = "limited"\n[catalogs.kit.columns]')
    records.write(catalog=limited)
    assert records.build(locked=False) == ("published", {})

    records.write(catalog=limited, **change)

    waits = field != "examples"
    assert records.build(locked=False) == (
        ("held", {"kit/kit/send": [field]}) if waits else ("unchanged", {})
    )


def test_dependencies_never_pass_as_a_changed_text(records):
    settings = '[lock]\ntext_changes = "pass"\n'
    records.write(settings)
    records.lock()
    records.build(locked=True)

    records.write(settings, needs=["list_friends"])

    assert records.build(locked=True) == ("held", {"kit/kit/send": ["dependencies"]})


def test_what_the_configuration_says_needs_no_approval(records):
    records.write()
    records.lock()
    records.build(locked=True)
    golden = '[golden]\nqueries = "golden.jsonl"\nmin_queries = 10\n'
    override = '[overrides."kit/kit/list_friends"]\nexamples = ["who is Ann?"]\ntags = ["people"]\n'
    queries = ["write to Ann", *(f"list friends of person {n}" for n in range(9))]
    lines = (json.dumps({"query": query, "tools": ["send"]}) for query in queries)
    records.workshop.write("golden.jsonl", "\n".join(lines))

    records.write(golden + override)

    assert records.build(locked=True) == ("published", {})
