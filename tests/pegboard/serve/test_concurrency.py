"""Per-client concurrency limits."""

import asyncio

import pytest

from pegboard.serve.access.clients import ANYONE, Client
from pegboard.serve.concurrency import ConcurrencyLimit
from pegboard.serve.errors import CallProblem

ONE = Client(name="one")
OTHER = Client(name="other")


@pytest.mark.parametrize(
    ("client", "other", "expected"),
    [
        (ONE, OTHER, (2, "called", 20)),
        (ONE, ONE, (2, "was not called", 20)),
        (ANYONE, ANYONE, (4, "was not called", 20)),
    ],
)
def test_one_client_takes_at_most_half_of_the_places(client, other, expected):
    async def run():
        limit = ConcurrencyLimit(4)
        go_on = asyncio.Event()
        under_way = list[int]()

        async def call():
            async with limit.place(client, 60, "busy"):
                under_way.append(1)
                await go_on.wait()

        calls = [asyncio.create_task(call()) for _ in range(20)]
        await asyncio.sleep(0)
        count = len(under_way)
        try:
            async with limit.place(other, 0, "was not called"):
                answer = "called"
        except CallProblem as problem:
            answer = str(problem)
        go_on.set()
        await asyncio.gather(*calls)
        return count, answer, len(under_way)

    assert asyncio.run(run()) == expected
