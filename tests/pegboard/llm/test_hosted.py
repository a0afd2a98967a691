"""The hosted completer against a real HTTP server on loopback that speaks the OpenAI chat
protocol.
"""

import asyncio
import json
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from pegboard.errors import CompletionError, ConfigurationError
from pegboard.llm import ChatRequest, Message
from pegboard.llm.hosted import HostedCompleter

pytestmark = [
    # pydantic says so while LiteLLM defines its types; it concerns nothing that is used here.
    pytest.mark.filterwarnings(
        "ignore:Item .* on TypedDict class .* is using the `ReadOnly` qualifier:UserWarning"
    ),
    # pydantic says so when the OpenAI client rewrites a malformed reply; the tests below see what
    # becomes of it.
    pytest.mark.filterwarnings("ignore:Pydantic serializer warnings:UserWarning"),
]

NAME = "openai/test-model"
KEY = "sk-abcdefgh12345678"
SCHEMA = {"type": "object", "properties": {"topics": {"type": "array"}}, "required": ["topics"]}
ASKED = ChatRequest(
    messages=(Message("system", "Be brief."), Message("user", "Say hello.")), max_tokens=50
)


class Server(ThreadingHTTPServer):
    """Answers each request with the next scripted reply, and with its last message once there is
    none.
    """

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.script, self.bodies, self.keys = [], [], []
        self.released = threading.Event()  # what hangs, hangs until the test ends

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/v1"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.bodies.append(body)
        self.server.keys.append(self.headers["Authorization"])
        reply = self.server.script.pop(0) if self.server.script else echo(body)
        if callable(reply):
            self.close_connection = True
            return reply(self)
        status, headers, content = reply
        content = content if isinstance(content, bytes) else json.dumps(content).encode()
        return self.answer(status, headers, content, len(content))

    def answer(self, status, headers, content, length):
        self.send_response(status)
        for name, value in {
            "Content-Type": "application/json",
            "Content-Length": length,
            **headers,
        }.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


def echo(body):
    return reply(body["messages"][-1]["content"])


def reply(content="hello", finish="stop", usage=(10, 5), **message):
    counts = (
        {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}
        if usage
        else None
    )
    choice = {
        "index": 0,
        "finish_reason": finish,
        "message": {"role": "assistant", "content": content, **message},
    }
    return with_choices([choice], counts)


def with_choices(choices, usage=None):
    body = {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": choices,
        "usage": usage,
    }
    return 200, {}, {key: value for key, value in body.items() if value is not None}


def failure(status, message="no", code=None, **headers):
    error = {"message": f"{message} (you sent {KEY})", "type": "x", "code": code}
    return (
        status,
        {name.replace("_", "-"): value for name, value in headers.items()},
        {"error": error},
    )


def says_nothing(handler):
    handler.server.released.wait()


def hangs_up(handler):
    pass


def breaks_off(handler):
    handler.answer(200, {}, b'{"id": "1", "choi', 1000)


def trickles(handler):
    handler.answer(200, {}, b" ", 1000)
    while not handler.server.released.wait(0.1):
        try:
            handler.wfile.write(b" ")
        except OSError:
            return


@pytest.fixture
def server():
    server = Server()
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
    )
    thread.start()
    yield server
    server.released.set()
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


@pytest.fixture
def completer(server):
    return HostedCompleter(NAME, api_base=server.url, timeout=600)


def ask(completer, *requests):
    """The replies to the requests, asked for all at once; the one reply, if there is one
    request.
    """

    async def run():
        try:
            return await asyncio.gather(
                *(completer.complete(request) for request in requests or [ASKED])
            )
        finally:
            await completer.aclose()

    replies = asyncio.run(run())
    return replies if requests else replies[0]


def refused(completer, request=ASKED):
    """The error of a request that must fail; no key leaves with it."""
    with pytest.raises(CompletionError) as caught:
        ask(completer, request)
    assert KEY not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    return caught.value


def test_a_reply_is_given_as_it_came(server, completer):
    server.script = [reply("  Hello.\n", usage=(123, 45))]

    answer = ask(completer)

    assert (answer.text, answer.finish_reason, answer.model) == ("  Hello.\n", "stop", NAME)
    assert (answer.prompt_tokens, answer.completion_tokens, answer.cost_usd) == (123, 45, None)
    assert answer.seconds > 0


def test_a_request_goes_out_with_its_messages_its_limit_and_nothing_unasked(server, completer):
    ask(completer)

    assert server.bodies == [
        {
            "model": "test-model",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Say hello."},
            ],
            "max_tokens": 50,
        }
    ]


def test_a_schema_and_a_temperature_go_out_with_the_request(server, completer):
    options = {"max_tokens": 9, "temperature": 0.5}
    asked = ChatRequest(messages=ASKED.messages, schema=SCHEMA, schema_name="x", **options)
    ask(completer, asked)
    # A model that takes no temperature is not given one.
    ask(HostedCompleter("openai/o3-mini", api_base=server.url), asked)

    first, second = server.bodies
    assert (first["temperature"], first["max_tokens"]) == (0.5, 9)
    assert first["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "x", "schema": SCHEMA, "strict": True},
    }
    assert "temperature" not in second
    assert second["max_completion_tokens"] == 9


def test_requests_at_once_each_get_their_own_reply(completer):
    texts = [f"number {number}" for number in range(40)]

    replies = ask(
        completer, *(ChatRequest(messages=(Message("user", text),), max_tokens=9) for text in texts)
    )

    assert [answer.text for answer in replies] == texts


@pytest.mark.parametrize(
    ("came", "text", "finish"),
    [
        (reply('{"topics": ["a', "length"), '{"topics": ["a', "length"),
        (reply("", "content_filter"), "", "content_filter"),
        (reply(None), "", "stop"),
        (
            reply(
                None,
                "tool_calls",
                tool_calls=[
                    {
                        "id": "1",
                        "type": "function",
                        "function": {"name": "reply", "arguments": '{"a": 1}'},
                    }
                ],
            ),
            '{"a": 1}',
            "stop",
        ),
    ],
)
def test_unusual_replies_are_still_replies(server, completer, came, text, finish):
    server.script = [came]

    answer = ask(completer)

    assert (answer.text, answer.finish_reason) == (text, finish)


TOOL = {
    "type": "function",
    "function": {
        "name": "get_forecast",
        "description": "The weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}
OFFERED = ChatRequest(messages=ASKED.messages, max_tokens=50, tools=(TOOL,), tool_choice="required")


def calling(*calls, content=None, usage=(10, 5)):
    """A reply that calls tools: names and texts of arguments."""
    made = [
        {"id": f"{at}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for at, (name, arguments) in enumerate(calls)
    ]
    return reply(content, "tool_calls", usage, tool_calls=made)


def test_tools_go_out_with_the_request_and_calls_come_back_as_they_were_written(server, completer):
    server.script = 2 * [
        calling(
            ("get_forecast", '{"city": "Oslo"}'), ("get_forecast", '{"city": "Ber'), ("dance", "")
        )
    ]  # either may come first

    answer = ask(
        completer, OFFERED, ChatRequest(messages=ASKED.messages, max_tokens=50, tools=(TOOL,))
    )[0]

    required, free = sorted(server.bodies, key=lambda body: "tool_choice" not in body)
    assert (required["tools"], required["tool_choice"]) == ([TOOL], "required")
    assert free["tools"] == [TOOL]
    assert "tool_choice" not in free
    assert answer.text == ""
    assert answer.finish_reason == "tool_calls"
    assert answer.counted
    assert [(call.name, call.arguments) for call in answer.calls] == [
        ("get_forecast", '{"city": "Oslo"}'),
        ("get_forecast", '{"city": "Ber'),
        ("dance", ""),
    ]


def test_an_agent_may_speak_beside_its_calls_or_instead_of_them(server, completer):
    server.script = [calling(("dance", "{}"), content="At once!"), reply("No need.")]

    both, neither = [ask(completer, OFFERED)[0] for _ in range(2)]

    assert (both.text, len(both.calls)) == ("At once!", 1)
    assert (neither.text, neither.calls) == ("No need.", ())


def test_a_call_is_a_text_only_where_no_tool_was_offered(server, completer):
    server.script = [calling(("reply", '{"a": 1}')), calling(("reply", '{"a": 1}'))]

    with_schema = ask(completer, ChatRequest(messages=ASKED.messages, max_tokens=9, schema=SCHEMA))[
        0
    ]
    with_tools = ask(completer, OFFERED)[0]

    assert (with_schema.text, with_schema.finish_reason, with_schema.calls) == (
        '{"a": 1}',
        "stop",
        (),
    )
    assert (with_tools.text, len(with_tools.calls)) == ("", 1)


def test_tools_and_calls_count_where_the_server_does_not_count(server):
    completer = HostedCompleter(NAME, api_base=server.url)
    server.script = [
        calling(("get_forecast", '{"city": "Oslo"}'), usage=None),
        reply("Hi", usage=None),
    ]

    with_tools, without = [ask(completer, request)[0] for request in (OFFERED, ASKED)]

    assert not with_tools.counted
    assert with_tools.prompt_tokens > without.prompt_tokens + 20
    assert with_tools.completion_tokens == completer.count_tokens('get_forecast{"city": "Oslo"}')


def test_tokens_that_the_server_does_not_count_are_estimated(server):
    completer = HostedCompleter(NAME, api_base=server.url, price=(1, 10))
    server.script = [reply("one two three", usage=None)]

    answer = ask(completer)

    assert answer.prompt_tokens == completer.count_tokens("Be brief.\n\nSay hello.") == 6
    assert answer.completion_tokens == 3
    assert answer.cost_usd == pytest.approx((6 + 30) / 1e6)


@pytest.mark.parametrize(
    ("price", "live", "batch"),
    [((2, 8), (2e-6, 8e-6), (1e-6, 4e-6)), (None, (1.5e-7, 6e-7), (7.5e-8, 3e-7))],
)
def test_a_reply_costs_what_the_configuration_says_or_the_list(server, price, live, batch):
    completer = HostedCompleter("openai/gpt-4o-mini", api_base=server.url, price=price)
    server.script = [reply(usage=(1000, 100))]

    assert (completer.price_per_token(), completer.batch_price_per_token()) == (live, batch)
    assert ask(completer).cost_usd == pytest.approx(1000 * live[0] + 100 * live[1])


def test_a_batch_price_that_is_not_listed_is_half():
    completer = HostedCompleter("deepseek/deepseek-chat")
    live = completer.price_per_token()

    assert completer.batch_price_per_token() == (live[0] / 2, live[1] / 2)


def test_a_prompt_from_the_providers_cache_costs_less(server):
    came = reply(usage=(1000, 100))
    came[2]["usage"]["prompt_tokens_details"] = {"cached_tokens": 800}
    server.script = [came]

    assert (
        0
        < ask(HostedCompleter("openai/gpt-4o-mini", api_base=server.url)).cost_usd
        < 1000 * 1.5e-7 + 100 * 6e-7
    )


# LiteLLM answers 0 for the second, and knows the third as Anthropic's.
@pytest.mark.parametrize("name", [NAME, "openai/gpt-5-unheard-of", "openai/claude-sonnet-4-5"])
def test_a_price_that_nobody_knows_is_unknown_and_not_zero(server, name):
    completer = HostedCompleter(name, api_base=server.url)

    assert completer.price_per_token() is None
    assert completer.batch_price_per_token() is None
    assert ask(completer).cost_usd is None


@pytest.mark.parametrize(
    ("came", "kind", "passes", "advice"),
    [
        (failure(400), "request", False, "Sending it again would not help"),
        (
            failure(400, "This model's maximum context length is 512 tokens"),
            "length",
            False,
            "reads less than that",
        ),
        (failure(400, "was filtered", "content_filter"), "content", False, "refuses this text"),
        (
            failure(401),
            "key",
            False,
            "Name the environment variable that holds its key as api_key_env",
        ),
        (failure(403), "key", False, "api_key_env"),
        (failure(404), "model", False, "Check the model's name and api_base"),
        (failure(408), "timeout", True, r"Raise timeout \(600 s\)"),
        (failure(413), "request", False, "Sending it again would not help"),
        (failure(422), "request", False, "Sending it again would not help"),
        (failure(429), "rate", True, "Run again later, or with a lower concurrency"),
        (failure(429, code="insufficient_quota"), "quota", False, "no quota left"),
        (failure(500), "server", True, "Check that the server is up"),
        (failure(502), "server", True, "Check that the server is up"),
        (failure(503), "server", True, "Check that the server is up"),
        (failure(504), "timeout", True, "Raise timeout"),
        (failure(529), "server", True, "Check that the server is up"),
    ],
)
@pytest.mark.parametrize(
    "provider", ["openai", "hosted_vllm"]
)  # two clients that know nothing of each other
def test_a_refusal_is_told_apart_and_asked_for_once(server, provider, came, kind, passes, advice):
    server.script = [came, came, came]

    error = refused(HostedCompleter(f"{provider}/m", api_base=server.url, timeout=600))

    assert (error.kind, error.may_pass, error.status) == (kind, passes, came[0])
    assert f"{provider}/m at {server.url} did not answer: " in str(error)
    with pytest.raises(CompletionError, match=advice):
        raise error
    assert len(server.bodies) == 1


@pytest.mark.parametrize(
    "came",
    [
        breaks_off,
        hangs_up,
        (200, {}, b'{"id": "1", "choi'),
        (200, {"Content-Type": "text/html"}, b"<html>Sign in</html>"),
        (200, {}, []),
        (200, {}, {}),
        with_choices([]),
        with_choices(None),
        with_choices([{"index": 0, "finish_reason": "stop"}]),
        (200, {}, {"error": {"message": "overloaded", "code": 500}}),
    ],
)
def test_what_is_no_reply_may_pass_and_is_never_made_up_for(server, completer, came):
    server.script = [came]

    error = refused(completer)

    assert error.kind in ("server", "reply")
    assert error.may_pass
    assert "Traceback" not in str(error)
    assert len(server.bodies) == 1


def test_a_server_that_says_when_to_come_back_is_heard(server, completer):
    later = datetime.now(UTC) + timedelta(hours=1)
    server.script = [
        failure(429, Retry_After="7"),
        failure(503, Retry_After=format_datetime(later, usegmt=True)),
    ]

    seconds = refused(completer)
    date = refused(completer)

    assert seconds.retry_after == 7
    assert "the server asks to wait 7 s" in str(seconds)
    left = (later - datetime.now(UTC)).total_seconds()
    assert left - 1 <= date.retry_after <= 3600  # the date has no fractions of a second


@pytest.mark.parametrize("silence", [says_nothing, trickles])
def test_a_server_that_does_not_come_to_an_end_is_given_up_on(server, silence):
    server.script = [silence]

    error = refused(HostedCompleter(NAME, api_base=server.url, timeout=0.3))

    assert (error.kind, error.may_pass) == ("timeout", True)
    assert "Raise timeout (0.3 s)" in str(error)


def test_a_server_that_is_not_there_may_come_back(server):
    server.server_close()  # nobody listens at its port any more

    error = refused(HostedCompleter(NAME, api_base=server.url))

    assert (error.kind, error.may_pass) == ("server", True)


def test_text_that_no_request_can_carry_is_not_sent(server, completer):
    error = refused(completer, ChatRequest(messages=(Message("user", "\ud800"),), max_tokens=9))

    assert (error.kind, error.may_pass) == ("request", False)
    assert server.bodies == []


def test_a_call_can_be_cancelled(server, completer):
    server.script = [says_nothing]

    async def run():
        call = asyncio.create_task(completer.complete(ASKED))
        while not server.bodies:
            await asyncio.sleep(0.01)
        call.cancel()
        try:
            await call
        finally:
            await completer.aclose()

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(run())


def test_no_key_goes_to_an_address_of_ones_own_unasked(server, completer):
    ask(completer)

    assert server.keys == ["Bearer none"]


def test_the_key_that_api_key_env_names_is_read_at_each_call(server, monkeypatch):
    completer = HostedCompleter(NAME, api_base=server.url, api_key_env="GATEWAY")
    error = refused(completer)
    monkeypatch.setenv("GATEWAY", "first-one")
    ask(completer)
    monkeypatch.setenv("GATEWAY", "second-one")
    ask(completer)

    assert error.kind == "key"
    assert not error.may_pass
    assert "Set the environment variable GATEWAY, named by api_key_env" in str(error)
    assert server.keys == ["Bearer first-one", "Bearer second-one"]


def test_a_provider_gets_its_usual_key_at_its_usual_address(server, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    ask(HostedCompleter(NAME))
    monkeypatch.delenv("OPENAI_API_KEY")

    error = refused(HostedCompleter(NAME))

    assert server.keys == [f"Bearer {KEY}"]
    assert error.kind == "key"
    assert "Set the environment variable OPENAI_API_KEY" in str(error)


def test_no_key_is_printed_or_logged(server, monkeypatch, capfd, caplog):
    monkeypatch.setenv(
        "GATEWAY", "a-quiet-one"
    )  # nothing in its name or shape says that it is a key
    completer = HostedCompleter(NAME, api_base=server.url, api_key_env="GATEWAY")
    server.script = [failure(status, "You sent a-quiet-one") for status in (401, 429, 500)]

    messages = [str(refused(completer)) for _ in range(3)]

    assert all("You sent [GATEWAY]" in message for message in messages)
    printed = "".join(capfd.readouterr()) + caplog.text
    assert "a-quiet-one" not in printed
    assert KEY not in printed


def test_nothing_is_left_open_when_the_event_loop_ends(server):
    code = f"""
import asyncio, gc
from pegboard.llm import ChatRequest, Message
from pegboard.llm.hosted import HostedCompleter

async def run():
    await completer.complete(ChatRequest(messages=(Message("user", "hello"),), max_tokens=9))
    await completer.aclose()

for name in ("openai/m", "hosted_vllm/m"):
    completer = HostedCompleter(name, api_base={server.url!r})
    asyncio.run(run())
    asyncio.run(run())
    gc.collect()
"""
    command = [sys.executable, "-W", "ignore", "-W", "always::ResourceWarning", "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, check=True)

    assert len(server.bodies) == 4
    assert "Warning" not in result.stderr
    assert "LoggingWorker" not in result.stderr


def test_tokens_are_counted_here():
    completer = HostedCompleter("anthropic/claude-sonnet-4-5")

    assert completer.count_tokens("") == 0
    assert completer.count_tokens("one two three") == 3
    assert (
        completer.count_tokens("<|endoftext|>") > 1
    )  # catalog text holds no token that means anything


def test_a_name_without_a_provider_is_a_wrong_configuration_with_an_example():
    with pytest.raises(
        ConfigurationError,
        match=r"no provider for 'my-model'. Write provider/model, such as openai/",
    ):
        HostedCompleter("my-model")


@pytest.mark.parametrize("options", [{"timeout": 0}, {"timeout": "60"}, {"price": (1, -1)}])
def test_a_wrong_value_is_a_wrong_configuration(options):
    [name] = options

    with pytest.raises(ConfigurationError, match=f"{name} = "):
        HostedCompleter(NAME, **options)


def test_a_missing_package_answers_with_its_install_command(monkeypatch):
    monkeypatch.setitem(
        sys.modules, "litellm", None
    )  # how Python marks a module that cannot be imported

    with pytest.raises(
        CompletionError, match=r"litellm, which is not installed.*pip install 'pegboard\[litellm\]'"
    ):
        HostedCompleter(NAME)


def test_importing_it_loads_nothing_heavy():
    heavy = ["litellm", "openai", "tenacity", "pydantic", "aiohttp", "numpy"]
    modules = "pegboard.llm.hosted, pegboard.llm.batches, pegboard.llm.retry"
    code = f"import sys, {modules}; print(*(name for name in {heavy!r} if name in sys.modules))"

    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert result.stdout.split() == []
