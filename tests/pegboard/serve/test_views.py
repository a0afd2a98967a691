"""Each client's view of a release, and how it follows promotions."""

import asyncio
import threading

from pegboard.opening import open_board
from pegboard.serve.access import ANYONE
from pegboard.serve.views import Views


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
