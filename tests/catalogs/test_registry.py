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


def test_servers_of_one_package_are_two_and_entries_of_one_version_are_one(listed):
    package = {"registryType": "npm", "identifier": "mcp-remote"}
    remotes = [{"type": "streamable-http", "url": f"https://{host}.acme.io/mcp"} for host in "xyz"]
    registry = Registry(
        entry("io.acme/x", packages=[package], remotes=remotes[:1]),
        entry("io.acme/y", packages=[package], remotes=remotes[1:2]),
        entry("io.acme/y", packages=[package], remotes=remotes[2:]),
    )
    with json_server(registry) as server:
        listing = listed("registry", url=server.url)

    assert {agent.name: agent.source for agent in listing.agents} == {
        "io.acme/x": "https://x.acme.io/mcp, npm:mcp-remote",
        "io.acme/y": "https://y.acme.io/mcp, npm:mcp-remote",
    }


def version(number, name="io.acme/a", status="active", **official):
    """An entry of one version of a server."""
    row = entry(name, status=status, version=number, description=f"Version {number}.")
    row["_meta"][OFFICIAL] |= official
    return row


LATEST = {
    "the order is of no importance": ([version("2.0.0"), version("1.0.0")], "2.0.0"),
    "numbers are compared as numbers": ([version("1.10.0"), version("1.9.0")], "1.10.0"),
    "a candidate precedes its release": ([version("2.0.0-rc.1"), version("2.0.0")], "2.0.0"),
    "the registry says which": ([version("1.0.0", isLatest=True), version("2.0.0")], "1.0.0"),
    "a deleted one is not offered": (
        [version("2.0.0", status="deleted"), version("1.0.0")],
        "1.0.0",
    ),
    "an active one is preferred": (
        [version("2.0.0", status="deprecated", isLatest=True), version("1.0.0")],
        "1.0.0",
    ),
    "a deprecated one is offered": ([version("2.0.0", status="deprecated")], "2.0.0"),
    "the later one, for other versions": (
        [version("b", publishedAt="2026-02-01"), version("a", publishedAt="2026-01-01")],
        "b",
    ),
}


@pytest.mark.parametrize(("entries", "expected"), LATEST.values(), ids=LATEST)
@pytest.mark.parametrize("turn", [1, -1])
def test_the_latest_active_version_describes_a_server(tmp_path, listed, entries, expected, turn):
    (tmp_path / "saved.json").write_text(json.dumps({"servers": entries[::turn]}))

    listing = listed("registry", path="saved.json")

    assert agents(listing) == {"io.acme/a": f"Version {expected}."}
    assert [notice.kind for notice in listing.notices] == ["skipped"] * (len(entries) - 1)


def test_a_deleted_server_is_left_out_and_counted(tmp_path, listed):
    servers = [version("1.0.0"), version("1.0.0", "io.acme/b", "deleted")]
    (tmp_path / "saved.json").write_text(json.dumps({"servers": servers}))

    listing = listed("registry", path="saved.json")

    assert list(agents(listing)) == ["io.acme/a"]
    (notice,) = listing.notices
    assert (notice.kind, notice.where) == ("skipped", "saved.json")
    assert notice.why == "1 deleted server left out, the first is io.acme/b"


def test_a_saved_page_says_that_it_is_a_part_unless_the_last_one_is_there(tmp_path, listed):
    first = {"servers": [version("1.0.0")], "metadata": {"nextCursor": 7}}
    (tmp_path / "page1.json").write_text(json.dumps(first))

    (notice,) = listed("registry", path="*.json").notices
    (tmp_path / "page2.json").write_text(json.dumps({"servers": [version("1.0.0", "io.acme/b")]}))
    listing = listed("registry", path="*.json")

    assert (notice.kind, notice.where) == ("partial", "page1.json")
    assert list(agents(listing)) == ["io.acme/a", "io.acme/b"]
    assert listing.notices == ()


def test_a_cursor_may_be_a_number(listed):
    pages = {
        None: {"servers": [entry("io.acme/a")], "metadata": {"nextCursor": 1}},
        "1": {"servers": [entry("io.acme/b")], "metadata": {}},
    }
    with json_server(lambda query: pages[query.get("cursor")]) as server:
        listing = listed("registry", url=server.url)

    assert list(agents(listing)) == ["io.acme/a", "io.acme/b"]
    assert listing.notices == ()


@pytest.mark.parametrize("rows", [["io.acme/a", "io.acme/b"], []])
def test_a_cursor_that_repeats_ends_the_listing_and_says_so(tmp_path, listed, rows):
    first = {"servers": [entry("io.acme/a")], "metadata": {"nextCursor": "b"}}
    again = {"servers": [entry(name) for name in rows], "metadata": {"nextCursor": "b"}}
    with json_server(lambda query: again if "cursor" in query else first) as server:
        listing = listed("registry", url=server.url, state="state.json")

    assert list(agents(listing)) == (rows or ["io.acme/a"])
    (notice,) = [notice for notice in listing.notices if notice.kind == "partial"]
    assert notice.where == server.url
    assert "('b'), so the listing ends after" in notice.why
    assert len(server.queries) == 2
    # A later build must not ask for changes only.
    assert not (tmp_path / "state.json").exists()


def test_a_reply_may_begin_with_a_byte_order_mark(listed):
    body = json.dumps({"servers": [entry("io.acme/a")]}).encode("utf-8-sig")
    with json_server(lambda _: body) as server:
        assert list(agents(listed("registry", url=server.url))) == ["io.acme/a"]


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
