"""Resources and prompts of MCP servers, for the clients whose rules permit the servers."""

import asyncio
import sys
from pathlib import Path

import mcp
import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import PromptListChangedNotification, PromptReference, ResourceTemplateReference

from pegboard.opening import open_board
from pegboard.serve.gateway import Gateway
from pegboard.serve.mcp.server import mcp_server
from pegboard.serve.settings import GatewaySettings, ServeSettings, load_gateway_settings

UPSTREAM = Path(__file__).parents[1] / "upstream"
BOOK = ResourceTemplateReference(uri="books://library/{isbn}")
TOPIC = {"name": "topic", "value": "te"}
YEAR = {"year": "1816"}


def command_of(name):
    return {"command": sys.executable, "args": [str(UPSTREAM / f"{name}.py")]}


@pytest.fixture
def library(monkeypatch):
    """`[catalogs]` with the library, and a server that does not start."""
    broken = {"command": sys.executable, "args": ["-c", "raise SystemExit(1)"]}
    monkeypatch.setenv("DATABASE_URL", "postgres://ana:top-level-4711@db/shelf")
    works = command_of("library") | {"env": {"SHELF": "${DATABASE_URL}"}}
    return {"kit": {"type": "mcp", "servers": {"library": works, "gone": broken}}}


def test_resources_prompts_and_their_notifications_are_forwarded_without_secrets(
    board_uri, session_of, library
):
    changed = asyncio.Event()

    async def hear(message):
        if isinstance(message, PromptListChangedNotification):
            changed.set()

    async def run():
        async with session_of(board_uri, library, options={"message_handler": hear}) as (_, client):
            resources = (await client.list_resources()).resources
            templates = (await client.list_resource_templates()).resource_templates
            prompts = (await client.list_prompts()).prompts
            note = await client.read_resource(str(resources[0].uri))
            book = await client.read_resource(
                str(templates[0].uri_template).replace("{isbn}", "3-16")
            )
            prompt = await client.get_prompt(prompts[0].name, {"topic": "tea"})
            await changed.wait()
            return resources, prompts, note, book, prompt

    resources, prompts, note, book, prompt = asyncio.run(run())

    assert [str(one.uri) for one in resources] == ["notes://library/today"]
    assert [one.name for one in prompts] == ["library_summary"]
    assert note.contents[0].text == "Nothing was lent from ***."
    assert book.contents[0].text == "The book 3-16."
    assert prompt.messages[0].content.text == "Summarise tea of ***."


@pytest.mark.parametrize("era", ["legacy"])
def test_a_change_of_a_shared_server_reaches_all_sessions_that_may_see_it(
    board_uri, served, over_http, library, monkeypatch
):
    monkeypatch.setenv("BOB", "bob-4711-token")
    monkeypatch.setenv("EVE", "eve-4711-token")
    serve = {
        "servers": {"kit/library": {"sessions": "shared"}},
        "clients": {
            "bob": {"token": "${BOB}"},
            "eve": {"token": "${EVE}", "deny": [{"agent": "kit/library"}]},
        },
    }
    settings = GatewaySettings(serve=ServeSettings.model_validate(serve), catalogs=library)
    heard = []
    told = asyncio.Event()

    def hearing(name):
        async def hear(message):
            if isinstance(message, PromptListChangedNotification):
                heard.append(name)
                told.set()

        return {"Authorization": f"Bearer {name}-4711-token"}, hear

    async def run(url):
        (bob, bob_hears), (eve, eve_hears) = hearing("bob"), hearing("eve")
        async with (
            over_http(url, bob) as calling,
            over_http(url, bob, message_handler=bob_hears) as other,
            over_http(url, eve, message_handler=eve_hears) as blind,
        ):
            await other.list_prompts()
            assert (await blind.list_prompts()).prompts == []
            await calling.get_prompt("library_summary", {"topic": "tea"})
            await told.wait()

    with served(board_uri, settings) as (url, _):
        asyncio.run(run(url))

    assert heard == ["bob"]


def test_a_change_of_a_shared_server_reaches_subscriptions(board_uri, served, library):
    serve = ServeSettings.model_validate({"servers": {"kit/library": {"sessions": "shared"}}})
    settings = GatewaySettings(serve=serve, catalogs=library)

    async def run(url):
        async with (
            mcp.Client(url, mode="2026-07-28") as listening,
            mcp.Client(url, mode="legacy") as calling,
            listening.listen(prompts_list_changed=True) as subscription,
        ):
            await calling.get_prompt("library_summary", {"topic": "tea"})
            return await anext(subscription)

    with served(board_uri, settings) as (url, _):
        change = asyncio.run(run(url))

    assert type(change).__name__ == "PromptsListChanged"


def test_a_server_that_a_client_may_not_see_has_no_resources_and_prompts_for_it(
    board_uri, session_of, library
):
    clients = {"bob": {"deny": [{"agent": "kit/library"}]}}

    async def run():
        async with session_of(board_uri, library, clients=clients) as (_, client):
            resources = (await client.list_resources()).resources
            prompts = (await client.list_prompts()).prompts
            for attempt in (
                client.read_resource("notes://library/today"),
                client.get_prompt("library_summary", {"topic": "tea"}),
            ):
                with pytest.raises(MCPError, match=r"not found|Unknown prompt"):
                    await attempt
            return resources, prompts

    assert asyncio.run(run()) == ([], [])


def test_arguments_are_completed_by_the_server_of_a_prompt_or_template(
    board_uri, session_of, library
):
    library["kit"]["servers"]["mute"] = command_of("library")

    async def run(**serve):
        async with session_of(board_uri, library, **serve) as (_, client):
            results = [
                await client.complete(PromptReference(name="library_summary"), TOPIC, YEAR),
                await client.complete(BOOK, {"name": "isbn", "value": "3-1"}),
                await client.complete(PromptReference(name="mute_summary"), TOPIC),
            ]
            return [result.completion.values for result in results]

    assert asyncio.run(run()) == [
        ["tea for topic of summary in 1816", "***"],
        ["3-1a for isbn of books://{isbn} in any year", "***"],
        [],
    ]
    assert asyncio.run(run(clients={"bob": {"deny": [{"agent": "kit/library"}]}})) == [[], [], []]


def test_a_server_added_to_the_file_is_called_without_a_restart(desk_uri, tmp_path, caplog):
    file = tmp_path / "pegboard.toml"
    head = f'[board]\nuri = "{desk_uri}"\n[catalogs.shop]\ntype = "openapi"\npath = "shop.json"\n'
    shop = '[serve.apis.shop]\nbase_url = "http://127.0.0.1:9/v1"\n'
    server = command_of("desk")
    kit = (
        f'[catalogs.kit]\ntype = "mcp"\n[catalogs.kit.servers.desk]\n'
        f'command = "{server["command"]}"\nargs = {server["args"]!r}\n'
        f'env = {{ STARTS = "{tmp_path / "starts"}" }}\n'
    )
    file.write_text(head + shop)

    async def names(client):
        search = await client.call_tool("search_tools", {"query": "echo a text", "k": 20})
        return {tool["name"] for tool in search.structured_content["tools"]}

    async def run():
        gateway = Gateway(load_gateway_settings(file), open_board(desk_uri))
        async with mcp.Client(mcp_server(gateway)._mcp_server, mode="legacy") as client:
            await gateway.warn_of_settings_without_effect()
            names_before = await names(client)
            file.write_text("[serve\n")
            for _ in range(2):
                await gateway.reload_if_changed()
            file.write_text(head + shop + kit)
            for _ in range(2):
                await gateway.reload_if_changed()
            names_after = await names(client)
            result = await client.call_tool("call_tool", {
                "name": "echo", "arguments": {"text": "called"}
            })  # fmt: skip
        await gateway.close()
        return names_before, names_after, result

    names_before, names_after, result = asyncio.run(run())

    assert "echo" not in names_before
    assert "echo" in names_after
    assert result.content[0].text == "called"
    assert "this gateway cannot call some tools of release" in caplog.text
    assert "tools are not offered" in caplog.text
    assert "perhaps misspelt" not in caplog.text
    assert "The settings stay as they were" in caplog.text
