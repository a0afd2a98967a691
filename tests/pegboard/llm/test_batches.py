"""Batches against a small provider on loopback that speaks OpenAI's files and batches protocol."""

import asyncio
import json

import pytest
from aiohttp import web

from pegboard.errors import CompletionError, ConfigurationError
from pegboard.llm import ChatReply, ChatRequest, Message
from pegboard.llm.batches import BatchStatus, HostedBatches
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

NAME = "openai/gpt-4o-mini"
KEY = "sk-abcdefgh12345678"
SCHEMA = {"type": "object", "properties": {"topics": {"type": "array"}}}


class Provider:
    """Keeps files and batches in memory. A batch is done when the test says so."""

    def __init__(self):
        self.files, self.names, self.batches, self.chats, self.calls, self.keys = (
            {},
            {},
            [],
            [],
            [],
            [],
        )
        self.failures = []  # what the next calls get instead of an answer
        self.loses = None  # the path of a call that is done, and whose answer is lost
        app = web.Application(middlewares=[self.guard])
        app.router.add_post("/v1/files", self.upload)
        app.router.add_get("/v1/files/{id}/content", self.content)
        app.router.add_post("/v1/batches", self.create)
        app.router.add_get("/v1/batches", self.listing)
        app.router.add_get("/v1/batches/{id}", self.batch)
        app.router.add_post("/v1/chat/completions", self.chat)
        self.runner = web.AppRunner(app)

    async def start(self):
        await self.runner.setup()
        site = web.TCPSite(self.runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self.runner.addresses[0][1]}/v1"

    @web.middleware
    async def guard(self, request, handler):
        self.calls.append(f"{request.method} {request.path}")
        self.keys.append(request.headers.get("Authorization"))
        if self.failures:
            status, headers = self.failures.pop(0)
            return web.json_response(
                {"error": {"message": f"no (you sent {KEY})"}}, status=status, headers=headers
            )
        answer = await handler(request)
        if self.loses == request.path:
            self.loses = None
            request.transport.close()
        return answer

    async def upload(self, request):
        form = await request.post()
        id = f"file-{len(self.files)}"
        self.files[id], self.names[id] = form["file"].file.read(), form["file"].filename
        file = {
            "id": id,
            "object": "file",
            "bytes": 1,
            "created_at": 1,
            "filename": "f",
            "purpose": form["purpose"],
        }
        return web.json_response({**file, "status": "processed"})

    async def create(self, request):
        body = await request.json()
        batch = {
            "id": f"batch-{len(self.batches)}",
            "object": "batch",
            "status": "validating",
            "created_at": 1000,
        }
        self.batches.insert(0, batch | body)
        return web.json_response(self.batches[0])

    async def listing(self, request):
        ids = [batch["id"] for batch in self.batches]
        begin = ids.index(request.query["after"]) + 1 if "after" in request.query else 0
        end = begin + min(int(request.query["limit"]), 2)  # pages of two, so that there are several
        return web.json_response(
            {"object": "list", "data": self.batches[begin:end], "has_more": end < len(ids)}
        )

    async def batch(self, request):
        found = [batch for batch in self.batches if batch["id"] == request.match_info["id"]]
        return (
            web.json_response(found[0])
            if found
            else web.json_response({"error": {"message": "none"}}, status=404)
        )

    async def content(self, request):
        return web.Response(body=self.files[request.match_info["id"]])

    async def chat(self, request):
        self.chats.append(await request.json())
        return web.json_response(completion("hello"))

    def requests(self, batch_id):
        [batch] = [batch for batch in self.batches if batch["id"] == batch_id]
        return [
            json.loads(line)
            for line in self.files[batch["input_file_id"]].decode().split("\n")
            if line
        ]

    def end(self, batch_id, output=None, errors=None, status="completed"):
        [batch] = [batch for batch in self.batches if batch["id"] == batch_id]
        batch |= {"status": status, "completed_at": 1060}
        for field, rows in {"output_file_id": output, "error_file_id": errors}.items():
            if rows is not None:
                batch[field] = f"file-{len(self.files)}"
                lines = [
                    row if isinstance(row, str) else json.dumps(row, ensure_ascii=False)
                    for row in rows
                ]
                self.files[batch[field]] = "\n".join([*lines, ""]).encode()


def completion(text, finish="stop", usage=(1000, 100)):
    choice = {
        "index": 0,
        "finish_reason": finish,
        "message": {"role": "assistant", "content": text},
    }
    body = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    if usage:
        body["usage"] = {
            "prompt_tokens": usage[0],
            "completion_tokens": usage[1],
            "total_tokens": sum(usage),
        }
    return body


def row(custom_id, body, status=200):
    return {
        "id": "r",
        "custom_id": custom_id,
        "response": {"status_code": status, "body": body},
        "error": None,
    }


def unreached(custom_id, code="batch_expired"):
    error = {"code": code, "message": "This request could not be executed in time."}
    return {"id": "r", "custom_id": custom_id, "response": None, "error": error}


def asked(text, **options):
    return ChatRequest(
        messages=(Message("system", "Be brief."), Message("user", text)), max_tokens=50, **options
    )


def play(scenario, name=NAME, **options):
    """Run the scenario with a provider and its batches; returns what it returns."""

    async def run():
        provider = Provider()
        await provider.start()
        batches = HostedBatches(name, **{"api_base": provider.url, "timeout": 20, **options})
        try:
            return await scenario(provider, batches)
        finally:
            await provider.runner.cleanup()

    return asyncio.run(run())


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def test_a_batch_goes_out_as_one_file_under_its_token():
    async def scenario(provider, batches):
        batch = await batches.submit([("a/1", asked("one")), ("a/2", asked("two"))], "token-1")
        return provider, batch, provider.requests(batch)

    provider, batch, [first, second] = play(scenario)

    assert provider.calls == ["POST /v1/files", "POST /v1/batches"]
    assert list(provider.names.values()) == ["token-1.jsonl"]
    assert provider.batches[0]["id"] == batch
    assert provider.batches[0]["metadata"] == {"pegboard": "token-1"}
    assert provider.batches[0]["endpoint"] == first["url"] == "/v1/chat/completions"
    assert provider.batches[0]["completion_window"] == "24h"
    assert [one["custom_id"] for one in (first, second)] == ["a/1", "a/2"]
    assert first["method"] == "POST"
    assert second["body"]["messages"][1] == {"role": "user", "content": "two"}


@pytest.mark.parametrize(
    "name", ["openai/gpt-4o-mini", "openai/gpt-5-mini", "openai/o3-mini", "openai/some-model"]
)
def test_a_request_in_a_batch_is_what_the_completer_would_send(name):
    texts = ['say "hello"\n\\', "鬱 \u2028 🙂", "", "0-1-"]
    requests = [asked(text, temperature=0.5, schema=SCHEMA, schema_name="topics") for text in texts]
    requests += [asked("plain"), ChatRequest(messages=(Message("user", "alone"),), max_tokens=7)]

    async def scenario(provider, batches):
        batch = await batches.submit(
            [(str(at), request) for at, request in enumerate(requests)], "token"
        )
        completer = HostedCompleter(name, api_base=provider.url)
        for request in requests:
            await completer.complete(request)
        await completer.aclose()
        return provider, batch

    provider, batch = play(scenario, name)

    assert [one["body"] for one in provider.requests(batch)] == provider.chats
    assert len(provider.chats) == len(requests)


def test_a_batch_without_requests_or_with_the_same_id_twice_is_not_sent():
    async def scenario(provider, batches):
        with pytest.raises(CompletionError, match="each with an id of its own"):
            await batches.submit([("a", asked("one")), ("a", asked("two"))], "token")
        with pytest.raises(CompletionError, match="needs requests"):
            await batches.submit([], "token")
        return provider.calls

    assert play(scenario) == []


def test_text_that_no_request_can_carry_is_refused_before_anything_is_sent():
    async def scenario(provider, batches):
        with pytest.raises(
            CompletionError, match=r"text of request 'b' is no valid Unicode"
        ) as caught:
            await batches.submit([("a", asked("one")), ("b", asked("\ud800"))], "token")
        return provider.calls, caught.value

    calls, error = play(scenario)

    assert calls == []
    assert (error.kind, error.may_pass) == ("request", False)


def test_a_batch_is_found_by_its_token_on_whichever_page_it_is():
    async def scenario(provider, batches):
        assert await batches.find("token") is None
        ids = [
            await batches.submit([("a", asked("one"))], f"token-{number}") for number in range(5)
        ]
        provider.batches[1].pop("metadata")  # somebody else's
        return ids, [await batches.find(f"token-{number}") for number in (0, 2, 4, 9)]

    ids, found = play(scenario)

    assert found == [ids[0], ids[2], ids[4], None]


def test_a_batch_whose_id_got_lost_is_found_again():
    async def scenario(provider, batches):
        provider.loses = "/v1/batches"
        with pytest.raises(CompletionError) as caught:
            await batches.submit([("a", asked("one"))], "token")
        return caught.value, await batches.find("token"), provider.batches

    error, found, [batch] = play(scenario)

    assert error.may_pass
    assert found == batch["id"]


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ("validating", "running"),
        ("in_progress", "running"),
        ("finalizing", "running"),
        ("cancelling", "running"),
        ("completed", "ended"),
        ("expired", "ended"),
        ("cancelled", "ended"),
        ("failed", "failed"),
    ],
)
def test_the_status_says_how_far_a_batch_is(status, state):
    async def scenario(provider, batches):
        batch = await batches.submit([("a", asked("one"))], "token")
        provider.batches[0] |= {
            "status": status,
            "request_counts": {"completed": 3, "failed": 1, "total": 9},
        }
        return await batches.status(batch)

    assert play(scenario) == BatchStatus(state, completed=3, failed=1, total=9, detail=status)


def test_a_batch_that_was_refused_says_why():
    async def scenario(provider, batches):
        batch = await batches.submit([("a", asked("one"))], "token")
        problems = [{"code": "x", "message": f"Line 1 is wrong, {KEY}", "line": 1, "param": None}]
        provider.batches[0] |= {"status": "failed", "errors": {"object": "list", "data": problems}}
        return await batches.status(batch), await batches.results(batch)

    status, results = play(scenario)

    assert status == BatchStatus("failed", 0, 0, 0, "failed: Line 1 is wrong, [OPENAI_API_KEY]")
    assert results == []


def results_of(output, errors=None, status="completed", **options):
    """The results of a batch of the requests a to d that ended so."""

    async def scenario(provider, batches):
        batch = await batches.submit([(one, asked(one)) for one in "abcd"], "token")
        provider.end(batch, output, errors, status)
        return dict(await batches.results(batch))

    return play(scenario, **options)


def test_results_come_back_by_their_ids_whatever_their_order():
    results = results_of([row("c", completion("see")), row("a", completion("ay", "length"))], [])

    assert {custom_id: (one.text, one.finish_reason) for custom_id, one in results.items()} == {
        "c": ("see", "stop"),
        "a": ("ay", "length"),
    }
    assert results["a"] == ChatReply(
        text="ay",
        finish_reason="length",
        model=NAME,
        prompt_tokens=1000,
        completion_tokens=100,
        cost_usd=pytest.approx(1000 * 7.5e-8 + 100 * 3e-7),  # the batch price that is listed: half
        seconds=60,
    )


def test_a_request_that_was_refused_has_its_error_for_a_result():
    refusals = [
        row("b", {"error": {"message": f"maximum context length, {KEY}", "code": None}}, 400),
        row("c", {"error": {"message": "busy"}}, 429),
        row("d", {"error": {"message": "down"}}, 500),
    ]
    results = results_of([row("a", completion("ay"))], refusals)

    assert results.pop("a").text == "ay"
    assert {name: (one.kind, one.may_pass, one.status) for name, one in results.items()} == {
        "b": ("length", False, 400),
        "c": ("rate", True, 429),
        "d": ("server", True, 500),
    }
    assert KEY not in str(results["b"])


@pytest.mark.parametrize("status", ["expired", "cancelled"])
def test_a_batch_that_ended_early_gives_what_it_finished(status):
    # A reply wins over an error of the same request.
    errors = [unreached("a"), unreached("b")]
    results = results_of([row("a", completion("ay"))], errors, status)

    assert results["a"].text == "ay"
    assert (results["b"].kind, results["b"].may_pass) == ("batch", True)
    assert "could not be executed in time" in str(results["b"])


@pytest.mark.parametrize(
    "body", [{}, {"choices": []}, {"choices": "none"}, {"choices": [{"index": 0}]}, None]
)
def test_a_malformed_reply_in_a_batch_is_an_error_that_may_pass(body):
    result = results_of([row("a", body)])["a"]

    assert isinstance(result, CompletionError)
    assert (result.kind, result.may_pass) == ("reply", True)


def test_an_unreadable_line_costs_itself_and_is_logged(caplog):
    broken = '{"custom_id": "b", "resp'
    results = results_of([row("a", completion("one\u2028line")), broken, "[]", "7"])

    assert {name: one.text for name, one in results.items()} == {"a": "one\u2028line"}
    assert caplog.text.count("is not readable") == 3


def test_a_batch_costs_half_of_the_configured_price_and_nothing_known_without_counts():
    replies = [row("a", completion("ay")), row("b", completion("one two three", usage=None))]
    results = results_of(replies, price=(2, 8))

    assert results["a"].cost_usd == pytest.approx((1000 * 2 + 100 * 8) / 1e6 / 2)
    uncounted = results["b"]
    assert (uncounted.prompt_tokens, uncounted.completion_tokens, uncounted.cost_usd) == (
        0,
        3,
        None,
    )


def test_a_batch_that_still_runs_has_no_results():
    async def scenario(provider, batches):
        batch = await batches.submit([("a", asked("one"))], "token")
        with pytest.raises(
            CompletionError, match=rf"no results of batch {batch} yet \(validating\)"
        ) as caught:
            await batches.results(batch)
        return caught.value

    error = play(scenario)

    assert (error.kind, error.may_pass) == ("batch", True)


CALLS = {
    "submit": lambda batches: batches.submit([("a", asked("one"))], "token"),
    "find": lambda batches: batches.find("token"),
    "status": lambda batches: batches.status("batch-0"),
    "results": lambda batches: batches.results("batch-0"),
}


@pytest.mark.parametrize(
    ("status", "kind", "passes"),
    [
        (400, "request", False),
        (401, "key", False),
        (404, "model", False),
        (429, "rate", True),
        (500, "server", True),
        (503, "server", True),
        (529, "server", True),
    ],
)
@pytest.mark.parametrize("call", CALLS)
def test_a_refused_call_is_told_apart_and_made_once(call, status, kind, passes):
    async def scenario(provider, batches):
        provider.failures = [(status, {"Retry-After": "7"})] * 9
        with pytest.raises(CompletionError) as caught:
            await CALLS[call](batches)
        return caught.value, provider.calls

    error, calls = play(scenario)

    assert (error.kind, error.may_pass, error.status, error.retry_after) == (
        kind,
        passes,
        status,
        7,
    )
    assert KEY not in str(error)
    assert error.__cause__ is error.__context__ is None
    assert len(calls) == 1


@pytest.mark.parametrize("call", CALLS)
def test_a_provider_that_is_not_there_may_come_back(call):
    async def scenario(provider, batches):
        await provider.runner.cleanup()
        with pytest.raises(CompletionError) as caught:
            await CALLS[call](batches)
        return caught.value

    error = play(scenario)

    assert (error.kind, error.may_pass) == ("server", True)


def test_only_the_key_that_api_key_env_names_goes_to_an_address_of_ones_own(monkeypatch):
    async def scenario(provider, batches):
        batch = await batches.submit([("a", asked("one"))], "token")
        provider.end(batch, [row("a", completion("ay"))])
        await batches.find("token")
        await batches.status(batch)
        await batches.results(batch)
        return set(provider.keys)

    monkeypatch.setenv("GATEWAY", "gateway-key")

    assert play(scenario) == {"Bearer none"}
    assert play(scenario, api_key_env="GATEWAY") == {"Bearer gateway-key"}


def test_a_provider_whose_batches_are_not_known_is_a_wrong_configuration():
    with pytest.raises(ConfigurationError, match="for OpenAI's API only, and this is anthropic"):
        HostedBatches("anthropic/claude-sonnet-4-5")
