"""Each client's view of a release, and how it follows promotions."""

import asyncio
import threading

from pegboard.opening import open_board
from pegboard.serve.access import ANYONE, Client
from pegboard.serve.settings import Rule
from pegboard.serve.views import Views

OFFICE = Client("office", (Rule(tag=("office",)),), (Rule(tool=("*/close_*",)),))
TWIN = Client("twin", OFFICE.allow, OFFICE.deny)
NOTHING = Client("nothing", ())


def test_a_view_has_the_visible_tools_alone_and_serves_all_clients_of_equal_rules(board_uri):
    async def run():
        views = Views(open_board(board_uri))
        return [await views.of(client) for client in (ANYONE, OFFICE, NOTHING, TWIN)]

    everything, office, nothing, twin = asyncio.run(run())

    assert len(everything.entries) > len(office.entries) > len(nothing.entries) == 0
    agents = {agent.id for agent in asyncio.run(office.board.list_agents())}
    assert agents == {entry.agent for entry in office.entries.values()}
    assert "close_ledger" not in office.names.ids
    assert twin is office
    assert asyncio.run(nothing.board.find("anything")).hits == ()
    assert office.tokens < everything.tokens


def test_while_a_release_is_loaded_others_are_answered_from_the_one_before(
    two_releases, monkeypatch
):
    workshop, first, second = two_releases
    loading, go_on = threading.Event(), threading.Event()

    async def run():
        views = Views(open_board(workshop.uri, refresh=0))
        assert (await views.of(ANYONE)).release == first.id
        workshop.store.promote(second.id)
        build = views._build

        def slowly(*arguments):
            loading.set()
            go_on.wait()
            return build(*arguments)

        monkeypatch.setattr(views, "_build", slowly)
        waiting = asyncio.create_task(views.of(ANYONE))
        await asyncio.to_thread(loading.wait)
        meanwhile = await views.of(ANYONE)
        go_on.set()
        return meanwhile.release, (await waiting).release, (await views.of(ANYONE)).release

    assert asyncio.run(run()) == (first.id, second.id, second.id)
