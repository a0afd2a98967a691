"""The documents of agents: what is encoded of them, and when they are made again."""

import pytest

from pegboard.documents import agent_text
from pegboard.records import Agent
from tasks.compose import compose_agents
from tasks.enrichment.enrichment_sets import write_enrichments
from tasks.lake.row_sets import read_rows
from tasks.settings.configuration import IndexSettings
from tasks.snapshot import take_snapshot


@pytest.mark.parametrize(
    ("agent", "described", "text"),
    [
        (Agent("a/b", "a", "gitHub_v2", "Hosts  code.\n"), "", "git Hub v2. Hosts code."),
        (
            Agent("a/b", "a", "git", "Hosts code."),
            "Stores repositories.",
            "git. Stores repositories.",
        ),
        (Agent("a/b", "a", "git"), "", "git"),
        (Agent("a/b", "a", "---", ""), "", "---"),
    ],
)
def test_the_text_of_an_agent_is_its_name_in_words_and_its_description(agent, described, text):
    assert agent_text(agent, described) == text


def test_no_credential_is_in_the_text_of_an_agent():
    agent = Agent("a/b", "a", "git", "Use ghp_0123456789abcdefghij0123456789abcdef to sign in.")

    assert "ghp_" not in agent_text(agent)


def documents(workshop, enrichments=None):
    configuration = workshop.configure()
    snapshots = {name: take_snapshot(configuration, name).digest for name in configuration.catalogs}
    return compose_agents(workshop.uri, IndexSettings(), snapshots, enrichments)


def test_every_agent_has_one_row(workshop):
    workshop.servers({"git": [workshop.tool("one")], "o'brien's": [workshop.tool("two")]})

    made = documents(workshop)

    assert (made.table, made.rows) == ("agents_full", 2)
    rows = {row["key"]: row for row in read_rows(workshop.lake, made.path).iter_rows(named=True)}
    assert list(rows) == ["kit/git#document#0", "kit/o'brien's#document#0"]
    row = rows["kit/git#document#0"]
    assert (row["part"], row["catalog"], row["agent"], row["kind"]) == (
        "document",
        "kit",
        "kit/git",
        "mcp-server",
    )
    assert (row["texts"], row["tokens"]) == ([row["text"]], "git")


def test_what_was_written_about_an_agent_stands_for_its_description_and_makes_one_row_anew(
    workshop,
):
    workshop.servers({"git": [workshop.tool("one")], "shop": [workshop.tool("two")]})
    before = documents(workshop)
    enrichments = write_enrichments(workshop.lake, "enriched", {}, {"kit/git": "Hosts code."}).path

    after = documents(workshop, enrichments)

    assert documents(workshop, enrichments) == after != before
    then, now = (
        {row["key"]: row for row in read_rows(workshop.lake, one.path).to_dicts()}
        for one in (before, after)
    )
    assert now["kit/git#document#0"]["text"] == "git. Hosts code."
    assert [key for key in now if now[key] != then[key]] == ["kit/git#document#0"]
    layers = workshop.lake.read_json(f"{after.path}.json")["layers"]
    assert [layer["rows"] for layer in layers][-1] <= 2
