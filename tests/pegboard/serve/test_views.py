"""Each client's view of a release, and how it follows promotions."""

import asyncio
import threading

from pegboard.opening import open_board
from pegboard.serve.access import ANYONE, Client
from pegboard.serve.settings import Rule
from pegboard.serve.views import Views


def test_clients_of_equal_rules_share_a_view_that_has_the_visible_tools_alone(board_uri):
    rules = (Rule(tag=("office",)),), (Rule(tool=("*/close_*",)),)

    async def run():
        views = Views(open_board(board_uri))
        clients = (ANYONE, Client("office", *rules), Client("twin", *rules), Client("nobody", ()))
        everything, office, twin, nothing = [await views.of(client) for client in clients]
        return everything, office, twin, await nothing.board.find("anything")

    everything, office, twin, found = asyncio.run(run())

    assert twin is office
    assert "close_ledger" not in office.names.ids
    assert office.tokens < everything.tokens
    assert found.hits == ()


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
