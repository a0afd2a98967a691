"""Asking an LLM while a person waits: from threads and event loops, in bounded time, never with an
exception.
"""

import asyncio
import gc
import os
import subprocess
import sys
import threading

import pytest

from pegboard.errors import CompletionError, ConfigurationError
from pegboard.llm import ChatReply, ChatRequest, Message
from pegboard.retrieval.llm.caller import LlmCaller, completer_of


def question(text="hello"):
    return ChatRequest(messages=(Message("user", text),), max_tokens=50)


def reply(text="fine", finish="stop"):
    return ChatReply(
        text=text,
        finish_reason=finish,
        model="stub",
        prompt_tokens=7,
        completion_tokens=3,
        cost_usd=0.5,
        seconds=0.1,
    )


class Stub:
    """A completer that does what `what` says, and knows where and how often at once it was
    called.
    """

    name = "stub/one"

    def __init__(self, what=lambda request: reply(request.messages[-1].content)):
        # Without a coroutine of `what`, an answer comes at once: no timeout can pass before it.
        self.what = what
        self.loops, self.threads = set(), set()
        self.calls = self.now = self.most = 0
        self.cancelled, self.closed_in = threading.Event(), []

    async def complete(self, request):
        self.calls += 1
        self.loops.add(asyncio.get_running_loop())
        self.threads.add(threading.current_thread())
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            came = self.what(request)
            came = await came if asyncio.iscoroutine(came) else came
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        finally:
            self.now -= 1
        if isinstance(came, Exception):
            raise came
        return came

    async def aclose(self):
        assert self.now == 0  # nobody is asked any more
        self.closed_in.append(asyncio.get_running_loop())


@pytest.fixture
def made():
    """A function that makes callers, patient by default; they are closed with the test."""
    callers = []

    def make(stub, **options):
        callers.append(LlmCaller(stub, **{"timeout": 600, **options}))
        return callers[-1]

    yield make
    for caller in callers:
        caller.close()


async def forever():
    await asyncio.Event().wait()


async def shortly():
    await asyncio.sleep(0.01)
    return reply()


def ask(caller, requests):
    """The completions, asked for in an event loop of their own."""
    return asyncio.run(caller.ask(requests))


def test_answers_come_in_the_order_of_the_requests_with_what_they_cost(made):
    answers = ask(made(Stub()), [question("one"), question("two")])

    assert [(one.text, one.why) for one in answers] == [("one", None), ("two", None)]
    assert {(one.prompt_tokens, one.completion_tokens, one.cost_usd) for one in answers} == {
        (7, 3, 0.5)
    }
    assert all(answer.seconds > 0 for answer in answers)


def test_no_request_needs_no_answer(made):
    assert ask(made(Stub()), []) == []


def test_threads_and_event_loops_share_one_event_loop_of_the_callers_own(made):
    stub = Stub()
    caller = made(stub)

    def from_a_loop():
        return asyncio.run(caller.ask([question("loop")]))

    threads = [threading.Thread(target=from_a_loop) for _ in range(3)]
    for thread in threads:
        thread.start()
    ask(caller, [question("thread")])
    for thread in threads:
        thread.join()

    async def beside():
        return [
            one.text for one in await caller.ask([question("here")])
        ], asyncio.get_running_loop()

    texts, own = asyncio.run(beside())
    assert texts == ["here"]
    assert len(stub.loops) == 1
    assert own not in stub.loops
    assert [thread.daemon for thread in stub.threads] == [True]


def test_all_requests_are_asked_at_once_up_to_the_bound(made):
    wide, narrow = Stub(lambda _: shortly()), Stub(lambda _: shortly())
    ask(made(wide, concurrency=8), [question()] * 6)
    ask(made(narrow, concurrency=2), [question()] * 6)

    assert (wide.most, narrow.most, narrow.calls) == (6, 2, 6)


def test_the_event_loop_of_the_caller_goes_on_meanwhile(made):
    goes_on = threading.Event()

    async def when_it_goes_on():
        await asyncio.to_thread(goes_on.wait)  # forever, if the caller's loop is blocked
        return reply()

    stub = Stub(lambda _: when_it_goes_on())
    caller = made(stub)

    async def run():
        answers = asyncio.create_task(caller.ask([question()]))
        while not stub.calls:
            await asyncio.sleep(0.01)
        goes_on.set()
        return await answers

    [answer] = asyncio.run(run())
    assert answer.text == "fine"


def test_each_request_is_given_up_after_the_timeout_and_the_others_are_answered(made):
    stub = Stub(lambda request: forever() if request.messages[0].content == "slow" else reply())

    slow, quick = ask(made(stub, timeout=0.3), [question("slow"), question("quick")])

    assert (slow.text, slow.why, slow.cost_usd) == (None, "timed out after 0.3 s", None)
    assert quick.text == "fine"
    assert stub.cancelled.is_set()


def test_waiting_for_a_place_counts_as_waiting(made):
    answers = ask(made(Stub(lambda _: forever()), timeout=0.3, concurrency=1), [question()] * 3)

    assert [one.why for one in answers] == ["timed out after 0.3 s"] * 3


@pytest.mark.parametrize(
    ("came", "why"),
    [
        (reply("", "content_filter"), "refused: the provider withheld the reply"),
        (reply('{"a": [', "length"), "cut off after 50 tokens"),
        (reply(" \n"), "the reply was empty"),
    ],
)
def test_a_reply_that_says_nothing_is_no_text_but_was_paid_for(made, came, why):
    [answer] = ask(made(Stub(lambda _: came)), [question()])

    assert (answer.text, answer.why) == (None, why)
    assert (answer.prompt_tokens, answer.cost_usd) == (7, 0.5)


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (
            CompletionError("x was not asked: no key. Set K.", kind="key"),
            "no key: x was not asked: no key. Set K.",
        ),
        (CompletionError("it is filtered", kind="content", status=400), "refused: it is filtered"),
        (CompletionError("busy", kind="rate", status=429), "too many requests: busy"),
        (CompletionError("broken", kind="server", status=500), "no answer: broken"),
        (CompletionError("slow", kind="timeout"), "timed out after 600 s"),
        (TimeoutError(), "timed out after 600 s"),
        (RuntimeError("a\nbug"), "no answer: RuntimeError: a bug"),
    ],
)
def test_no_failure_is_raised_and_each_says_why(made, error, why):
    [answer] = ask(made(Stub(lambda _: error)), [question()])

    assert (answer.text, answer.why) == (None, why)
    assert answer.prompt_tokens == 0


def test_no_key_stands_in_a_reason(made):
    error = CompletionError("bad key sk-abcdefgh12345678 given")

    [answer] = ask(made(Stub(lambda _: error)), [question()])

    assert "sk-" not in answer.why


def test_what_may_pass_is_asked_once_more(made):
    came = [CompletionError("busy", may_pass=True, retry_after=0.05), reply()]
    [answer] = ask(made(Stub(lambda _: came.pop(0))), [question()])
    stub = Stub(lambda _: CompletionError("busy", kind="rate", may_pass=True, status=429))
    [given_up] = ask(made(stub), [question()])

    assert answer.text == "fine"
    assert (given_up.why, stub.calls) == ("too many requests: busy", 2)


@pytest.mark.parametrize(
    "error",
    [
        CompletionError("no", kind="request"),
        CompletionError("come back later", kind="rate", may_pass=True, retry_after=60),
    ],
)
def test_what_will_not_pass_in_time_is_asked_once(made, error):
    stub = Stub(lambda _: error)

    [answer] = ask(made(stub, timeout=10), [question()])

    assert stub.calls == 1
    assert str(error) in answer.why


def test_cancelling_cancels_the_calls(made):
    stub = Stub(lambda _: forever())
    caller = made(stub)

    async def run():
        asked = asyncio.create_task(caller.ask([question()]))
        while not stub.calls:
            await asyncio.sleep(0.01)
        asked.cancel()
        await asked

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(run())
    stub.cancelled.wait()


def test_closing_answers_those_who_wait_and_closes_the_completer_in_its_loop(made):
    stub = Stub(lambda _: forever())
    caller = made(stub)

    async def run():
        asked = asyncio.create_task(caller.ask([question()]))
        while not stub.calls:
            await asyncio.sleep(0.01)
        await asyncio.to_thread(caller.close)
        return await asked

    [answer] = asyncio.run(run())
    for thread in stub.threads:
        thread.join()

    assert answer.why == "the caller was closed meanwhile"
    assert len(stub.closed_in) == 1
    assert set(stub.closed_in) == stub.loops


def test_a_closed_caller_starts_again(made):
    stub = Stub()
    caller = made(stub)
    ask(caller, [question()])
    caller.close()
    caller.close()

    assert [one.text for one in ask(caller, [question("again")])] == ["again"]
    assert len(stub.loops) == 2


def test_a_caller_that_is_forgotten_ends_its_thread():
    stub = Stub()
    caller = LlmCaller(stub)
    ask(caller, [question()])
    [thread] = stub.threads

    del caller
    gc.collect()

    thread.join()
    assert len(stub.closed_in) == 1


FORKED = """
import asyncio
import multiprocessing
from pegboard.llm import ChatReply, ChatRequest, Message
from pegboard.retrieval.llm.caller import LlmCaller

class Echo:
    name = "stub/echo"
    async def complete(self, request):
        text = request.messages[-1].content
        return ChatReply(
            text=text, finish_reason="stop", model=self.name, prompt_tokens=1,
            completion_tokens=1, cost_usd=0.0, seconds=0.0,
        )  # fmt: skip

def asked(text):
    request = ChatRequest(messages=(Message("user", text),), max_tokens=9)
    return [one.text for one in asyncio.run(caller.ask([request]))]

caller = LlmCaller(Echo())
assert asked("before") == ["before"]
ours, theirs = multiprocessing.Pipe()
process = multiprocessing.get_context("fork").Process(target=lambda: theirs.send(asked("child")))
process.start()
assert ours.recv() == ["child"]
process.join()
assert process.exitcode == 0, process.exitcode
assert asked("parent") == ["parent"]
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_starts_a_loop_of_its_own():
    # In a process of its own: what other tests have loaded into this one may not fork.
    done = subprocess.run(
        [sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "options", [{"timeout": 0}, {"timeout": float("inf")}, {"timeout": "10"}, {"concurrency": 0}]
)
def test_a_wrong_option_is_a_wrong_configuration(options):
    [name] = options

    with pytest.raises(ConfigurationError, match=f"LLM 'stub/one': {name} is "):
        LlmCaller(Stub(), **options)


def test_a_completer_is_taken_as_it_is_and_nothing_is_nothing():
    stub = Stub()

    assert completer_of(stub) is stub
    assert completer_of(None) is None


@pytest.mark.parametrize("llm", [3, object(), ["openai/gpt-4o-mini"]])
def test_what_is_no_llm_is_a_wrong_configuration(llm):
    with pytest.raises(
        ConfigurationError,
        match=r"Invalid llm: .* Expected a model's name such as 'openai/gpt-4o-mini'",
    ):
        completer_of(llm)


def test_a_name_needs_litellm_and_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(
        sys.modules, "litellm", None
    )  # how Python marks a module that cannot be imported

    with pytest.raises(CompletionError, match=r"pip install 'pegboard\[litellm\]'"):
        completer_of("openai/gpt-4o-mini")
