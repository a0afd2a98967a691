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


@pytest.mark.parametrize("message", ["x" * 5_001, "x" * 3_000_000])
def test_a_reply_longer_than_its_limit_allows_is_cut_off(server, completer, message):
    server.script = [chat(message)]

    (reply,) = ask(completer, REQUEST)

    assert (len(reply.text), reply.finish_reason) == (5_000, "length")


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


def takes_completion_tokens(body):
    """Answer as a model that refuses `max_tokens`."""
    if "max_tokens" in body:
        return failure(
            400,
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
            "'max_completion_tokens' instead.",
            "unsupported_parameter",
        )
    return chat(str(body["max_completion_tokens"]))


@pytest.mark.parametrize("provider", ["openai", "hosted_vllm"])
def test_a_model_that_refuses_max_tokens_is_asked_with_the_other_limit_from_then_on(
    server, provider
):
    server.default = takes_completion_tokens
    options = {"extra_body": {"top_k": 3}}
    completer = HostedCompleter(f"{provider}/unheard-of", api_base=server.url, options=options)

    concurrent_replies = ask(completer, REQUEST, REQUEST)
    later_replies = ask(completer, REQUEST)

    assert [reply.text for reply in (*concurrent_replies, *later_replies)] == ["50"] * 3
    limits = [[name for name in body if name.startswith("max_")] for body in server.bodies]
    assert limits.count(["max_tokens"]) <= 2  # one for each of the first two, which were concurrent
    assert limits[-1] == ["max_completion_tokens"]
    assert server.bodies[-1]["top_k"] == 3


def test_a_model_that_refuses_both_limits_is_asked_once_with_each(server, completer):
    server.default = lambda _: failure(400, "Use 'max_completion_tokens' instead")

    error = refusal(completer)

    assert "check which limit" in str(error)
    assert len(server.bodies) == 2


def test_options_are_sent_along_with_the_values_of_their_variables(server, monkeypatch):
    monkeypatch.setenv("ROUTE_KEY", "quiet-route-9")
    options = {
        "reasoning_effort": "low",
        "temperature": 0.9,
        "extra_body": {"chat_template_kwargs": {"enable_thinking": False}},
        "extra_headers": {"X-Route-Key": "${ROUTE_KEY}"},
    }
    headers = []

    def answer(handler):
        headers.append(handler.headers["X-Route-Key"])
        handler.answer(*failure(400, "You sent quiet-route-9"))

    server.default = lambda _: answer
    name = "hosted_vllm/m"

    error = refusal(HostedCompleter(name, api_base=server.url, options=options))

    [body] = server.bodies
    assert (body["reasoning_effort"], body["temperature"]) == ("low", 0.9)
    assert body["chat_template_kwargs"] == {"enable_thinking": False}
    assert headers == ["quiet-route-9"]
    assert "quiet-route-9" not in str(error)


def test_an_option_whose_variable_is_not_set_is_named_before_anything_is_sent(server):
    options = {"extra_headers": {"X-Key": "${NO_SUCH_KEY}"}}

    error = refusal(HostedCompleter(NAME, api_base=server.url, options=options))

    assert "options: the environment variable NO_SUCH_KEY is not set. Set it" in str(error)
    assert server.bodies == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_tokens": 5}, "max_tokens: not an option; set max_reply_tokens"),
        ({"extra_body": {"max_completion_tokens": 5}}, "max_completion_tokens: not an option"),
        ({"api_key": "x", "model": "y"}, "has 2 problems"),
        (["reasoning_effort"], "expected a table"),
    ],
)
def test_options_that_pegboard_sets_itself_are_refused(options, message):
    with pytest.raises(ConfigurationError, match=message):
        HostedCompleter(NAME, options=options)


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
