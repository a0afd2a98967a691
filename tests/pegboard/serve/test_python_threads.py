"""Python functions that hang, exit or are given up hold up no other work of the gateway."""

import asyncio
import sys

import pytest

from pegboard.serve.calls.threads import ThreadLoop, Threads
from tests.pegboard.serve.office import text_of


def test_a_task_that_exits_ends_neither_its_event_loop_nor_the_call_that_started_it(office):
    async def block(call, table):
        return await call("leave_in_a_task"), await call("cancel_itself")

    stayed, after = office(block)

    assert text_of(stayed) == "stayed"
    assert text_of(after) == "CancelledError: "


def test_an_event_loop_answers_whatever_exits_in_it_and_cancels_what_waits_at_its_end():
    async def leave():
        asyncio.get_running_loop().call_soon(sys.exit)
        return "left"

    async def wait():
        await asyncio.Event().wait()

    async def run():
        loop = ThreadLoop()
        waiting = asyncio.create_task(loop.run(wait()))
        left = await asyncio.gather(*(loop.run(leave()) for _ in range(100)))
        loop.close()
        await asyncio.wait([waiting])
        return left, waiting.cancelled()

    assert asyncio.run(run()) == (["left"] * 100, True)


@pytest.mark.parametrize("function", ["hang", "block"])
def test_functions_that_hang_hold_up_no_other_work_of_the_gateway(office, function):
    """Neither the event loop nor its executor, which searches use."""

    async def block(call, table):
        await call("fine")
        module = sys.modules[table["target"]]
        hanging = [asyncio.create_task(call(function)) for _ in range(40)]
        for _ in range(16 if function == "hang" else 1):
            await asyncio.to_thread(module.STARTED.acquire)
        assert await asyncio.to_thread(lambda: "answered") == "answered"
        done = [task.done() for task in hanging]
        module.GO_ON.set()
        await asyncio.gather(*hanging)
        return done

    assert not any(office(block, concurrency=16))


def test_no_more_coroutines_run_at_once_than_are_allowed(office):
    async def block(call, table):
        return await asyncio.gather(*(call("count") for _ in range(12)))

    results = office(block, concurrency=3)

    assert max(int(text_of(result)) for result in results) == 3


def test_threads_that_never_end_are_counted_and_said(office):
    async def block(call, table):
        await call("fine")
        module = sys.modules[table["target"]]
        for _ in range(2):
            given_up = asyncio.create_task(call("hang"))
            await asyncio.to_thread(module.STARTED.acquire)
            given_up.cancel()
            await asyncio.wait([given_up])
        full = await call("fine")
        module.GO_ON.set()
        while text_of(free := await call("fine")) != "fine":
            await asyncio.sleep(0.01)
        return full, free

    full, free = office(block, concurrency=2)

    assert "all threads of 'kit' are occupied" in text_of(full)
    assert text_of(free) == "fine"


def test_a_coroutine_whose_call_is_given_up_is_cancelled(office):
    async def block(call, table):
        await call("fine")
        module = sys.modules[table["target"]]
        task = asyncio.create_task(call("wait"))
        await asyncio.to_thread(module.STARTED.acquire)
        task.cancel()
        await asyncio.to_thread(module.GO_ON.wait)
        await asyncio.wait([task])
        return task.cancelled()

    assert office(block)


def test_a_thread_that_cannot_start_leaves_its_place(monkeypatch):
    async def run():
        threads = Threads(1)
        with monkeypatch.context() as patch:
            patch.setattr("threading.Thread.start", lambda self: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                await threads.run(int)
        return await threads.run(int)

    assert asyncio.run(run()) == 0
