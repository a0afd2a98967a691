"""The HTTP API: its answers, access rules and errors."""

import json
import re

import pytest
from openapi_spec_validator import validate

from pegboard.errors import StoreError
from pegboard.serve.http import ard
from pegboard.serve.http.middleware import MAX_BODY

JSON = {"Content-Type": "application/json"}
MONEY = {"clients": {"anyone": {"allow": [{"catalog": "finance"}]}}}


def error_of(response):
    return response.json()["error"]


def test_tools_are_found_with_scores_and_reasons(board_uri, ask):
    body = {"query": "exchange rates of today", "k": 2, "explain": True}

    found, empty = ask(
        board_uri,
        ("POST", "/v1/find", {"json": body}),
        ("POST", "/v1/find", {"json": {"query": " "}}),
    )

    result = found.json()
    assert len(result["hits"]) == 2
    assert result["hits"][0]["name"] == result["hits"][0]["call_name"] == "list_rates"
    assert result["hits"][0]["why"]["ranker"]["adds"]
    shown = {hit["id"] for hit in result["hits"]}
    ranks = [part["ranks"] for part in result["trace"]["parts"] if "ranks" in part]
    assert ranks
    assert all(row.keys() <= shown for row in ranks)
    assert found.headers["cache-control"] == "no-store"
    assert empty.json()["hits"] == []
    assert "empty" in empty.json()["reason"]


def test_tools_are_listed_by_filter_in_pages(board_uri, ask):
    first_page, filtered, searched = ask(
        board_uri,
        ("GET", "/v1/tools?limit=10"),
        ("GET", "/v1/tools?agent=finance/finance"),
        ("GET", "/v1/tools?text=MEETING+room"),
    )
    [second_page] = ask(board_uri, ("GET", f"/v1/tools?limit=10&after={first_page.json()['next']}"))

    assert first_page.json()["total"] == 14
    ids = [tool["id"] for page in (first_page, second_page) for tool in page.json()["tools"]]
    assert ids == sorted(set(ids))
    assert len(ids) == 14
    assert second_page.json()["next"] is None
    assert {tool["agent"] for tool in filtered.json()["tools"]} == {"finance/finance"}
    assert [tool["name"] for tool in searched.json()["tools"]] == ["book_room"]


def test_a_tool_with_an_escaped_id_is_returned_with_schema_and_examples(board_uri, ask):
    [page] = ask(board_uri, ("GET", "/v1/tools?text=lunch"))
    [identity] = [tool["id"] for tool in page.json()["tools"]]
    address = identity.replace("%", "%25").replace(" ", "%20")

    room, escaped = ask(
        board_uri, ("GET", "/v1/tools/desk/desk/book_room"), ("GET", f"/v1/tools/{address}")
    )

    values = room.json()
    assert values["tool"]["examples"] == ["where can ten people meet?", "room"]
    assert values["tool"]["input_schema"]
    assert values["agent"]["kind"] == "agent"
    assert values["dependencies"] == []
    assert escaped.json()["tool"]["id"] == identity


def test_agents_strategies_and_indexes_are_listed(board_uri, ask):
    agents, status = ask(board_uri, ("GET", "/v1/agents"), ("GET", "/v1/status"))

    assert sum(agent["tools"] for agent in agents.json()["agents"]) == 14
    assert agents.json()["release"] == status.json()["release"]
    assert status.json()["indexes"] == ["fine", "full"]
    assert "clauses" in status.json()["strategies"]


def test_a_tool_is_returned_with_the_names_of_its_dependencies(workshop, ask):
    tools = [
        {"name": name, "description": name, "dependencies": needs}
        for name, needs in [("a", ["b"]), ("b", ["c"]), ("c", ["d"]), ("d", [])]
    ]
    workshop.write("tools.json", tools)
    catalog = '[catalogs.letters]\ntype = "records"\npath = "tools.json"\nagent = "letters"\n'
    columns = '[catalogs.letters.columns]\ndependencies = "dependencies"\n'
    workshop.run(workshop.configure("[graph]\ninfer = false\n", catalog + columns))

    [response] = ask(workshop.uri, ("GET", "/v1/tools/letters/letters/b"))

    values = response.json()
    ends = [[edge["source"], edge["target"]] for edge in values["dependencies"]]
    assert ends == [["letters/letters/b", "letters/letters/c"]]
    assert [edge["source"] for edge in values["dependents"]] == ["letters/letters/a"]
    assert sorted(values["names"].values()) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("path", "options", "status"),
    [
        ("/v1/find", {"json": {"query": "rates", "colour": "red"}}, 400),
        ("/v1/find", {"json": {"query": "rates", "k": 100_000}}, 400),
        ("/v1/find", {"json": {"query": "rates", "strategy": "clause"}}, 400),
        ("/v1/find", {"json": {"query": "rates", "index": "none"}}, 404),
        ("/v1/find", {"json": {"query": "x" * 9_000}}, 400),
        ("/v1/find", {"content": "{", "headers": JSON}, 400),
        ("/v1/find", {"content": "[" * 60_000, "headers": JSON}, 400),
        ("/v1/find", {"content": '{"query": "\\ud800"}', "headers": JSON}, 400),
        ("/v1/find", {"content": "x" * (MAX_BODY + 1), "headers": JSON}, 413),
        ("/v2/find", {}, 404),
        ("/v1/tools", {}, 405),
    ],
)
def test_an_invalid_request_is_refused_with_the_next_step(board_uri, ask, path, options, status):
    [response] = ask(board_uri, ("POST", path, options))

    assert response.status_code == status
    assert all(error_of(response)[part] for part in ("code", "what", "where", "next_step"))


def test_a_client_sees_nothing_of_the_tools_that_its_rules_hide(board_uri, ask):
    path = "/v1/tools/{}/git/{}"
    find = {"json": {"query": "open an issue in a repository", "k": 50, "explain": True}}
    find, tools, agents, status, search, hidden, missing = ask(
        board_uri,
        ("POST", "/v1/find", find),
        ("GET", "/v1/tools"),
        ("GET", "/v1/agents"),
        ("GET", "/v1/status"),
        ("GET", "/v1/tools?text=issue"),
        ("GET", path.format("kit", "create_issue")),
        ("GET", path.format("KIT", "create_issue")),
        **MONEY,
    )

    texts = "".join(answer.text for answer in (find, tools, agents, search))
    assert "kit/" not in texts
    assert "create_issue" not in texts
    assert [tools.json()["total"], status.json()["tools"], search.json()["total"]] == [3, 3, 0]
    assert hidden.status_code == missing.status_code == 404
    assert hidden.text == missing.text.replace("KIT", "kit")


@pytest.mark.parametrize("operator", [True, False])
def test_metrics_and_server_states_are_for_operators(desk_uri, desk, ask, tmp_path, operator):
    query = {"query": "cancel my order", "tools": ["shop/shop/cancel_order"]}
    echo = {"tool": "echo", "arguments": {"text": "tea"}}

    _, metrics, saved, servers, status, tool, health = ask(
        desk_uri,
        ("POST", "/v1/call", {"json": echo}),
        ("GET", "/metrics"),
        ("POST", "/v1/golden", {"json": query}),
        ("GET", "/v1/servers"),
        ("GET", "/v1/status"),
        ("GET", "/v1/tools/shop%2Fshop%2Fcancel_order"),
        ("GET", "/healthz"),
        catalogs=desk,
        golden=str(tmp_path / "golden.jsonl"),
        clients={"anyone": {"operator": operator}},
    )

    codes = [response.status_code for response in (metrics, saved, servers)]
    assert codes == ([200, 201, 200] if operator else [403] * 3)
    assert (status.json()["operator"], status.json()["golden"]) == (operator, operator)
    assert (tmp_path / "golden.jsonl").exists() == operator
    annotations = tool.json()["tool"]["annotations"]
    assert ("path" in annotations, "method" in annotations) == (operator, operator)
    assert (health.json()["status"], health.json()["upstreams"]) == ("ok", {"up": 1})
    if operator:
        assert servers.json()["kit/desk"]["state"] == "up"
    else:
        assert error_of(metrics)["code"] == "operators_only"
        assert "operator = true" in error_of(metrics)["next_step"]


def test_errors_reveal_no_paths_of_the_machine(board_uri, ask, monkeypatch, caplog):
    async def unreadable(*_):
        raise StoreError(f"The board at {board_uri} cannot be read. Restore its folder.")

    monkeypatch.setattr("pegboard.serve.access.control.AccessControl.view", unreadable)

    [response] = ask(board_uri, ("GET", "/v1/tools"))

    assert response.status_code == 503
    assert board_uri not in response.text
    assert error_of(response)["next_step"]
    assert board_uri in caplog.text


def test_refused_requests_are_logged_with_client_and_request(board_uri, ask, tmp_path, monkeypatch):
    monkeypatch.setenv("DESK_TOKEN", "let-the-desk-in-7731")
    bearer = {"Authorization": "Bearer let-the-desk-in-7731"}
    file = tmp_path / "requests.jsonl"

    ask(
        board_uri,
        ("GET", "/v1/status"),
        ("GET", "/v1/tools/kit/git/guessed", {"headers": bearer}),
        ("GET", "/metrics", {"headers": bearer}),
        ("GET", "/", {"headers": {"Origin": "https://evil.example"}}),
        clients={"desk": {"token": "${DESK_TOKEN}"}},
        log=str(file),
    )

    lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    assert [(line["reason"], line["client"]) for line in lines] == [
        ("unknown_client", ""),
        ("unknown_tool", "desk"),
        ("operators_only", "desk"),
        ("other_origin", ""),
    ]
    assert "GET /v1/tools/kit/git/guessed" in lines[1]["detail"]


def test_the_description_is_valid_openapi_and_has_every_path(board_uri, ask):
    [response] = ask(board_uri, ("GET", "/openapi.json"))

    validate(response.json())
    paths = {
        "/v1/status", "/v1/find", "/v1/tools", "/v1/tools/{id}", "/v1/call", "/v1/agents",
        "/v1/golden", "/v1/servers",
    }  # fmt: skip
    assert set(response.json()["paths"]) == paths


def test_tools_are_called_by_id_or_name_and_destructive_ones_once_confirmed(desk_uri, desk, ask):
    echo = {"tool": "echo", "arguments": {"text": "tea"}}
    burn = {"tool": "kit/desk/burn_archive", "arguments": {"text": "all"}}

    echoed, invalid, unconfirmed, confirmed, hidden = ask(
        desk_uri,
        ("POST", "/v1/call", {"json": echo}),
        ("POST", "/v1/call", {"json": {"tool": "echo", "arguments": {"txt": 1}}}),
        ("POST", "/v1/call", {"json": burn}),
        ("POST", "/v1/call", {"json": {**burn, "confirm": True}}),
        ("POST", "/v1/call", {"json": {"tool": "kit/desk/fail"}}),
        catalogs=desk,
        clients={"anyone": {"deny": [{"tool": "*/fail"}]}},
    )

    assert echoed.json()["content"][0]["text"] == "tea"
    assert invalid.json()["isError"] is True
    assert (unconfirmed.status_code, error_of(unconfirmed)["code"]) == (409, "unconfirmed")
    assert "confirm" in error_of(unconfirmed)["next_step"]
    assert confirmed.json()["content"][0]["text"] == "Burnt."
    assert hidden.status_code == 404


def test_agents_are_found_by_agentic_resource_discovery(board_uri, ask):
    body = {"query": {"text": "exchange rates of today"}, "pageSize": 1}
    tagged = {"query": {"text": "exchange rates", "filter": {"displayName": ["git"]}}}

    search, filtered, invalid, manifest = ask(
        board_uri,
        ("POST", "/search", {"json": body}),
        ("POST", "/search", {"json": tagged}),
        ("POST", "/search", {"json": {"query": {"text": "x", "filter": {"colour": "red"}}}}),
        ("GET", "/.well-known/ard.json"),
    )

    [result] = search.json()["results"]
    assert (result["displayName"], result["type"]) == ("finance", ard.CARD)
    assert result["capabilities"][0] == "list_rates"
    assert isinstance(result["score"], int)
    assert 50 <= result["score"] <= 100
    assert {entry["displayName"] for entry in filtered.json()["results"]} == {"git"}
    assert invalid.json()["errorCode"] == "INVALID_ARGUMENT"
    registry, *entries = manifest.json()["entries"]
    assert registry["type"] == ard.REGISTRY
    assert result["identifier"] in {entry["identifier"] for entry in entries}
    pattern = re.compile(r"urn:air:[a-zA-Z0-9.-]+(:[a-zA-Z0-9._-]+)+")  # that of the specification
    assert all(pattern.fullmatch(entry["identifier"]) for entry in entries)
    assert any(1 < len(entry.get("representativeQueries", ())) <= 5 for entry in entries)


def test_without_credentials_the_manifest_reveals_nothing_of_the_board(board_uri, ask, monkeypatch):
    monkeypatch.setenv("DESK_TOKEN", "let-the-desk-in-7731")
    clients = {"desk": {"token": "${DESK_TOKEN}", "allow": [{"catalog": "finance"}]}}
    bearer = {"headers": {"Authorization": "Bearer let-the-desk-in-7731"}}
    body = {"json": {"query": {"text": "open an issue"}}}

    anonymous, refused, manifest, search = ask(
        board_uri,
        ("GET", "/.well-known/ard.json"),
        ("POST", "/search", body),
        ("GET", "/.well-known/ard.json", bearer),
        ("POST", "/search", {**body, **bearer}),
        clients=clients,
    )

    assert [entry["type"] for entry in anonymous.json()["entries"]] == [ard.REGISTRY]
    assert refused.status_code == 401
    assert [entry["displayName"] for entry in manifest.json()["entries"]] == ["Pegboard", "finance"]
    assert "git" not in search.text
