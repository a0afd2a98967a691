"""The hosted completer against a real HTTP server on loopback; `test_failures` has its failures."""

import asyncio

import pytest

from pegboard.errors import CompletionError, ConfigurationError
from pegboard.llm import ChatRequest, Message
from pegboard.llm.hosted import HostedCompleter
from tests.openai_server import KEY, LITELLM_WARNINGS, chat, failure

pytestmark = [*LITELLM_WARNINGS, pytest.mark.usefixtures("openai_key")]

NAME = "openai/test-model"
SCHEMA = {"type": "object", "properties": {"topics": {"type": "array"}}, "required": ["topics"]}
TOOL = {
    "type": "function",
    "function": {
        "name": "get_forecast",
        "description": "The weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}


def request(text="Say hello.", **options):
    messages = (Message("system", "Be brief."), Message("user", text))
    return ChatRequest(messages=messages, **{"max_tokens": 50, **options})


REQUEST = request()
WITH_TOOLS = request(tools=(TOOL,))


@pytest.fixture
def completer(server):
    return HostedCompleter(NAME, api_base=server.url, timeout=600)


def ask(completer, *requests):
    """The replies to concurrent requests."""

    async def run():
        try:
            return await asyncio.gather(*(completer.complete(request) for request in requests))
        finally:
            await completer.aclose()

    return asyncio.run(run())


def refusal(completer, request=REQUEST):
    """The error of a request that must fail; it carries no key."""
    with pytest.raises(CompletionError) as caught:
        ask(completer, request)
    assert KEY not in str(caught.value)
    return caught.value


def test_a_reply_is_returned_unchanged(server, completer):
    server.script = [chat("  Hello.\n", usage=(123, 45))]

    [reply] = ask(completer, REQUEST)

    assert (reply.text, reply.finish_reason, reply.model) == ("  Hello.\n", "stop", NAME)
    assert (reply.prompt_tokens, reply.completion_tokens, reply.cost_usd) == (123, 45, None)
    assert reply.seconds > 0


def test_a_request_is_sent_with_its_options_and_no_others(server, completer):
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Say hello."},
    ]
    full = request(temperature=0.5, schema=SCHEMA, schema_name="x")
    ask(completer, REQUEST)
    ask(completer, full)
    # A model that takes no temperature is not given one.
    ask(HostedCompleter("openai/o3-mini", api_base=server.url), full)

    plain, with_options, reasoning = server.bodies
    assert plain == {"model": "test-model", "messages": messages, "max_tokens": 50}
    assert with_options == plain | {
        "temperature": 0.5,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "x", "schema": SCHEMA, "strict": True},
        },
    }
    assert "temperature" not in reasoning
    assert reasoning["max_completion_tokens"] == 50


CALL = ("reply", '{"a": 1}')


@pytest.mark.parametrize(
    ("sent", "request_", "text", "finish", "calls"),
    [
        (chat('{"topics": ["a', "length"), REQUEST, '{"topics": ["a', "length", []),
        (chat("", "content_filter"), REQUEST, "", "content_filter", []),
        (chat(None), REQUEST, "", "stop", []),
        # Some providers answer a schema with a call of a tool.
        (chat(None, "tool_calls", calls=[CALL]), REQUEST, '{"a": 1}', "stop", []),
        (chat(None, "tool_calls", calls=[CALL]), request(schema=SCHEMA), '{"a": 1}', "stop", []),
        (chat(None, "tool_calls", calls=[CALL]), WITH_TOOLS, "", "tool_calls", [CALL]),
        (chat("At once!", calls=[CALL]), WITH_TOOLS, "At once!", "tool_calls", [CALL]),
        (chat("No need."), WITH_TOOLS, "No need.", "stop", []),
    ],
)
def test_replies_of_all_forms_are_read(server, completer, sent, request_, text, finish, calls):
    server.script = [sent]

    [reply] = ask(completer, request_)

    assert (reply.text, reply.finish_reason) == (text, finish)
    assert [(call.name, call.arguments) for call in reply.calls] == calls


def test_tools_are_sent_and_calls_come_back_as_they_were_written(server, completer):
    calls = [("get_forecast", '{"city": "Oslo"}'), ("get_forecast", '{"city": "Ber'), ("dance", "")]
    server.script = [chat(None, "tool_calls", calls=calls)]

    [reply] = ask(completer, WITH_TOOLS)

    assert server.bodies[0]["tools"] == [TOOL]
    assert [(call.name, call.arguments) for call in reply.calls] == calls


def test_tokens_that_the_server_does_not_count_are_estimated(server):
    completer = HostedCompleter(NAME, api_base=server.url, price=(1, 10))
    calls = [("get_forecast", '{"city": "Oslo"}')]
    server.script = [chat("one two three", usage=None), chat(None, usage=None, calls=calls)]

    [plain] = ask(completer, REQUEST)
    [with_tools] = ask(completer, WITH_TOOLS)

    assert plain.prompt_tokens == completer.count_tokens("Be brief.\n\nSay hello.") == 6
    assert plain.completion_tokens == 3
    assert plain.cost_usd == pytest.approx((6 + 30) / 1e6)
    assert with_tools.prompt_tokens > plain.prompt_tokens + 20
    assert with_tools.completion_tokens == completer.count_tokens('get_forecast{"city": "Oslo"}')


@pytest.mark.parametrize(("price", "expected"), [((2, 8), (2e-6, 8e-6)), (None, (1.5e-7, 6e-7))])
def test_the_configured_price_comes_before_the_listed_one(server, price, expected):
    completer = HostedCompleter("openai/gpt-4o-mini", api_base=server.url, price=price)
    server.script = [chat(usage=(1000, 100))]

    assert completer.price_per_token() == expected
    cost = 1000 * expected[0] + 100 * expected[1]
    assert ask(completer, REQUEST)[0].cost_usd == pytest.approx(cost)


# LiteLLM answers 0 for the second, and knows the third as Anthropic's.
@pytest.mark.parametrize("name", [NAME, "openai/gpt-5-unheard-of", "openai/claude-sonnet-4-5"])
def test_an_unlisted_price_is_unknown_and_not_zero(server, name):
    completer = HostedCompleter(name, api_base=server.url)

    assert completer.price_per_token() is None
    assert ask(completer, REQUEST)[0].cost_usd is None


def test_only_the_key_that_api_key_env_names_is_sent_to_an_api_base(server, completer, monkeypatch):
    ask(completer, REQUEST)
    with_key = HostedCompleter(NAME, api_base=server.url, api_key_env="GATEWAY")
    error = refusal(with_key)
    for key in ("first", "second"):  # it is read at each call
        monkeypatch.setenv("GATEWAY", key)
        ask(with_key, REQUEST)

    assert (error.kind, error.may_pass) == ("key", False)
    assert "Set the environment variable GATEWAY, named by api_key_env" in str(error)
    assert server.keys == ["Bearer none", "Bearer first", "Bearer second"]


def test_a_provider_gets_its_usual_key_at_its_usual_address(server, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    ask(HostedCompleter(NAME), REQUEST)
    monkeypatch.delenv("OPENAI_API_KEY")

    error = refusal(HostedCompleter(NAME))

    assert server.keys == [f"Bearer {KEY}"]
    assert "Set the environment variable OPENAI_API_KEY" in str(error)


def test_no_key_is_printed_or_logged(server, monkeypatch, capfd, caplog):
    # Nothing in its name or shape says that it is a key.
    monkeypatch.setenv("GATEWAY", "a-quiet-one")
    completer = HostedCompleter(NAME, api_base=server.url, api_key_env="GATEWAY")
    server.script = [failure(status, "You sent a-quiet-one") for status in (401, 429, 500)]

    messages = [str(refusal(completer)) for _ in range(3)]

    assert all("You sent [GATEWAY]" in message for message in messages)
    printed = "".join(capfd.readouterr()) + caplog.text
    assert "a-quiet-one" not in printed
    assert KEY not in printed


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("my-model", {}, r"no provider for 'my-model'. Write provider/model, such as openai/"),
        (NAME, {"timeout": 0}, "timeout = 0"),
        (NAME, {"timeout": "60"}, "timeout = '60'"),
    ],
)
def test_an_invalid_name_or_option_is_a_configuration_error(name, options, message):
    with pytest.raises(ConfigurationError, match=message):
        HostedCompleter(name, **options)
