"""The difference of two releases: tools, fields, questions, neighbours and indexes."""

import json
from typing import NamedTuple

import pytest

from pegboard.cli.main import main
from pegboard.records import Enrichment
from pegboard.store.diff import FieldChange, Neighbours, diff_releases
from pegboard.store.releases import Release, ReleaseStore
from tasks.enrichment.enrichment_sets import write_enrichments


class Two(NamedTuple):
    store: ReleaseStore
    first: Release
    second: Release


def servers(workshop, **changed):
    tools = {
        "create_issue": workshop.tool(
            "create_issue", "Opens an issue in a repository.", title="its headline"
        ),
        "close_issue": workshop.tool("close_issue", "Closes an issue in a repository."),
        "list_commits": workshop.tool("list_commits", "Lists the commits of a branch."),
        "merge_branch": workshop.tool("merge_branch", "Merges a branch into another."),
        "water_plants": workshop.tool("water_plants", "Waters the ferns and flowers."),
    } | changed
    return {"git": [tool for tool in tools.values() if tool]}


def written(workshop, *questions):
    enrichment = {"kit/git/list_commits": Enrichment(questions=questions, topics=("history",))}
    return write_enrichments(workshop.lake, "enriched", enrichment, {}).path


@pytest.fixture(scope="module")
def two(tmp_path_factory, workshop_type, hashing):
    """A board with two releases; the second is live. Do not change it."""
    workshop, encoder = workshop_type(tmp_path_factory.mktemp("two")), hashing(64)
    first = workshop.publish(
        servers(workshop),
        encoder=encoder,
        enrichments=written(workshop, "who wrote this?", "what is new?"),
    ).release
    changed = servers(
        workshop,
        close_issue=None,
        create_issue=workshop.tool(
            "create_issue", "Waters the ferns.", title="its headline", body="what is wrong"
        ),
        plant_tree=workshop.tool("plant_tree", "Plants a tree in the branch."),
    )
    second = workshop.publish(
        changed, encoder=encoder, enrichments=written(workshop, "what is new?", "who changed it?")
    ).release
    return Two(workshop.store, first, second)


def test_tools_that_came_went_and_changed_are_told_apart(two):
    found = diff_releases(two.store, two.first, two.second)

    assert (found.old, found.new) == (two.first.id, two.second.id)
    assert (found.added, found.removed) == (("kit/git/plant_tree",), ("kit/git/close_issue",))
    assert found.counts == {"added": 1, "removed": 1, "changed": 2, "unchanged": 2}
    fields = {one.id: one.fields for one in found.changed}
    assert list(fields) == ["kit/git/create_issue", "kit/git/list_commits"]
    assert list(fields["kit/git/create_issue"]) == ["description", "input_schema"]
    assert fields["kit/git/create_issue"]["description"] == FieldChange(
        "Opens an issue in a repository.", "Waters the ferns."
    )
    assert "body" in fields["kit/git/create_issue"]["input_schema"].new["properties"]


def test_questions_that_were_added_and_removed_are_named(two):
    fields = next(
        one
        for one in diff_releases(two.store, two.first, two.second).changed
        if one.id.endswith("commits")
    ).fields

    assert list(fields) == ["enrichment.questions"]
    questions = fields["enrichment.questions"]
    assert (questions.added, questions.removed) == (("who changed it?",), ("who wrote this?",))
    assert questions.new == ["what is new?", "who changed it?"]


def test_a_tool_that_says_something_else_has_other_neighbours(two):
    found = diff_releases(two.store, two.first, two.second, neighbours=1)

    assert found.neighbours_by == "full"
    assert found.neighbours["kit/git/create_issue"] == Neighbours(
        ("kit/git/water_plants",), ("kit/git/close_issue",)
    )
    assert found.neighbours["kit/git/plant_tree"].lost == ()
    assert len(found.neighbours["kit/git/plant_tree"].gained) == 1
    assert diff_releases(two.store, two.first, two.second, neighbours=0).neighbours == {}


def test_a_release_is_not_different_from_itself(two):
    found = diff_releases(two.store, two.second, two.second)

    assert (found.added, found.removed, found.changed, found.neighbours) == ((), (), (), {})
    assert {index.state for index in found.indexes.values()} == {"same"}
    assert found.counts["unchanged"] == 5


def test_a_difference_read_backwards_is_the_opposite(two):
    there, back = (
        diff_releases(two.store, two.first, two.second),
        diff_releases(two.store, two.second, two.first),
    )

    assert (there.added, there.removed) == (back.removed, back.added)
    assert [one.id for one in there.changed] == [one.id for one in back.changed]
    assert (
        there.neighbours["kit/git/create_issue"].gained
        == back.neighbours["kit/git/create_issue"].lost
    )


def test_indexes_that_came_went_or_have_another_recipe_are_told(workshop, hashing):
    one = '[[indexes]]\nname = "full"\n[[indexes]]\nname = "fine"\nshape = "multi"\n'
    other = (
        '[[indexes]]\nname = "full"\nparts = ["name"]\n[[indexes]]\nname = "names"\nparts = '
        '["name"]\n'
    )
    workshop.servers(servers(workshop))
    first = workshop.run(workshop.configure(one), encoder=hashing(8)).release
    second = workshop.run(workshop.configure(other), encoder=hashing(16)).release

    found = diff_releases(workshop.store, first, second)

    assert {name: index.state for name, index in found.indexes.items()} == {
        "fine": "dropped", "full": "other recipe", "names": "added",
    }  # fmt: skip
    assert list(found.indexes["full"].recipe) == ["encoder", "fingerprint", "dimensions", "parts"]
    assert found.indexes["full"].recipe["dimensions"] == FieldChange(8, 16)
    assert found.indexes["full"].rows_changed == 5
    assert (found.indexes["names"].rows_added, found.indexes["fine"].rows_removed) == (
        5,
        first.tables["emb_fine"].rows,
    )
    assert found.changed == ()
    assert (found.neighbours_by, found.neighbours) == (None, {})


def test_rows_of_an_index_are_counted(two):
    index = diff_releases(two.store, two.first, two.second).indexes["full"]

    assert (index.state, index.rows_added, index.rows_removed, index.rows_changed) == (
        "rows",
        1,
        1,
        2,
    )


def ran(capsys, *arguments):
    code = main(["releases", "diff", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_command_compares_the_channels_releases_by_default(capsys, two, monkeypatch):
    monkeypatch.delenv("PEGBOARD_BOARD", raising=False)
    _, first, second = two

    code, out, err = ran(capsys, "--board", two.store.uri)
    named = ran(capsys, first.id[:6], "live", "--board", two.store.uri)

    assert (code, err) == (0, "")
    assert named == (code, out, err)
    lines = out.splitlines()
    assert lines[0] == f"{first.id} -> {second.id}: 1 added, 1 removed, 2 changed, 2 unchanged"
    assert lines[1].startswith("+ kit/git/plant_tree; neighbours +")
    assert lines[2] == "- kit/git/close_issue"
    assert lines[3].startswith("~ kit/git/create_issue: description, input_schema; neighbours +")
    assert lines[4].startswith("~ kit/git/list_commits: enrichment.questions (+1 -1)")
    assert lines[5] == "index full: rows; 1 rows added, 1 removed, 2 changed"


def test_the_command_shows_one_tool_with_its_old_and_new_text(capsys, two):
    _, out, _ = ran(capsys, "--board", two.store.uri, "--tool", "kit/git/list_commits")
    _, printed, _ = ran(
        capsys, "--board", two.store.uri, "--tool", "kit/git/create_issue", "--json"
    )
    code, _, err = ran(capsys, "--board", two.store.uri, "--tool", "kit/git/merge_branch")

    assert out.splitlines()[-3:] == [
        "enrichment.questions",
        "  - who wrote this?",
        "  + who changed it?",
    ]
    told = json.loads(printed)
    assert (told["state"], told["fields"]["description"]["new"]) == ("changed", "Waters the ferns.")
    assert code == 4
    assert "is the same in releases" in err


def test_the_command_prints_all_of_it_as_json(capsys, two):
    _, out, _ = ran(capsys, "--board", two.store.uri, "--json")

    assert json.loads(out) == json.loads(
        json.dumps(diff_releases(two.store, two.first, two.second).to_dict())
    )


def test_the_command_says_that_there_is_nothing_to_compare_with(capsys, board_uri):
    code, out, err = ran(capsys, "--board", board_uri)

    assert (code, out) == (4, "")
    assert "has no earlier release to compare with" in err
