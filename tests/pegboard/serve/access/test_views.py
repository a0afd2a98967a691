"""Views of a release after promotions."""

import asyncio
import threading

import pytest

from pegboard.opening import open_board
from pegboard.serve.access.clients import ANYONE, RULE_VALUES, Clients
from pegboard.serve.access.control import AccessControl
from pegboard.serve.access.views import read_entries
from pegboard.serve.finder import Finder
from pegboard.serve.metrics import Metrics
from pegboard.serve.settings import ClientSettings, Rule


def test_while_a_release_is_loaded_requests_are_answered_from_the_previous_one(
    two_releases, monkeypatch
):
    workshop, first_release, second_release = two_releases
    loading = threading.Event()
    go_on = threading.Event()

    async def run():
        access = AccessControl(Clients({}), open_board(workshop.uri, refresh=0))
        assert (await access.view(ANYONE)).release == first_release.id
        workshop.store.promote(second_release.id)
        build = access._build

        def slowly(*arguments):
            loading.set()
            go_on.wait()
            return build(*arguments)

        monkeypatch.setattr(access, "_build", slowly)
        waiting = asyncio.create_task(access.view(ANYONE))
        await asyncio.to_thread(loading.wait)
        meanwhile = await access.view(ANYONE)
        go_on.set()
        return meanwhile.release, (await waiting).release, (await access.view(ANYONE)).release

    assert asyncio.run(run()) == (first_release.id, second_release.id, second_release.id)


@pytest.mark.parametrize("denied", ["none", "*_1"])
@pytest.mark.parametrize("lists_first", [False, True])
def test_a_gateway_answers_its_first_search_after_its_release_was_pruned(
    two_releases, publish_and_prune, lists_first, denied
):
    workshop, first_release, _ = two_releases
    clients = Clients({"all": ClientSettings(deny=(Rule(tool=(denied,)),))})

    async def first_search():
        access = AccessControl(clients, open_board(workshop.uri, refresh=3600))
        client = clients.named("all")
        if lists_first:
            await access.view(client)
        assert first_release.id in publish_and_prune(workshop).removed
        return await Finder(access, Metrics(None)).find(client, "task", 12)

    found = asyncio.run(first_search())

    live_release = workshop.store.channel().release
    assert found.result.release == (first_release.id if lists_first else live_release)
    assert len(found.result) == (12 if denied == "none" else 11)


def test_every_field_of_a_rule_is_matched_with_the_same_values_in_lists_and_in_calls(board_uri):
    assert RULE_VALUES.keys() == Rule.model_fields.keys()
    with open_board(board_uri) as board:
        entries = read_entries(board, lambda tool, kind: "")
        for tool in board.list_tools():
            for values_of in RULE_VALUES.values():
                assert values_of(entries[tool.id]) == values_of(tool)
