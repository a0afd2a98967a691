"""Rules that match nothing of the release are named in the log."""

import asyncio

import pytest

from pegboard.serve.changes import telling_of_changes, warn_of_idle_rules


@pytest.fixture
def warnings(board_uri, gateway_of, caplog):
    """A function: what the log says of those rules of a client, each line of the warning."""

    def logged(**serve):
        async def run():
            async with gateway_of(board_uri, **serve) as gateway:
                await warn_of_idle_rules(gateway)

        caplog.clear()
        asyncio.run(run())
        return [line.strip("- ") for line in caplog.text.splitlines()[1:]]

    return logged


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({"tool": "kit/git/delte_*"}, "deny[0].tool: 'kit/git/delte_*' matches no tool"),
        ({"tool": ["kit/*", "finanse/*"]}, "deny[0].tool: 'finanse/*' matches no tool"),
        ({"agent": "kit/gti"}, "deny[0].agent: 'kit/gti' matches no agent of the release"),
        ({"tag": "secret"}, "deny[0].tag: 'secret' matches no tag of the release"),
        ({"catalog": "kit", "agent": "finance/*"}, "deny[0]: no tool fits all its fields"),
    ],
)
def test_a_rule_that_matches_nothing_is_named(warnings, rule, expected):
    clients = {
        "desk": {"allow": [{"tool": "*"}], "deny": [rule]},
        "shop": {"deny": [{"tool": "*"}, {"tool": "y"}], "header": {"X-User": "shop"}},
    }

    line, of_shop, pinned = warnings(clients=clients, pinned=["z"])

    assert line.startswith(f"serve.clients.desk.{expected}")
    assert of_shop.startswith("serve.clients.shop.deny[1].tool: ")
    assert pinned.startswith("serve.pinned.tool: ")


def test_rules_that_match_are_not_named(warnings):
    rules = [{"tool": "kit/git/*"}, {"agent": ["kit/git", "finance/*"]}, {"catalog": "k?t"}]

    assert warnings(clients={"desk": {"allow": rules, "deny": rules}}, pinned=["kit/*"]) == []


def test_misspelt_catalogs_are_named(warnings):
    lines = warnings(python=["kti"], apis={"finanse": {"base_url": "https://x"}})

    assert [line.partition(" matches")[0] for line in lines] == [
        "serve.python.catalog: 'kti'",
        "serve.apis.catalog: 'finanse'",
    ]


def test_idle_rules_are_named_at_the_start_and_once_after_each_promotion(
    workshop, gateway_of, caplog, monkeypatch
):
    monkeypatch.setattr("pegboard.serve.changes.LOOK_SECONDS", 0.01)
    first = workshop.publish({"desk": [workshop.tool("pour_tea", "Pours tea.")]}).release
    second = workshop.publish({"desk": [workshop.tool("wash_cups", "Washes cups.")]}).release
    workshop.store.promote(first.id)
    clients = {"everyone": {"deny": [{"tool": "*/pour_*"}]}}

    async def run():
        async with (
            gateway_of(workshop.uri, clients=clients) as gateway,
            telling_of_changes(gateway),
        ):
            await gateway.views.entries()
            workshop.store.promote(second.id)
            while second.id not in caplog.text:
                await asyncio.to_thread(lambda: gateway.board.release)
                await asyncio.sleep(0.01)
            for _ in range(10):
                await asyncio.sleep(0.01)

    asyncio.run(run())

    assert first.id not in caplog.text
    assert caplog.text.count("'*/pour_*' matches no tool") == 1
