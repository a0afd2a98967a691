"""Log lines about rules that match nothing in the release."""

import asyncio

import pytest

from pegboard.serve.mcp.changes import following_changes
from pegboard.serve.mcp.sessions import Sessions


@pytest.fixture
def warnings(board_uri, gateway_of, caplog):
    """A function: the lines of the warning about settings."""

    def logged(**serve):
        async def run():
            async with gateway_of(board_uri, **serve) as gateway:
                await gateway.warn_of_settings_without_effect()

        caplog.clear()
        asyncio.run(run())
        return [line.strip("- ") for line in caplog.text.splitlines()[1:]]

    return logged


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({"tool": "kit/git/delte_*"}, "deny[3].tool: 'kit/git/delte_*'"),
        ({"tool": ["kit/*", "finanse/*"]}, "deny[3].tool: 'finanse/*'"),
        ({"agent": "kit/gti"}, "deny[3].agent: 'kit/gti'"),
        ({"tag": "secret"}, "deny[3].tag: 'secret'"),
        ({"catalog": "kit", "agent": "finance/*"}, "deny[3]: no tool fits all its fields"),
    ],
)
def test_only_patterns_without_a_match_are_named(warnings, rule, expected):
    matching = [{"tool": "kit/git/*"}, {"agent": ["kit/git", "finance/*"]}, {"catalog": "k?t"}]
    clients = {
        "desk": {"allow": matching, "deny": [*matching, rule]},
        "shop": {"deny": [{"tool": "y"}], "claims": {"sub": "shop"}},
    }
    apis = {"finanse": {"base_url": "https://x"}}

    lines = warnings(clients=clients, pinned=["z", "kit/*"], python=["kti"], apis=apis)

    assert [line.partition(" matches")[0] for line in lines] == [
        f"serve.clients.desk.{expected}",
        "serve.clients.shop.deny[0].tool: 'y'",
        "serve.pinned.tool: 'z'",
        "serve.python.catalog: 'kti'",
        "serve.apis.catalog: 'finanse'",
    ]


def test_rules_without_effect_are_logged_at_the_start_and_once_after_a_promotion(
    workshop, gateway_of, caplog, monkeypatch
):
    monkeypatch.setattr("pegboard.serve.mcp.changes.LOOK_SECONDS", 0.01)
    first_release = workshop.publish({"desk": [workshop.tool("pour_tea", "Pours tea.")]}).release
    second_release = workshop.publish(
        {"desk": [workshop.tool("wash_cups", "Washes cups.")]}
    ).release
    workshop.store.promote(first_release.id)
    clients = {"everyone": {"deny": [{"tool": "*/pour_*"}]}}

    async def run():
        async with (
            gateway_of(workshop.uri, clients=clients) as gateway,
            following_changes(gateway, Sessions(gateway.access)),
        ):
            await gateway.access.entries()
            workshop.store.promote(second_release.id)
            while second_release.id not in caplog.text:
                await asyncio.sleep(0.01)
            for _ in range(10):
                await asyncio.sleep(0.01)

    asyncio.run(run())

    assert first_release.id not in caplog.text
    assert caplog.text.count("'*/pour_*' matches no tool") == 1
