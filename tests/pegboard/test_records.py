"""Identities and digests of agents and tools."""

import json
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pegboard.records import Agent, Dependency, Enrichment, Tool, agent_id, tool_id

NAMES = st.text(min_size=1).filter(lambda name: name.strip())
PLACES = st.tuples(NAMES, NAMES, NAMES)
TOOL = Tool(
    id="kit/git/create_issue",
    catalog="kit",
    agent="kit/git",
    name="create_issue",
    description="Opens an issue.",
    input_schema={
        "type": "object",
        "properties": {"title": {"type": "string"}},
        "required": ["title", "body"],
    },
    tags=("a", "b"),
)


def identity(place):
    catalog, agent, name = place
    return tool_id(agent_id(catalog, agent), name)


def test_an_id_reads_as_its_names():
    assert identity(("kit", "git hub", "getRecord_v2")) == "kit/git hub/getRecord_v2"
    assert identity(("kit", "天気", "o'clock")) == "kit/天気/o'clock"


@pytest.mark.parametrize(
    ("name", "segment"),
    [
        ("a/b", "a%2Fb"),
        ("100%", "100%25"),
        ("a#b", "a%23b"),
        ("a\nb", "a%0Ab"),
        ("a\u200bb", "a%E2%80%8Bb"),
        (" a ", "a"),
    ],
)
def test_what_would_make_an_id_ambiguous_is_encoded(name, segment):
    assert identity(("kit", "git", name)) == f"kit/git/{segment}"


@given(PLACES, PLACES)
@example(("a/b", "c", "d"), ("a", "b/c", "d"))
@example(("a", "b", "c/d"), ("a", "b/c", "d"))
@example(("a", "b", "/"), ("a", "b", "%2F"))
@example(("a", "b", "%2F"), ("a", "b", "%252F"))
def test_two_places_never_have_one_id(one, other):
    same = [name.strip() for name in one] == [name.strip() for name in other]

    assert (identity(one) == identity(other)) == same
    assert identity(one) == identity(one)
    assert identity(one).count("/") == 2
    assert "#" not in identity(one)


@pytest.mark.parametrize(
    "change",
    [
        {"description": "Closes an issue."},
        {"name": "createIssue"},
        {"input_schema": {"type": "object"}},
        {"output_schema": {"type": "string"}},
        {"annotations": {"readOnlyHint": True}},
        {"examples": ("open a bug",)},
        {"tags": ("a",)},
        {"dependencies": (Dependency("login", "tool-directly-depends-on"),)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_change_of_what_a_tool_says_changes_its_digest(change):
    assert replace(TOOL, **change).digest != TOOL.digest


@pytest.mark.parametrize(
    "change",
    [
        {"enrichment": Enrichment(description="Reports a bug."), "flags": ("credential",)},
        {"tags": ("b", "a", "a")},
        {
            "input_schema": {
                "required": ["body", "title"],
                "properties": {"title": {"type": "string"}},
                "type": "object",
            }
        },
    ],
    ids=["what a release adds", "order of tags", "order of keys"],
)
def test_what_means_the_same_has_the_same_digest(change):
    assert replace(TOOL, **change).digest == TOOL.digest


def test_where_an_agent_was_listed_is_not_part_of_what_it_says():
    agent = Agent("kit/git", "kit", "git", source="git.json")

    assert replace(agent, source="/elsewhere/git.json").digest == agent.digest
    assert replace(agent, enrichment=Enrichment(description="Hosts code.")).digest == agent.digest
    assert replace(agent, kind="api").digest != agent.digest


TEXTS = st.lists(st.text(), max_size=3).map(tuple)


@given(
    st.builds(
        Enrichment,
        description=st.text(),
        avoid=st.text(),
        arguments=st.dictionaries(st.text(), st.text()),
        questions=TEXTS,
        topics=TEXTS,
    )
)
def test_an_enrichment_is_the_same_after_a_round_through_json(written):
    values = json.loads(json.dumps(written.to_dict()))

    assert Enrichment.from_dict(values) == written
    assert all(values.values())
