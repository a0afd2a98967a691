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
        ({"agent": "kit/gti"}, "deny[0].agent: 'kit/gti' matches no agent of the release; did you"),
        ({"catalog": "finanse"}, "deny[0].catalog: 'finanse' matches no catalog"),
        ({"tag": "secret"}, "deny[0].tag: 'secret' matches no tag of the release"),
        ({"catalog": "kit", "agent": "finance/*"}, "deny[0]: no tool fits all its fields"),
    ],
)
def test_a_rule_that_matches_nothing_is_named(warnings, rule, expected):
    [line] = warnings(clients={"desk": {"deny": [rule]}})

    assert line.startswith(f"serve.clients.desk.{expected}")


def test_rules_that_match_are_not_named(warnings):
    rules = [{"tool": "kit/git/*"}, {"agent": ["kit/git", "finance/*"]}, {"catalog": "k?t"}]

    assert warnings(clients={"desk": {"allow": rules, "deny": rules}}, pinned=["kit/*"]) == []


def test_misspelt_catalogs_and_unset_variables_are_named(warnings, monkeypatch):
    monkeypatch.delenv("NOT_SET_HERE", raising=False)
    api = {"base_url": "https://x", "credentials": {"key": "${NOT_SET_HERE}"}}

    lines = warnings(python=["kti"], apis={"finanse": api})

    assert lines[0] == "serve.python: 'kti' is no catalog of the release; did you mean 'kit'?"
    assert lines[1].startswith("serve.apis: 'finanse' is no catalog of the release")
    assert lines[2].startswith("serve.apis.finanse.credentials.key: ")
    assert "NOT_SET_HERE" in lines[2]
    assert len(lines) == 3


def test_credentials_of_schemes_that_no_operation_has_are_named(
    desk_uri, gateway_of, caplog, monkeypatch
):
    monkeypatch.setenv("SHOP_TOKEN", "tk-4711")
    names = ("bearer", "baerer", "login", "oauth")
    credentials = dict.fromkeys(names, "${SHOP_TOKEN}")
    apis = {"shop": {"base_url": "https://x", "credentials": credentials}}

    async def run():
        async with gateway_of(desk_uri, apis=apis) as gateway:
            await warn_of_idle_rules(gateway)

    asyncio.run(run())

    place = "  - serve.apis.shop.credentials"
    problem = "no operation of the catalog has this security scheme"
    first, second = (line for line in caplog.text.splitlines() if line.startswith(place))
    assert first == f"{place}.baerer: {problem}; did you mean 'bearer'?"
    assert second.startswith(f"{place}.oauth: {problem}")


def test_pinned_patterns_and_rules_of_every_client_are_named(warnings):
    clients = {
        "desk": {"allow": [{"tool": "x"}, {"tool": "*"}], "header": {"X-User": "desk"}},
        "shop": {"deny": [{"tool": "*"}, {"tool": "y"}]},
    }

    places = [line.partition(": ")[0] for line in warnings(clients=clients, pinned=["z"])]

    assert places == ["serve.clients.desk.allow[0].tool", "serve.clients.shop.deny[1].tool",
                      "serve.pinned"]  # fmt: skip


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
            await gateway.catalogue.entries()
            workshop.store.promote(second.id)
            while second.id not in caplog.text:
                await asyncio.to_thread(lambda: gateway.board.release)
                await asyncio.sleep(0.01)
            for _ in range(10):
                await asyncio.sleep(0.01)

    asyncio.run(run())

    assert first.id not in caplog.text
    assert caplog.text.count("'*/pour_*' matches no tool") == 1
