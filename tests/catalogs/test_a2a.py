"""Agent cards: an agent each, and its skills as rows."""

import json

import pytest

from pegboard.errors import SourceError
from tests.catalogs.json_server import json_server

CARD = {
    "name": "Route planner",
    "description": "Plans routes.",
    "supportedInterfaces": [
        {"url": "https://user:key@routes.example/a2a", "protocolBinding": "JSONRPC"}
    ],
    "skills": [
        {
            "id": "route-optimizer",
            "name": "Route optimizer",
            "description": "Finds the shortest way.",
            "tags": ["maps"],
            "examples": ["fastest way from Oslo to Bergen", 7],
        }
    ],
}


def check(listing):
    (agent,) = listing.agents
    (skill,) = listing.tools
    assert (agent.id, agent.kind) == ("kit/Route planner", "agent")
    assert (agent.description, agent.source) == ("Plans routes.", "https://routes.example/a2a")
    assert skill.id == "kit/Route planner/route-optimizer"
    assert skill.description == "Route optimizer. Finds the shortest way."
    assert (skill.tags, skill.examples) == (("maps",), ("fastest way from Oslo to Bergen",))


def test_a_card_in_a_file_becomes_an_agent_with_its_skills_as_rows(tmp_path, listed):
    (tmp_path / "card.json").write_text(json.dumps(CARD))

    check(listed("a2a", path="*.json"))


def test_a_card_at_a_url_is_fetched_with_headers(listed, monkeypatch):
    monkeypatch.setenv("CARDS_KEY", "open-sesame")
    with json_server(lambda _: CARD) as server:
        listing = listed(
            "a2a",
            urls=[f"{server.url}/.well-known/agent-card.json"],
            headers={"X-Key": "${CARDS_KEY}"},
        )

    check(listing)
    assert server.headers[0]["X-Key"] == "open-sesame"


def test_invalid_cards_and_skills_do_not_affect_the_others(tmp_path, listed):
    (tmp_path / "card.json").write_text(json.dumps({**CARD, "skills": ["?", *CARD["skills"]]}))
    (tmp_path / "other.json").write_text('{"openapi": "3.1.0"}')

    listing = listed("a2a", path="*.json")

    check(listing)
    assert [record.where for record in listing.rejected] == ["card.json: skills[0]"]
    assert "other.json is not an agent card" in listing.unreadable[0]


def test_a_url_without_a_card_is_reported_and_the_others_are_listed(listed):
    with json_server(lambda query: CARD if query else {"skills": 1}) as server:
        listing = listed("a2a", urls=[server.url, f"{server.url}/?card=1"])

    check(listing)
    assert listing.unreadable[0].startswith(f"{server.url} is not an agent card.")


def test_a_source_without_any_card_is_an_error(tmp_path, listed):
    (tmp_path / "card.json").write_text("[]")

    with pytest.raises(SourceError, match="is not an agent card"):
        listed("a2a", path="card.json")


def card(**more):
    """A card of an agent named Assistant, with one skill."""
    skill = {"id": "ask", "name": "Ask", "description": "Answers questions."}
    return {"name": "Assistant", "skills": [skill], **more}


@pytest.fixture
def cards(tmp_path, listed):
    """A function that lists cards by the name of their file."""

    def listing_of(**values):
        for name, value in values.items():
            (tmp_path / f"{name}.json").write_text(json.dumps(value))
        return listed("a2a", path="*.json")

    return listing_of


@pytest.mark.parametrize(
    ("one", "two", "expected"),
    [
        (
            card(url="https://one.example/a2a", description="Tax."),
            card(url="https://two.example/", description="Garden."),
            {
                "Assistant (one.example/a2a)": ("Tax.", "https://one.example/a2a"),
                "Assistant (two.example)": ("Garden.", "https://two.example/"),
            },
        ),
        (
            card(description="Tax."),
            card(description="Garden.", url="https://two.example/b"),
            {
                "Assistant (one.json)": ("Tax.", "one.json"),
                "Assistant (two.example/b)": ("Garden.", "https://two.example/b"),
            },
        ),
    ],
)
def test_two_cards_of_one_name_are_two_agents(cards, one, two, expected):
    listing = cards(one=one, two=two)

    assert {agent.name: (agent.description, agent.source) for agent in listing.agents} == expected
    assert {tool.agent for tool in listing.tools} == {agent.id for agent in listing.agents}
    assert len(listing.tools) == 2
    assert listing.rejected == ()
    assert [(notice.kind, notice.where, notice.count) for notice in listing.notices] == [
        ("renamed", "one.json", 2)
    ]


def test_cards_of_one_agent_are_taken_together_and_a_copy_is_left_out(cards):
    other = {"id": "plan", "name": "Plan", "description": "Plans."}
    first = card(url="https://one.example/a2a")
    listing = cards(a=first, b={**first, "skills": [other]}, c=first)

    assert [tool.id for tool in listing.tools] == ["kit/Assistant/ask", "kit/Assistant/plan"]
    assert [(notice.kind, notice.where) for notice in listing.notices] == [("skipped", "c.json")]
    assert listing.rejected == ()
