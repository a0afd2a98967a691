"""Python functions that hang, exit or are given up hold up no other work of the gateway."""

import asyncio
import sys

import pytest

from pegboard.serve.calls.threads import LoopEnded, ThreadLoop, Threads
from tests.pegboard.serve.office import text_of


def test_a_task_that_exits_ends_its_event_loop_and_the_next_call_gets_a_new_one(office):
    async def block(call, table):
        return await call("leave_in_a_task"), await call("cancel_itself")

    ended, after = office(block)

    assert "ended, since a task in it exited" in text_of(ended)
    assert text_of(after) == "CancelledError: "


def test_an_event_loop_that_ends_leaves_no_coroutine_behind():
    """Whether a coroutine is waiting, or handed over when the loop has just ended."""

    async def leave():
        asyncio.get_running_loop().call_soon(sys.exit)
        return "left"

    async def wait():
        await asyncio.Event().wait()

    async def answer():
        return "answered"

    async def run():
        loop = ThreadLoop()
        tasks = [
            asyncio.create_task(loop.run(coroutine))
            for _ in range(100)
            for coroutine in (leave(), wait(), answer())
        ]
        await asyncio.wait([task for number, task in enumerate(tasks) if number % 3 != 1])
        loop.close()  # what waits in the last one
        return await asyncio.gather(*tasks, return_exceptions=True)

    results = asyncio.run(run())

    assert {type(result) for result in results[1::3]} == {LoopEnded}
    assert all(result in ("left", "answered") or type(result) is LoopEnded for result in results)


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
