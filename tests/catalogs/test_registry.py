"""MCP registries: pages, changes, server cards, and several entries of one server."""

import json

import pytest

from catalogs.mcp.registry import OFFICIAL
from pegboard.errors import SourceError
from tests.catalogs.json_server import json_server
from tests.catalogs.mcp_servers import http_server

TOOL = {"name": "forecast", "description": "Foretells the weather."}


def entry(name, updated="2026-01-01T00:00:00Z", status="active", **server):
    """An entry of a registry's reply."""
    described = {"name": name, "description": f"About {name}.", "version": "1.0.0", **server}
    return {"server": described, "_meta": {OFFICIAL: {"status": status, "updatedAt": updated}}}


class Registry:
    """The API of a registry over entries, in pages of two."""

    def __init__(self, *entries):
        self.entries = list(entries)

    def __call__(self, query):
        since = query.get("updated_since", "")
        start = int(query.get("cursor", 0))
        changed = [item for item in self.entries if item["_meta"][OFFICIAL]["updatedAt"] >= since]
        page = changed[start : start + 2]
        more = {"nextCursor": str(start + 2)} if start + 2 < len(changed) else {}
        return {"servers": page, "metadata": {"count": len(page), **more}}


def agents(listing):
    return {agent.name: agent.description for agent in listing.agents}


def test_all_pages_of_a_registry_are_listed_as_agents(listed):
    registry = Registry(*(entry(f"io.acme/{name}") for name in "abcde"))
    with json_server(registry) as server:
        listing = listed("registry", url=server.url)

    assert agents(listing) == {f"io.acme/{name}": f"About io.acme/{name}." for name in "abcde"}
    assert {agent.kind for agent in listing.agents} == {"mcp-server"}
    assert [query.get("cursor") for query in server.queries] == [None, "2", "4"]
    assert {query["version"] for query in server.queries} == {"latest"}


def test_with_a_state_only_changes_are_requested(listed):
    registry = Registry(entry("io.acme/a"), entry("io.acme/b"), entry("io.acme/c"))
    with json_server(registry) as server:
        listed("registry", url=server.url, state="state.json")
        registry.entries[0] = entry("io.acme/a", "2026-02-02T00:00:00Z", description="New.")
        registry.entries[1] = entry("io.acme/b", "2026-02-01T00:00:00Z", "deleted")
        query_count = len(server.queries)
        listing = listed("registry", url=server.url, state="state.json")

    assert agents(listing) == {"io.acme/a": "New.", "io.acme/c": "About io.acme/c."}
    assert server.queries[query_count]["updated_since"] == "2026-01-01T00:00:00Z"


def test_several_entries_of_one_package_are_one_server_with_several_addresses(listed):
    package = {"registryType": "npm", "identifier": "@acme/weather"}
    remotes = [{"type": "streamable-http", "url": f"https://{host}.acme.io/mcp"} for host in "xy"]
    registry = Registry(
        entry("io.acme/x", packages=[package], remotes=remotes[:1]),
        entry("io.acme/y", packages=[package], remotes=remotes[1:]),
    )
    with json_server(registry) as server:
        listing = listed("registry", url=server.url)

    (agent,) = listing.agents
    assert agent.name == "io.acme/x"
    assert agent.source == "https://x.acme.io/mcp, npm:@acme/weather, https://y.acme.io/mcp"


def test_tools_of_servers_that_match_connect_are_listed_live(listed, monkeypatch):
    monkeypatch.setenv("CLOCK_KEY", "open-sesame")
    with http_server("sdk_http.py") as port:
        url = f"http://127.0.0.1:{port}/mcp"
        remotes = [{"type": "streamable-http", "url": url}]
        registry = Registry(
            entry("io.acme/clock", remotes=remotes),
            entry("io.acme/none"),
            entry("io.other/clock", remotes=remotes),
        )
        with json_server(registry) as server:
            # The registry's key is for the registry alone.
            listing = listed(
                "registry",
                url=server.url,
                headers={"X-Key": "${CLOCK_KEY}"},
                connect=["io.acme/*"],
                timeout=600,
            )

    failures = {failure.agent: failure.why for failure in listing.failures}
    assert "the registry has no address for it" in failures["kit/io.acme%2Fnone"]
    assert [tool.agent for tool in listing.tools if "other" in tool.agent] == []
    assert "open-sesame" not in json.dumps(failures)


def test_variables_in_the_addresses_of_a_registry_are_not_replaced(listed, monkeypatch):
    monkeypatch.setenv("SECRET_KEY", "open-sesame")
    with json_server(lambda _: {}) as target:
        remotes = [{"type": "streamable-http", "url": f"{target.url}/${{SECRET_KEY}}?k=1"}]
        with json_server(Registry(entry("evil", remotes=remotes))) as server:
            listing = listed("registry", url=server.url, connect=["*"], timeout=60)

    assert listing.failures
    assert not any("open-sesame" in str(headers) for headers in target.headers)
    assert "open-sesame" not in str(listing)


def test_files_may_have_a_server_json_or_a_server_card_with_tools(tmp_path, listed):
    (tmp_path / "server.json").write_text(json.dumps(entry("io.acme/a")["server"]))
    card = {"serverInfo": {"name": "weather", "title": "Weather desk"}, "tools": [TOOL]}
    (tmp_path / "server-card.json").write_text(json.dumps(card))

    listing = listed("registry", path="*.json")

    assert agents(listing) == {"io.acme/a": "About io.acme/a.", "weather": "Weather desk"}
    assert [tool.id for tool in listing.tools] == ["kit/weather/forecast"]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"error": "gone"}, "is not an MCP registry"),
        (["servers"], "is not an MCP registry"),
        ({"servers": []}, "lists no servers"),
    ],
)
def test_an_invalid_or_empty_registry_is_an_error(listed, answer, why):
    with json_server(lambda _: answer) as server, pytest.raises(SourceError, match=why):
        listed("registry", url=server.url)


def test_an_entry_that_is_not_a_server_is_rejected(tmp_path, listed):
    servers = [{"server": {"version": "1"}}, 7, entry("io.acme/a")]
    (tmp_path / "saved.json").write_text(json.dumps({"servers": servers}))

    listing = listed("registry", path="saved.json")

    assert list(agents(listing)) == ["io.acme/a"]
    assert [record.where for record in listing.rejected] == ["servers[0]", "servers[1]"]
