"""Asking an LLM while a person waits: from threads and event loops, in bounded time, never with an
exception.
"""

import asyncio
import sys
import threading

import pytest

from pegboard.errors import CompletionError, ConfigurationError
from pegboard.llm import ChatRequest, Message
from pegboard.retrieval.llm.caller import LlmCaller
from pegboard.retrieval.llm.caller import open_caller as caller_of
from tests.pegboard.retrieval.stubs import ScriptedCompleter, chat_reply


def question(text="hello"):
    return ChatRequest(messages=(Message("user", text),), max_tokens=50)


class Stub:
    """Answers by a function of the request or its coroutine; notes where and how often at once."""

    name = "stub/one"

    def __init__(self, answer=lambda request: chat_reply(request.messages[-1].content)):
        # Without a coroutine an answer comes at once: no timeout can pass before it.
        self.answer = answer
        self.loops = set()
        self.calls = self.running = self.most = 0
        self.cancelled, self.closed_in = threading.Event(), []

    async def complete(self, request):
        self.calls += 1
        self.loops.add(asyncio.get_running_loop())
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            reply = self.answer(request)
            reply = await reply if asyncio.iscoroutine(reply) else reply
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        finally:
            self.running -= 1
        if isinstance(reply, Exception):
            raise reply
        return reply

    async def aclose(self):
        self.closed_in.append(asyncio.get_running_loop())


@pytest.fixture
def open_caller():
    """A function that makes callers, patient by default; they are closed with the test."""
    callers = []

    def make(stub, **options):
        callers.append(LlmCaller(stub, **{"timeout": 600, **options}))
        return callers[-1]

    yield make
    for caller in callers:
        caller.close()


@pytest.fixture
def hanging(open_caller):
    """A stub that never answers, and its caller."""
    stub = Stub(lambda _: forever())
    return stub, open_caller(stub)


async def forever():
    await asyncio.Event().wait()


async def shortly():
    await asyncio.sleep(0.01)
    return chat_reply("fine")


async def first_call(stub):
    while not stub.calls:
        await asyncio.sleep(0.01)


def ask(caller, *requests):
    """The completions, asked for in an event loop of their own."""
    return asyncio.run(caller.ask(requests))


def test_answers_come_in_the_order_of_the_requests_with_what_they_cost(open_caller):
    caller = open_caller(Stub())
    answers = ask(caller, question("one"), question("two"))

    assert ask(caller) == []
    assert [(answer.text, answer.why) for answer in answers] == [("one", None), ("two", None)]
    for answer in answers:
        usage = (answer.prompt_tokens, answer.completion_tokens, answer.cost_usd)
        assert usage == (100, 10, 0.001)


def test_all_requests_are_asked_at_once_up_to_the_bound(open_caller):
    wide = Stub(lambda _: shortly())
    narrow = Stub(lambda _: shortly())
    ask(open_caller(wide, concurrency=8), *[question()] * 6)
    ask(open_caller(narrow, concurrency=2), *[question()] * 6)

    assert (wide.most, narrow.most, narrow.calls) == (6, 2, 6)


def test_each_request_has_the_timeout_and_the_others_are_answered(open_caller):
    stub = Stub(
        lambda request: forever() if request.messages[0].content == "slow" else chat_reply("fine")
    )

    slow, quick = ask(open_caller(stub, timeout=0.3), question("slow"), question("fast"))

    assert (slow.text, slow.why, slow.cost_usd) == (None, "timed out after 0.3 s", None)
    assert quick.text == "fine"
    assert stub.cancelled.is_set()


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        (chat_reply("", "content_filter"), "refused: the provider withheld the reply"),
        (chat_reply('{"a": [', "length"), "cut off after 50 tokens"),
        (chat_reply(" \n"), "the reply was empty"),
        (CompletionError("no key. Set K.", kind="key"), "no key: no key. Set K."),
        (CompletionError("it is filtered", kind="content", status=400), "refused: it is filtered"),
        (CompletionError("busy", kind="rate", status=429), "too many requests: busy"),
        (CompletionError("broken", kind="server", status=500), "no answer: broken"),
        (CompletionError("slow", kind="timeout"), "timed out after 600 s"),
        (TimeoutError(), "timed out after 600 s"),
        (RuntimeError("a\nbug"), "no answer: RuntimeError: a bug"),
        (CompletionError("bad sk-abcdefgh12345678 given"), "no answer: bad *** given"),
        ("a text", "no answer: AttributeError: 'str' object has no attribute 'finish_reason'"),
    ],
)
def test_no_failure_is_raised_and_each_has_a_reason(open_caller, outcome, reason):
    [answer] = ask(open_caller(Stub(lambda _: outcome)), question())

    assert (answer.text, answer.why) == (None, reason)
    paid = hasattr(outcome, "prompt_tokens")
    assert (answer.prompt_tokens, answer.completion_tokens) == ((100, 10) if paid else (0, 0))


@pytest.mark.parametrize(
    ("error", "calls"),
    [
        (CompletionError("busy", may_pass=True, retry_after=0.05), 2),
        (CompletionError("busy", kind="rate", may_pass=True, status=429), 2),
        (CompletionError("no", kind="request"), 1),
        (CompletionError("come back later", kind="rate", may_pass=True, retry_after=900), 1),
    ],
)
def test_an_error_that_may_pass_in_time_is_retried_once(open_caller, error, calls):
    always = Stub(lambda _: error)
    once = ScriptedCompleter(error, "fine")

    [failed] = ask(open_caller(always), question())
    [answer] = ask(open_caller(once), question())

    assert str(error) in failed.why
    assert always.calls == calls
    assert answer.text == ("fine" if calls == 2 else None)


def test_cancelling_cancels_the_calls(hanging):
    stub, caller = hanging

    async def run():
        answers = asyncio.create_task(caller.ask([question()]))
        await first_call(stub)
        answers.cancel()
        await answers

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(run())
    stub.cancelled.wait()


def test_closing_closes_the_connections_in_their_loop_and_the_next_question_opens_others(
    open_caller,
):
    stub = Stub()
    caller = open_caller(stub)
    caller.close()
    assert stub.closed_in == []

    ask(caller, question())
    caller.close()

    assert stub.closed_in == [*stub.loops]
    assert ask(caller, question("again"))[0].text == "again"


@pytest.mark.parametrize(
    "options", [{"timeout": 0}, {"timeout": float("inf")}, {"timeout": "10"}, {"concurrency": 0}]
)
def test_an_invalid_option_is_reported(options):
    [name] = options

    with pytest.raises(ConfigurationError, match=f"LLM 'stub/one': {name} is "):
        LlmCaller(Stub(), **options)


def test_a_completer_is_accepted_and_a_name_needs_litellm(monkeypatch):
    stub = Stub()
    monkeypatch.setitem(sys.modules, "litellm", None)  # cannot be imported

    assert caller_of(stub, {"concurrency": 2}).name == stub.name
    assert caller_of(None) is None
    with pytest.raises(CompletionError, match=r"pip install './index\[litellm\]'"):
        caller_of("openai/gpt-4o-mini")
    for llm in (3, object(), ["openai/gpt-4o-mini"]):
        with pytest.raises(
            ConfigurationError,
            match=r"Invalid llm: .* Expected a model's name such as 'openai/gpt-4o-mini'",
        ):
            caller_of(llm)


def test_options_reach_the_server_of_a_model(server):
    caller = caller_of(
        "hosted_vllm/m", {"api_base": server.url, "options": {"reasoning_effort": "low"}}
    )
    try:
        assert ask(caller, question("hello"))[0].text == "hello"
    finally:
        caller.close()

    assert server.bodies[0]["reasoning_effort"] == "low"


class Priced(Stub):
    """A model whose prompt tokens cost nothing and whose reply tokens cost .01 USD each."""

    def price_per_token(self):
        return 0.0, 0.01


def test_a_budget_is_kept_and_the_question_that_did_not_fit_is_known():
    stub = Priced()  # each question of at most 50 reply tokens may cost .5, and costs .001
    caller = caller_of(stub, {"budget_usd": 0.5015, "timeout": 600, "concurrency": 1})

    first = asyncio.run(caller.ask([question()]))
    assert caller.exhausted is None
    others = asyncio.run(caller.ask([question(), question()]))
    caller.close()

    assert [answer.text for answer in first + others] == ["hello", "hello", None]
    assert "does not fit into budget_usd = 0.5015" in others[1].why
    assert caller.exhausted is not None
    assert caller.price_per_token() == (0.0, 0.01)
    assert stub.calls == 2
    assert len(stub.closed_in) == 1


@pytest.mark.parametrize(
    ("stub", "budget", "problem"),
    [
        (Stub(), 1.0, "The price of stub/one is unknown"),
        (Priced(), -1.0, "budget_usd is -1, expected 0 or more"),
    ],
)
def test_a_budget_needs_a_price_and_is_not_negative(stub, budget, problem):
    with pytest.raises(ConfigurationError, match=problem):
        caller_of(stub, {"budget_usd": budget})
