"""Views of a release after promotions."""

import asyncio
import threading

from pegboard.opening import open_board
from pegboard.serve.access.clients import ANYONE, RULE_VALUES, Clients
from pegboard.serve.access.control import AccessControl
from pegboard.serve.access.views import read_entries
from pegboard.serve.settings import Rule


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


def test_every_field_of_a_rule_is_matched_with_the_same_values_in_lists_and_in_calls(board_uri):
    assert RULE_VALUES.keys() == Rule.model_fields.keys()
    with open_board(board_uri) as board:
        entries = read_entries(board, lambda tool, kind: "")
        for tool in board.list_tools():
            for values_of in RULE_VALUES.values():
                assert values_of(entries[tool.id]) == values_of(tool)
