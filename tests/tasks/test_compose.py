"""Documents: the text that is embedded for a tool, in every shape."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.canonical import digest
from pegboard.documents import PARTS, documents_of
from pegboard.records import Agent, Enrichment, Tool
from pegboard.search.text import tokenize
from tasks.compose import compose_index
from tasks.enrichment.enrichment_sets import write_enrichments
from tasks.lake.row_sets import read_rows
from tasks.release_spec import compose_records
from tasks.settings.configuration import IndexSettings

SHAPES = ["centroid", "single", "multi"]

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


WRITTEN = Enrichment(
    description="Reports  a problem in a project.",
    avoid="To ask a question use startDiscussion.",
    arguments={"repoName": "the\n project, as owner/name", "unknown": "nothing"},
    questions=("file a bug", "report a bug"),
    topics=("bug tracking", "projects"),
)


def documents(tool=TOOL, agent=AGENT, written=None, **settings):
    return list(documents_of(tool, agent, IndexSettings(**settings), written or Enrichment()))


def words(tool=TOOL, written=None, **settings):
    """All texts of all documents."""
    return "\n".join(
        text for _, _, texts in documents(tool, written=written, **settings) for text in texts
    )


def test_a_single_document_joins_the_parts():
    assert documents(shape="single", questions=2) == [
        (
            "document",
            0,
            (
                "create Issue v2. Opens an issue.\n"
                "Arguments: repo Name: the repository; title; odd; any\n"
                "report a bug something is broken",
            ),
        )
    ]


def test_a_centroid_is_of_the_head_document_and_of_each_question():
    head = "create Issue v2. Opens an issue.\nArguments: repo Name: the repository; title; odd; any"

    assert documents() == documents(shape="centroid")
    assert documents() == [
        ("document", 0, (head, "report a bug", "something is broken", "a third"))
    ]
    assert (
        documents(replace(TOOL, examples=()))
        == documents(questions=0)
        == [("document", 0, (head,))]
    )
    assert documents(parts=["questions"], questions=1) == [("document", 0, ("report a bug",))]


@pytest.mark.parametrize("shape", ["single", "centroid"])
@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (["name"], "create Issue v2"),
        (["description"], "Opens an issue."),
        (["arguments"], "Arguments: repo Name: the repository; title; odd; any"),
        (["questions"], "report a bug"),
        (["agent", "name"], "git Hub v2. create Issue v2"),
        (["name", "agent"], "git Hub v2. create Issue v2"),
        (["topics"], "create Issue v2"),
    ],
)
def test_only_the_parts_that_are_wanted_are_in_a_document(parts, text, shape):
    assert documents(parts=parts, shape=shape, questions=1) == [("document", 0, (text,))]


def test_several_documents_hold_one_part_or_question_each():
    assert documents(shape="multi") == [
        ("description", 0, ("create Issue v2. Opens an issue.",)),
        (
            "arguments",
            0,
            ("create Issue v2. Arguments: repo Name: the repository; title; odd; any",),
        ),
        ("question", 0, ("report a bug",)),
        ("question", 1, ("something is broken",)),
        ("question", 2, ("a third",)),
    ]


def test_an_enrichment_replaces_description_and_arguments_and_adds_topics_and_questions():
    assert documents(shape="multi", written=WRITTEN) == [
        ("description", 0, ("create Issue v2. Reports a problem in a project.",)),
        (
            "arguments",
            0,
            ("create Issue v2. Arguments: repo Name: the project, as owner/name; title; odd; any",),
        ),
        ("topics", 0, ("create Issue v2. Topics: bug tracking; projects",)),
        ("question", 0, ("report a bug",)),
        ("question", 1, ("something is broken",)),
        ("question", 2, ("a third",)),
        ("question", 3, ("file a bug",)),
    ]
    (head, *questions) = documents(written=WRITTEN)[0][2]
    assert head == (
        "create Issue v2. Reports a problem in a project.\n"
        "Arguments: repo Name: the project, as owner/name; title; odd; any\n"
        "Topics: bug tracking; projects"
    )
    assert questions == ["report a bug", "something is broken", "a third", "file a bug"]
    assert documents(shape="single", written=WRITTEN) == [
        ("document", 0, (f"{head}\n{' '.join(questions)}",))
    ]


def test_what_was_not_written_is_taken_from_the_catalog():
    topics_alone = Enrichment(topics=("bugs",))

    assert documents(written=topics_alone, questions=0) == [
        (
            "document",
            0,
            (
                "create Issue v2. Opens an issue.\nArguments: repo Name: the repository; title; "
                "odd; any\nTopics: bugs",
            ),
        )
    ]


def test_no_more_questions_than_wanted_are_taken_the_catalogs_own_first():
    def questions(count):
        return [
            text
            for part, _, (text,) in documents(shape="multi", written=WRITTEN, questions=count)
            if part == "question"
        ]

    assert questions(1) == ["report a bug"]
    assert (
        questions(4)
        == questions(9)
        == ["report a bug", "something is broken", "a third", "file a bug"]
    )
    assert questions(0) == []
    assert "bug" not in words(questions=0)


@pytest.mark.parametrize("shape", SHAPES)
def test_when_not_to_use_a_tool_is_in_no_document(shape):
    assert "Discussion" not in words(written=WRITTEN, shape=shape, parts=PARTS)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_credential_is_in_no_document(shape):
    key = "sk-proj-4f9a8b7c6d5e4f3a2b1c0d9e"
    properties = {"key": {"description": f"such as {key}"}}
    tool = replace(
        TOOL,
        description=f"Call it with {key}.",
        input_schema={"properties": properties},
        examples=(key,),
    )
    written = Enrichment(questions=(f"use {key} for it",), topics=(key,))

    said = words(tool, written=written, shape=shape) + words(tool, shape=shape)

    assert said.count("[credential]") >= 6
    assert "4f9a8b7c" not in said


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["x", "___", "天気", "_"])
@pytest.mark.parametrize("part", PARTS)
def test_a_tool_that_says_nothing_still_has_a_document_that_is_not_blank(shape, name, part):
    tool = Tool("kit/_/x", "kit", "kit/_", name)

    ((_, _, (text,)),) = documents(tool, Agent("kit/_", "kit", "_"), shape=shape, parts=[part])

    assert text.strip()


@given(
    name=st.text(min_size=1).filter(lambda name: name.strip()),
    description=st.text(),
    questions=st.lists(st.text(), max_size=3),
    arguments=st.dictionaries(
        st.text(), st.none() | st.fixed_dictionaries({"description": st.text() | st.none()})
    ),
    written=st.builds(
        Enrichment,
        description=st.text(),
        arguments=st.dictionaries(st.text(), st.text()),
        questions=st.lists(st.text(), max_size=3).map(tuple),
        topics=st.lists(st.text(min_size=1), max_size=3).map(tuple),
    ),
    parts=st.sets(st.sampled_from(PARTS), min_size=1),
    shape=st.sampled_from(SHAPES),
)
def test_documents_are_never_blank_and_have_keys_of_their_own(
    name, description, questions, arguments, written, parts, shape
):
    tool = Tool(
        "kit/git/x",
        "kit",
        "kit/git",
        name.strip(),
        description,
        {"properties": arguments},
        examples=tuple(questions),
    )

    found = documents(tool, written=written, parts=sorted(parts), shape=shape)

    assert found
    assert all(texts and all(text.strip() for text in texts) for _, _, texts in found)
    assert len({(part, number) for part, number, _ in found}) == len(found)
    assert shape == "multi" or len(found) == 1
    assert shape == "centroid" or all(len(texts) == 1 for _, _, texts in found)


def test_the_documents_of_a_board_carry_what_a_search_needs(workshop):
    configuration = workshop.full()
    run = workshop.run(configuration, "compose")
    by_table = {one.table: one for one in run.documents}
    centroid, multi = (
        read_rows(workshop.lake, by_table[name].path) for name in ("emb_full", "emb_fine")
    )

    assert {name: one.rows for name, one in by_table.items()} == {
        "emb_full": 14, "agents_full": 6, "emb_fine": 26, "agents_fine": 6,
    }  # fmt: skip
    assert (centroid.height, multi.height) == (14, 26)
    (taxi,) = centroid.filter(tool="desk/desk/call_taxi").rows(named=True)
    assert taxi["key"] == "desk/desk/call_taxi#document#0"
    assert (taxi["catalog"], taxi["agent"], taxi["kind"], taxi["tags"]) == (
        "desk",
        "desk/desk",
        "agent",
        ["office"],
    )
    assert taxi["tokens"].split(" ") == tokenize(taxi["text"])
    assert taxi["texts"] == ["call taxi. Calls a taxi.", "I need a ride to the airport"]
    assert taxi["text"] == "call taxi. Calls a taxi.\nI need a ride to the airport"
    assert taxi["text_digests"] == [digest(text) for text in taxi["texts"]]
    assert multi.filter(tool="desk/desk/book_room").get_column("key").to_list() == [
        "desk/desk/book_room#description#0",
        "desk/desk/book_room#question#0",
        "desk/desk/book_room#question#1",
    ]
    assert multi.get_column("key").n_unique() == 26


def test_the_same_recipe_and_tools_give_the_same_file_and_another_recipe_another(workshop):
    workshop.servers({"git": [workshop.tool("create_issue", "Opens an issue.")]})
    snapshots = {
        one.catalog: one.digest for one in workshop.run(workshop.configure(), "snapshot").snapshots
    }

    def path(**settings):
        return compose_index(workshop.uri, IndexSettings(**settings), snapshots).path

    assert path(name="a") == path(name="b") == path(encoder="other/model")
    assert (
        len(
            {
                path(),
                path(shape="single"),
                path(shape="multi"),
                path(questions=3),
                path(parts=["name"]),
                path(parts=["description"]),
            }
        )
        == 6
    )


def test_a_document_changes_its_row_when_and_only_when_a_text_of_it_does(workshop):
    tool = workshop.tool("create_issue", "Opens an issue.")
    workshop.servers({"git": [tool, workshop.tool("merge_branch")]})
    snapshots = {
        one.catalog: one.digest for one in workshop.run(workshop.configure(), "snapshot").snapshots
    }

    def rows(**written):
        path = write_enrichments(
            workshop.lake, "enriched", {"kit/git/create_issue": Enrichment(**written)}, {}
        ).path
        composed = compose_index(workshop.uri, IndexSettings(), snapshots, path)
        return dict(read_rows(workshop.lake, composed.path, ["tool", "digest"]).rows())

    plain = rows()
    written = rows(questions=("file a bug", "report it"))
    together = rows(questions=("file a bug\nreport it",))

    assert plain["kit/git/merge_branch"] == written["kit/git/merge_branch"]
    assert rows(avoid="Use merge_branch.") == plain
    # The text of the row is the same in both; what is encoded for it is not.
    assert len({one["kit/git/create_issue"] for one in (plain, written, together)}) == 3


def test_writings_about_a_tool_that_is_gone_are_passed_over(workshop):
    workshop.servers({"git": [workshop.tool("create_issue", "Opens an issue.")]})
    snapshots = {
        one.catalog: one.digest for one in workshop.run(workshop.configure(), "snapshot").snapshots
    }
    enrichments = write_enrichments(
        workshop.lake, "enriched", {"kit/git/gone": WRITTEN}, {"kit/gone": "It is gone."}
    )

    composed = compose_index(workshop.uri, IndexSettings(), snapshots, enrichments.path)
    records = compose_records(workshop.uri, snapshots, enrichments.path)

    assert read_rows(workshop.lake, composed.path, ["tool"]).rows() == [("kit/git/create_issue",)]
    assert read_rows(workshop.lake, records.tools_path, ["id", "enrichment"]).rows() == [
        ("kit/git/create_issue", None)
    ]
    assert read_rows(workshop.lake, records.agents_path, ["id", "enrichment"]).rows() == [
        ("kit/git", None)
    ]
    assert (records.enriched, records.flagged) == (0, 0)
