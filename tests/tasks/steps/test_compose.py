"""Documents: the text that is embedded for a tool, in every shape, and for an agent."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.canonical import digest
from pegboard.documents import PARTS, agent_text, documents_of
from pegboard.records import Agent, Enrichment, Tool
from pegboard.text.words import tokenize
from tasks.lake.row_sets import read_rows
from tasks.settings.configuration import IndexSettings
from tasks.steps.compose import compose_agents, compose_index
from tasks.steps.release_spec import compose_records

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


HEAD = "create Issue v2. Opens an issue.\nArguments: repo Name: the repository; title; odd; any"
REWRITTEN = (
    "create Issue v2. Reports a problem in a project.\n"
    "Arguments: repo Name: the project, as owner/name; title; odd; any\n"
    "Topics: bug tracking; projects"
)
QUESTIONS = ("report a bug", "something is broken", "a third", "file a bug")


def documents(tool=TOOL, agent=AGENT, written=None, **settings):
    return list(documents_of(tool, agent, written or Enrichment(), **settings))


def words(tool=TOOL, written=None, **settings):
    """All texts of all documents."""
    return "\n".join(
        text for _, _, texts in documents(tool, written=written, **settings) for text in texts
    )


@pytest.mark.parametrize(
    ("settings", "written", "texts"),
    [
        ({}, None, (HEAD, *QUESTIONS[:3])),
        ({"shape": "single"}, None, (f"{HEAD}\n{' '.join(QUESTIONS[:3])}",)),
        ({}, WRITTEN, (REWRITTEN, *QUESTIONS)),
        ({"shape": "single"}, WRITTEN, (f"{REWRITTEN}\n{' '.join(QUESTIONS)}",)),
        ({"questions": 0}, Enrichment(topics=("bugs",)), (f"{HEAD}\nTopics: bugs",)),
        ({"questions": 1}, WRITTEN, (REWRITTEN, *QUESTIONS[:1])),
        ({"parts": ["description"]}, None, ("Opens an issue.",)),
        ({"parts": ["agent", "name"]}, None, ("git Hub v2. create Issue v2",)),
        ({"parts": ["topics"]}, None, ("create Issue v2",)),
    ],
)
def test_a_single_document_has_the_configured_parts(settings, written, texts):
    assert documents(written=written, **settings) == [("document", 0, texts)]
    if len(texts) == 1:
        assert documents(written=written, **{"shape": "single", **settings}) == [
            ("document", 0, texts)
        ]


@pytest.mark.parametrize("written", [None, WRITTEN])
def test_multiple_documents_have_one_part_or_question_each(written):
    topics = [("topics", 0, "Topics: bug tracking; projects")] if written else []
    head, arguments = (
        ("Reports a problem in a project.", "the project, as owner/name")
        if written
        else ("Opens an issue.", "the repository")
    )

    assert documents(shape="multi", written=written) == [
        *(
            (part, number, (f"create Issue v2. {text}",))
            for part, number, text in (
                ("description", 0, head),
                ("arguments", 0, f"Arguments: repo Name: {arguments}; title; odd; any"),
                *topics,
            )
        ),
        *(
            ("question", number, (text,))
            for number, text in enumerate(QUESTIONS[: 4 if written else 3])
        ),
    ]


@pytest.mark.parametrize("shape", SHAPES)
def test_no_document_says_when_not_to_use_a_tool(shape):
    assert "Discussion" not in words(written=WRITTEN, shape=shape, parts=PARTS)


@pytest.mark.parametrize("shape", SHAPES)
def test_no_document_has_a_credential(shape):
    key = "sk-proj-4f9a8b7c6d5e4f3a2b1c0d9e"
    properties = {"key": {"description": f"such as {key}"}}
    tool = replace(
        TOOL,
        description=f"Call it with {key}.",
        input_schema={"properties": properties},
        examples=(key,),
    )
    written = Enrichment(questions=(f"use {key} for it",), topics=(key,))

    texts = words(tool, written=written, shape=shape) + words(tool, shape=shape)
    texts += agent_text(Agent("kit/git", "kit", "git", f"Sign in with {key}."))

    assert texts.count("[credential]") >= 7
    assert "4f9a8b7c" not in texts


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
def test_documents_are_not_blank_and_have_unique_keys(
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


def test_documents_have_the_columns_that_a_search_reads(workshop):
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
    assert taxi["tokens"].split(" ") == [*tokenize(taxi["text"]), "offic"]  # with its tag
    document = ["call taxi. Calls a taxi.", "I need a ride to the airport"]
    assert taxi["texts"] == [*document, taxi["summary"]]
    assert taxi["summary"] == "call taxi. Calls a taxi."
    assert (taxi["name_tokens"], taxi["actions"]) == ("call taxi", "")
    assert taxi["text"] == "call taxi. Calls a taxi.\nI need a ride to the airport"
    assert taxi["text_digests"] == [digest(text) for text in taxi["texts"]]
    assert multi.filter(tool="desk/desk/book_room").get_column("key").to_list() == [
        "desk/desk/book_room#description#0",
        "desk/desk/book_room#question#0",
        "desk/desk/book_room#question#1",
    ]
    assert multi.get_column("key").n_unique() == 26


def test_a_row_changes_if_and_only_if_a_text_of_its_document_changes(workshop, snapshots, written):
    tool = workshop.tool("create_issue", "Opens an issue.")
    workshop.servers({"git": [tool, workshop.tool("merge_branch")]})

    def rows(**texts):
        path = written({"kit/git/create_issue": Enrichment(**texts)})
        composed = compose_index(workshop.uri, IndexSettings(), snapshots(), path)
        return dict(read_rows(workshop.lake, composed.path, ["tool", "digest"]).rows())

    plain = rows()
    apart = rows(questions=("file a bug", "report it"))
    together = rows(questions=("file a bug\nreport it",))

    assert plain["kit/git/merge_branch"] == apart["kit/git/merge_branch"]
    assert rows(avoid="Use merge_branch.") == plain
    # The text of the row is the same in both; what is encoded for it is not.
    assert len({one["kit/git/create_issue"] for one in (plain, apart, together)}) == 3


def test_enrichments_of_a_removed_tool_are_ignored(workshop, snapshots, written):
    workshop.servers({"git": [workshop.tool("create_issue", "Opens an issue.")]})
    enrichments = written({"kit/git/gone": WRITTEN}, {"kit/gone": "It is gone."})

    composed = compose_index(workshop.uri, IndexSettings(), snapshots(), enrichments)
    records = compose_records(workshop.uri, snapshots(), enrichments)

    assert read_rows(workshop.lake, composed.path, ["tool"]).rows() == [("kit/git/create_issue",)]
    for path, name in (
        (records.tools_path, "kit/git/create_issue"),
        (records.agents_path, "kit/git"),
    ):
        assert read_rows(workshop.lake, path, ["id", "enrichment"]).rows() == [(name, None)]
    assert (records.enriched, records.flagged) == (0, 0)


@pytest.mark.parametrize(
    ("agent", "described", "text"),
    [
        (Agent("a/b", "a", "gitHub_v2", "Hosts  code.\n"), "", "git Hub v2. Hosts code."),
        (Agent("a/b", "a", "git", "Hosts."), "Stores code.", "git. Stores code."),
        (Agent("a/b", "a", "---", ""), "", "---"),
    ],
)
def test_the_text_of_an_agent_is_its_name_in_words_and_its_description(agent, described, text):
    assert agent_text(agent, described) == text


def test_the_generated_description_of_an_agent_is_in_its_row(workshop, snapshots, written):
    workshop.servers({"git": [workshop.tool("one")], "o'brien's": [workshop.tool("two")]})
    enrichments = written(agents={"kit/git": "Hosts code."})

    composed = compose_agents(workshop.uri, IndexSettings(), snapshots(), enrichments)

    rows = dict(read_rows(workshop.lake, composed.path, ["key", "text"]).rows())
    assert list(rows) == ["kit/git#document#0", "kit/o'brien's#document#0"]
    assert rows["kit/git#document#0"] == "git. Hosts code."


@pytest.mark.parametrize(
    ("texts", "present", "absent"),
    [
        ([], ["Opens an issue."], ["Reports a problem", "file a bug", "bug tracking", "as owner"]),
        (["questions"], ["Opens an issue.", "file a bug"], ["Reports a problem", "bug tracking"]),
        (["topics", "arguments"], ["Opens an", "as owner/name", "projects"], ["file a bug"]),
        (
            ["description", "arguments", "questions", "topics"],
            ["Reports a problem", "as owner/name", "file a bug", "bug tracking"],
            ["Opens an issue."],
        ),
    ],
)
def test_an_index_holds_the_written_texts_that_it_names(
    workshop, written, snapshots, texts, present, absent
):
    workshop.servers({"git": [workshop.tool("createIssue", "Opens an issue.", repoName="")]})
    configuration = workshop.configure(f"[[indexes]]\nwritten = {texts}")
    path = written({"kit/git/createIssue": WRITTEN})

    [index] = configuration.indexes
    composed = compose_index(workshop.uri, index, snapshots(configuration), path)

    [text] = read_rows(workshop.lake, composed.path).get_column("text")
    assert [part for part in (*present, *absent) if part in text] == present
