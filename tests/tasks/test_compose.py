"""Documents: the text that is embedded for a tool, in every shape."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.records import Agent, Tool
from pegboard.text import tokenize
from tasks.compose import compose_index, documents_of
from tasks.configuration import PARTS, IndexSettings

AGENT = Agent("kit/gitHub_v2", "kit", "gitHub_v2")
TOOL = Tool(
    id="kit/gitHub_v2/createIssue_v2",
    catalog="kit",
    agent=AGENT.id,
    name="createIssue_v2",
    description="Opens an\n  issue.",
    input_schema={
        "type": "object",
        "properties": {
            "repoName": {"type": "string", "description": "the\n repository"},
            "title": {"type": "string"},
            "odd": {"description": 5},
            "any": True,
        },
    },
    examples=("report a bug", "something is broken", "a third"),
)


def documents(tool=TOOL, agent=AGENT, **settings):
    return list(documents_of(tool, agent, IndexSettings(**settings)))


def test_a_single_document_joins_the_parts():
    assert documents(questions=2) == [
        (
            "document",
            0,
            "create Issue v2. Opens an issue.\n"
            "Arguments: repo Name: the repository; title; odd; any\n"
            "report a bug something is broken",
        )
    ]


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (["name"], "create Issue v2"),
        (["description"], "Opens an issue."),
        (["arguments"], "Arguments: repo Name: the repository; title; odd; any"),
        (["questions"], "report a bug something is broken a third"),
        (["agent", "name"], "git Hub v2. create Issue v2"),
        (["name", "agent"], "git Hub v2. create Issue v2"),
    ],
)
def test_only_the_parts_that_are_wanted_are_in_a_document(parts, text):
    assert documents(parts=parts) == [("document", 0, text)]


def test_several_documents_hold_one_part_or_question_each():
    assert documents(shape="multi") == [
        ("description", 0, "create Issue v2. Opens an issue."),
        ("arguments", 0, "create Issue v2. Arguments: repo Name: the repository; title; odd; any"),
        ("question", 0, "report a bug"),
        ("question", 1, "something is broken"),
        ("question", 2, "a third"),
    ]


def test_no_more_questions_than_wanted_are_taken():
    assert [text for part, _, text in documents(shape="multi", questions=1) if part == "question"] == ["report a bug"]
    assert "bug" not in documents(questions=0)[0][2]


@pytest.mark.parametrize("shape", ["single", "multi"])
@pytest.mark.parametrize("name", ["x", "___", "天気", "_"])
@pytest.mark.parametrize("part", PARTS)
def test_a_tool_that_says_nothing_still_has_a_document_that_is_not_blank(shape, name, part):
    tool = Tool("kit/_/x", "kit", "kit/_", name)

    found = documents(tool, Agent("kit/_", "kit", "_"), shape=shape, parts=[part])

    assert len(found) == 1
    assert found[0][2].strip()


@given(
    name=st.text(min_size=1).filter(lambda name: name.strip()),
    description=st.text(),
    questions=st.lists(st.text(min_size=1).filter(lambda text: text.strip()), max_size=3),
    arguments=st.dictionaries(st.text(), st.none() | st.fixed_dictionaries({"description": st.text() | st.none()})),
    parts=st.sets(st.sampled_from(PARTS), min_size=1),
    shape=st.sampled_from(["single", "multi"]),
)
def test_documents_are_never_blank_and_have_keys_of_their_own(name, description, questions, arguments, parts, shape):
    tool = Tool(
        "kit/git/x", "kit", "kit/git", name.strip(), description, {"properties": arguments}, examples=tuple(questions)
    )

    found = documents(tool, parts=sorted(parts), shape=shape)

    assert found
    assert all(text.strip() for _, _, text in found)
    assert len({(part, number) for part, number, _ in found}) == len(found)
    assert shape == "multi" or len(found) == 1


def test_the_documents_of_a_board_carry_what_a_search_needs(workshop):
    configuration = workshop.full()
    run = workshop.run(configuration, "compose")
    single, multi = (workshop.lake.read(one.path) for one in run.documents)

    assert [one.rows for one in run.documents] == [single.height, multi.height] == [14, 26]
    (taxi,) = single.filter(tool="desk/desk/call_taxi").rows(named=True)
    assert taxi["key"] == "desk/desk/call_taxi#document#0"
    assert (taxi["catalog"], taxi["agent"], taxi["kind"], taxi["tags"]) == ("desk", "desk/desk", "agent", ["office"])
    assert taxi["tokens"].split(" ") == tokenize(taxi["text"])
    assert multi.filter(tool="desk/desk/book_room").get_column("key").to_list() == [
        "desk/desk/book_room#description#0",
        "desk/desk/book_room#question#0",
        "desk/desk/book_room#question#1",
    ]
    assert multi.get_column("key").n_unique() == 26


def test_the_same_recipe_and_tools_give_the_same_file_and_another_recipe_another(workshop):
    workshop.servers({"git": [workshop.tool("create_issue", "Opens an issue.")]})
    snapshots = {one.catalog: one.digest for one in workshop.run(workshop.configure(), "snapshot").snapshots}

    def path(**settings):
        return compose_index(workshop.uri, IndexSettings(**settings), snapshots).path

    assert path(name="a") == path(name="b") == path(encoder="other/model")
    assert len({path(), path(shape="multi"), path(questions=3), path(parts=["name"]), path(parts=["description"])}) == 5
