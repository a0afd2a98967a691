"""Views of a release after promotions."""

import asyncio
import threading

from pegboard.opening import open_board
from pegboard.serve.access.clients import ANYONE, Clients
from pegboard.serve.access.control import AccessControl


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
