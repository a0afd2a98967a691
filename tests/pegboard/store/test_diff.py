"""The difference of two releases: tools, fields, questions and indexes."""

import json
from typing import NamedTuple

import pytest

from pegboard.cli.main import main
from pegboard.records import Enrichment
from pegboard.store.diff import FieldChange, diff_releases
from pegboard.store.releases import Release, ReleaseStore
from tasks.enrichment.enrichment_sets import write_enrichments


class Two(NamedTuple):
    store: ReleaseStore
    first: Release
    second: Release


def servers(workshop, **changed):
    descriptions = {
        "close_issue": "Closes an issue in a repository.",
        "list_commits": "Lists the commits of a branch.",
        "merge_branch": "Merges a branch into another.",
        "water_plants": "Waters the ferns and flowers.",
    }
    create = workshop.tool("create_issue", "Opens an issue in a repository.", title="its headline")
    tools = {name: workshop.tool(name, text) for name, text in descriptions.items()}
    return {"git": [tool for tool in ({"create_issue": create} | tools | changed).values() if tool]}


def enrichments(workshop, *questions):
    enrichment = {"kit/git/list_commits": Enrichment(questions=questions, topics=("history",))}
    return write_enrichments(workshop.lake, enrichment, {})


@pytest.fixture(scope="module")
def two(tmp_path_factory, workshop_type, hashing):
    """A board with two releases; the second is live. Do not change it."""
    workshop = workshop_type(tmp_path_factory.mktemp("two"))
    encoder = hashing(64)
    tool = workshop.tool
    questions = ("who wrote this?", "what is new?", "who changed it?")
    changed = {
        "close_issue": None,
        "create_issue": tool("create_issue", "Waters the ferns.", title="its headline", body="why"),
        "plant_tree": tool("plant_tree", "Plants a tree in the branch."),
    }
    first, second = (
        workshop.publish(
            servers(workshop, **tools), encoder=encoder, enrichments=enrichments(workshop, *texts)
        ).release
        for tools, texts in (({}, questions[:2]), (changed, questions[1:]))
    )
    return Two(workshop.store, first, second)


def test_a_diff_lists_added_removed_and_changed_tools(two):
    diff = diff_releases(two.store, two.first, two.second)

    assert (diff.old, diff.new) == (two.first.id, two.second.id)
    assert (diff.added, diff.removed) == (("kit/git/plant_tree",), ("kit/git/close_issue",))
    assert diff.counts == {"added": 1, "removed": 1, "changed": 2, "unchanged": 2}
    fields = {tool.id: tool.fields for tool in diff.changed}
    assert list(fields) == ["kit/git/create_issue", "kit/git/list_commits"]
    create = fields["kit/git/create_issue"]
    assert list(create) == ["description", "input_schema"]
    opens = "Opens an issue in a repository."
    assert create["description"] == FieldChange(opens, "Waters the ferns.")
    assert "body" in create["input_schema"].new["properties"]
    assert list(fields["kit/git/list_commits"]) == ["enrichment.questions"]
    questions = fields["kit/git/list_commits"]["enrichment.questions"]
    assert (questions.added, questions.removed) == (("who changed it?",), ("who wrote this?",))
    assert questions.new == ["what is new?", "who changed it?"]
    assert diff.indexes["full"].state == "rows"


def test_added_and_dropped_indexes_and_other_recipes_are_reported(workshop, hashing):
    full = '[[indexes]]\nname = "full"\n'
    named = 'parts = ["name"]\n'
    fine = '[[indexes]]\nname = "fine"\nshape = "multi"\n'
    names = f'[[indexes]]\nname = "names"\n{named}'
    workshop.servers(servers(workshop))
    first = workshop.run(workshop.configure(full + fine), encoder=hashing(8)).release
    second = workshop.run(workshop.configure(full + named + names), encoder=hashing(16)).release

    diff = diff_releases(workshop.store, first, second)

    states = {name: index.state for name, index in diff.indexes.items()}
    assert states == {"fine": "dropped", "full": "other recipe", "names": "added"}
    changed = diff.indexes["full"]
    assert list(changed.recipe) == ["encoder", "fingerprint", "dimensions", "parts"]
    assert changed.recipe["dimensions"] == FieldChange(8, 16)
    assert diff.changed == ()


@pytest.fixture
def run(capsys, two, monkeypatch):
    """Run `pegboard releases diff` on the board; returns its exit code, stdout and stderr."""
    monkeypatch.delenv("PEGBOARD_BOARD", raising=False)

    def run(*arguments, board=two.store.uri):
        code = main(["releases", "diff", *arguments, "--board", board])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def test_the_command_compares_the_channels_releases_by_default(run, two):
    code, out, err = run()

    assert (code, err) == (0, "")
    assert run(two.first.id[:6], "live") == (code, out, err)
    lines = out.splitlines()
    counts = "1 added, 1 removed, 2 changed, 2 unchanged"
    assert lines[0] == f"{two.first.id} -> {two.second.id}: {counts}"
    assert lines[1:] == [
        "+ kit/git/plant_tree",
        "- kit/git/close_issue",
        "~ kit/git/create_issue: description, input_schema",
        "~ kit/git/list_commits: enrichment.questions (+1 -1)",
        "index full: rows",
    ]
    diff = diff_releases(two.store, two.first, two.second).to_dict()
    assert json.loads(run("--json")[1]) == json.loads(json.dumps(diff))
