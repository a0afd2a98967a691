"""Identities and digests of agents and tools."""

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


@pytest.mark.parametrize(
    ("name", "segment"),
    [
        ("getRecord_v2", "getRecord_v2"),
        ("o'clock 天気", "o'clock 天気"),
        ("a/b", "a%2Fb"),
        ("100%", "100%25"),
        ("a#b", "a%23b"),
        ("a\nb", "a%0Ab"),
        ("a\u200bb", "a%E2%80%8Bb"),
        (" a ", "a"),
    ],
)
def test_an_id_reads_as_its_names_and_encodes_what_is_ambiguous(name, segment):
    assert identity(("kit", "git hub", name)) == f"kit/git hub/{segment}"


@given(PLACES, PLACES)
@example(("a/b", "c", "d"), ("a", "b/c", "d"))
@example(("a", "b", "c/d"), ("a", "b/c", "d"))
@example(("a", "b", "/"), ("a", "b", "%2F"))
@example(("a", "b", "%2F"), ("a", "b", "%252F"))
def test_two_places_never_have_one_id(first, second):
    same = [name.strip() for name in first] == [name.strip() for name in second]

    assert (identity(first) == identity(second)) == same
    assert identity(first) == identity(first)
    assert identity(first).count("/") == 2
    assert "#" not in identity(first)


SHUFFLED = {name: TOOL.input_schema[name] for name in reversed(TOOL.input_schema)}


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"description": "Closes an issue."}, False),
        ({"name": "createIssue"}, False),
        ({"input_schema": {"type": "object"}}, False),
        ({"output_schema": {"type": "string"}}, False),
        ({"annotations": {"readOnlyHint": True}}, False),
        ({"examples": ("open a bug",)}, False),
        ({"tags": ("a",)}, False),
        ({"dependencies": (Dependency("login", "tool-directly-depends-on"),)}, False),
        ({"enrichment": Enrichment(description="Reports a bug."), "flags": ("secret",)}, True),
        ({"tags": ("b", "a", "a")}, True),
        ({"input_schema": {**SHUFFLED, "required": ["body", "title"]}}, True),
    ],
)
def test_a_digest_is_of_what_the_catalog_says_and_of_nothing_else(change, same):
    assert (replace(TOOL, **change).digest == TOOL.digest) == same


def test_the_source_of_an_agent_is_not_part_of_its_digest():
    agent = Agent("kit/git", "kit", "git", source="git.json")

    assert replace(agent, source="/elsewhere/git.json").digest == agent.digest
    assert replace(agent, enrichment=Enrichment(description="Hosts code.")).digest == agent.digest
    assert replace(agent, kind="api").digest != agent.digest
