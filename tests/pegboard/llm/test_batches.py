"""Batches against a small provider on loopback that speaks OpenAI's files and batches protocol."""

import asyncio
import json

import pytest
from aiohttp import web

from pegboard.errors import CompletionError, ConfigurationError
from pegboard.llm import ChatReply, ChatRequest, Message
from pegboard.llm.batches import BatchStatus, HostedBatches
from pegboard.llm.hosted import HostedCompleter
from tests.openai_server import KEY, LITELLM_WARNINGS, completion

pytestmark = [*LITELLM_WARNINGS, pytest.mark.usefixtures("openai_key")]

NAME = "openai/gpt-4o-mini"
SCHEMA = {"type": "object", "properties": {"topics": {"type": "array"}}}


class Provider:
    """Holds files and batches in memory. A batch ends when the test says so.

    Attributes:
        failures: what the next calls get instead of an answer.
        loses: the path of a call that is carried out, and whose answer is lost.
    """

    def __init__(self):
        self.files, self.names = {}, []
        self.batches, self.chats, self.calls, self.keys = [], [], [], []
        self.failures, self.loses = [], None
        app = web.Application(middlewares=[self.guard])
        app.router.add_post("/v1/files", self.upload)
        app.router.add_get("/v1/files/{id}/content", self.content)
        app.router.add_post("/v1/batches", self.create)
        app.router.add_get("/v1/batches", self.listing)
        app.router.add_get("/v1/batches/{id}", self.retrieve)
        app.router.add_post("/v1/chat/completions", self.chat)
        self.runner = web.AppRunner(app)

    async def start(self):
        await self.runner.setup()
        await web.TCPSite(self.runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self.runner.addresses[0][1]}/v1"

    @web.middleware
    async def guard(self, request, handler):
        self.calls.append(f"{request.method} {request.path}")
        self.keys.append(request.headers.get("Authorization"))
        if self.failures:
            status, headers = self.failures.pop(0)
            error = {"error": {"message": f"no (you sent {KEY})"}}
            return web.json_response(error, status=status, headers=headers)
        answer = await handler(request)
        if self.loses == request.path:
            self.loses = None
            request.transport.close()
        return answer

    async def upload(self, request):
        form = await request.post()
        file = {"id": self.store(form["file"].file.read()), "object": "file", "bytes": 1}
        self.names.append(form["file"].filename)
        file |= {"created_at": 1, "filename": "f", "purpose": form["purpose"]}
        return web.json_response({**file, "status": "processed"})

    def store(self, content):
        name = f"file-{len(self.files)}"
        self.files[name] = content
        return name

    async def create(self, request):
        batch = {"id": f"batch-{len(self.batches)}", "object": "batch", "created_at": 1000}
        self.batches.insert(0, batch | {"status": "validating"} | await request.json())
        return web.json_response(self.batches[0])

    async def listing(self, request):
        ids = [batch["id"] for batch in self.batches]
        begin = ids.index(request.query["after"]) + 1 if "after" in request.query else 0
        page = self.batches[begin : begin + 2]  # pages of two, so that there are several
        more = begin + len(page) < len(ids)
        return web.json_response({"object": "list", "data": page, "has_more": more})

    async def retrieve(self, request):
        for batch in self.batches:
            if batch["id"] == request.match_info["id"]:
                return web.json_response(batch)
        return web.json_response({"error": {"message": "none"}}, status=404)

    async def content(self, request):
        return web.Response(body=self.files[request.match_info["id"]])

    async def chat(self, request):
        self.chats.append(await request.json())
        return web.json_response(completion("hello"))

    def sent(self):
        """The requests of the last batch."""
        lines = self.files[self.batches[0]["input_file_id"]].decode().split("\n")
        return [json.loads(line) for line in lines if line]

    def end(self, output=None, errors=None, status="completed"):
        """End the last batch; rows are values or raw lines."""
        self.batches[0] |= {"status": status, "completed_at": 1060}
        for field, rows in {"output_file_id": output, "error_file_id": errors}.items():
            if rows is not None:
                lines = [
                    row if isinstance(row, str) else json.dumps(row, ensure_ascii=False)
                    for row in rows
                ]
                self.batches[0][field] = self.store("\n".join([*lines, ""]).encode())


def row(custom_id, body, status=200):
    response = {"status_code": status, "body": body}
    return {"id": "r", "custom_id": custom_id, "response": response, "error": None}


def unreached(custom_id):
    error = {"code": "batch_expired", "message": "This request could not be executed in time."}
    return {"id": "r", "custom_id": custom_id, "response": None, "error": error}


def request(text, **options):
    messages = (Message("system", "Be brief."), Message("user", text))
    return ChatRequest(messages=messages, max_tokens=50, **options)


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


async def submit(batches, token="token", ids=("a",)):
    return await batches.submit([(id, request(id)) for id in ids], token)


def results_of(output, errors=None, status="completed", **options):
    """The results of a batch of the requests a to d that ended so."""

    async def scenario(provider, batches):
        batch = await submit(batches, ids="abcd")
        provider.end(output, errors, status)
        return dict(await batches.results(batch))

    return play(scenario, **options)


def test_a_batch_is_one_file_under_its_token():
    async def scenario(provider, batches):
        return provider, await submit(batches, "token-1", ("a/1", "a/2"))

    provider, batch = play(scenario)

    assert provider.calls == ["POST /v1/files", "POST /v1/batches"]
    assert provider.names == ["token-1.jsonl"]
    [sent] = provider.batches
    assert (sent["id"], sent["metadata"]) == (batch, {"pegboard": "token-1"})
    assert (sent["endpoint"], sent["completion_window"]) == ("/v1/chat/completions", "24h")
    lines = provider.sent()
    assert [line["custom_id"] for line in lines] == ["a/1", "a/2"]
    assert {(line["method"], line["url"]) for line in lines} == {("POST", sent["endpoint"])}
    assert lines[1]["body"]["messages"][1] == {"role": "user", "content": "a/2"}


@pytest.mark.parametrize(
    "name", ["openai/gpt-4o-mini", "openai/gpt-5-mini", "openai/o3-mini", "openai/some-model"]
)
def test_a_request_in_a_batch_is_what_the_completer_would_send(name):
    texts = ['say "hello"\n\\', "鬱 \u2028 🙂", "", "0-1-"]
    options = {"temperature": 0.5, "schema": SCHEMA, "schema_name": "topics"}
    requests = [request(text, **options) for text in texts]
    requests += [request("plain"), ChatRequest(messages=(Message("user", "alone"),), max_tokens=7)]

    async def scenario(provider, batches):
        await batches.submit([(str(at), each) for at, each in enumerate(requests)], "token")
        completer = HostedCompleter(name, api_base=provider.url)
        for each in requests:
            await completer.complete(each)
        await completer.aclose()
        return provider

    provider = play(scenario, name)

    assert [line["body"] for line in provider.sent()] == provider.chats
    assert len(provider.chats) == len(requests)


@pytest.mark.parametrize(
    ("requests", "problem"),
    [
        ([("a", request("one")), ("a", request("two"))], "each with an id of its own"),
        ([], "needs requests"),
        (
            [("a", request("one")), ("b", request("\ud800"))],
            "text of request 'b' is no valid Unicode",
        ),
    ],
)
def test_an_invalid_batch_is_not_sent(requests, problem):
    async def scenario(provider, batches):
        with pytest.raises(CompletionError, match=problem) as caught:
            await batches.submit(requests, "token")
        return provider.calls, caught.value

    calls, error = play(scenario)

    assert calls == []
    assert (error.kind, error.may_pass) == ("request", False)


def test_a_batch_is_found_by_its_token_on_any_page():
    async def scenario(provider, batches):
        assert await batches.find("token") is None
        ids = [await submit(batches, f"token-{number}") for number in range(5)]
        provider.batches[1].pop("metadata")  # somebody else's
        return ids, [await batches.find(f"token-{number}") for number in (0, 2, 4, 9)]

    ids, batches = play(scenario)

    assert batches == [ids[0], ids[2], ids[4], None]


def test_a_batch_whose_id_was_lost_is_found_again():
    async def scenario(provider, batches):
        provider.loses = "/v1/batches"
        with pytest.raises(CompletionError) as caught:
            await submit(batches)
        return caught.value, await batches.find("token"), provider.batches

    error, batch_id, [batch] = play(scenario)

    assert error.may_pass
    assert batch_id == batch["id"]


@pytest.mark.parametrize(
    ("state", "statuses"),
    [
        ("running", ["validating", "in_progress", "finalizing", "cancelling"]),
        ("ended", ["completed", "expired", "cancelled"]),
        ("failed", ["failed"]),
    ],
)
def test_the_status_has_the_state_and_counts_of_a_batch(state, statuses):
    async def scenario(provider, batches):
        batch = await submit(batches)
        counts = {"completed": 3, "failed": 1, "total": 9}
        seen = []
        for status in statuses:
            provider.batches[0] |= {"status": status, "request_counts": counts}
            seen.append(await batches.status(batch))
        return seen

    assert play(scenario) == [
        BatchStatus(state, completed=3, failed=1, total=9, detail=status) for status in statuses
    ]


def test_a_refused_batch_has_its_problems_and_no_results():
    async def scenario(provider, batches):
        batch = await submit(batches)
        problems = [{"code": "x", "message": f"Line 1 is wrong, {KEY}", "line": 1, "param": None}]
        provider.batches[0] |= {"status": "failed", "errors": {"object": "list", "data": problems}}
        return await batches.status(batch), await batches.results(batch)

    status, results = play(scenario)

    assert status == BatchStatus("failed", 0, 0, 0, "failed: Line 1 is wrong, [OPENAI_API_KEY]")
    assert results == []


def test_results_come_back_by_their_ids_in_any_order():
    results = results_of([row("c", completion("see")), row("a", completion("ay", "length"))], [])

    assert sorted(results) == ["a", "c"]
    assert results["c"].text == "see"
    assert results["a"] == ChatReply(
        text="ay",
        finish_reason="length",
        model=NAME,
        prompt_tokens=1000,
        completion_tokens=100,
        cost_usd=pytest.approx(1000 * 7.5e-8 + 100 * 3e-7),  # the batch price that is listed: half
        seconds=60,
    )


def test_a_refused_request_has_its_error_as_result():
    refusals = [
        row("b", {"error": {"message": f"maximum context length, {KEY}", "code": None}}, 400),
        row("c", {"error": {"message": "busy"}}, 429),
        row("d", {"error": {"message": "down"}}, 500),
    ]
    results = results_of([row("a", completion("ay"))], refusals)

    assert results.pop("a").text == "ay"
    assert {
        name: (error.kind, error.may_pass, error.status) for name, error in results.items()
    } == {
        "b": ("length", False, 400),
        "c": ("rate", True, 429),
        "d": ("server", True, 500),
    }
    assert KEY not in str(results["b"])


@pytest.mark.parametrize("status", ["expired", "cancelled"])
def test_a_batch_that_ended_early_has_the_replies_so_far(status):
    # A reply wins over an error of the same request.
    results = results_of([row("a", completion("ay"))], [unreached("a"), unreached("b")], status)

    assert results["a"].text == "ay"
    assert (results["b"].kind, results["b"].may_pass) == ("batch", True)
    assert "could not be executed in time" in str(results["b"])


def test_a_malformed_reply_in_a_batch_is_an_error_that_may_pass():
    bodies = [{}, {"choices": "none"}, {"choices": [{"index": 0}]}, None]
    results = results_of([row(name, body) for name, body in zip("abcd", bodies, strict=True)])

    assert {name: (error.kind, error.may_pass) for name, error in results.items()} == dict.fromkeys(
        "abcd", ("reply", True)
    )


def test_an_unreadable_line_is_skipped_and_logged(caplog):
    broken = '{"custom_id": "b", "resp'
    results = results_of([row("a", completion("one\u2028line")), broken, "[]", "7"])

    assert {name: reply.text for name, reply in results.items()} == {"a": "one\u2028line"}
    assert caplog.text.count("is not readable") == 3


def test_a_batch_costs_half_the_configured_price_if_the_server_counted_its_tokens():
    replies = [row("a", completion("ay")), row("b", completion("one two three", usage=None))]
    results = results_of(replies, price=(2, 8))

    assert results["a"].cost_usd == pytest.approx((1000 * 2 + 100 * 8) / 1e6 / 2)
    uncounted = results["b"]
    assert (uncounted.prompt_tokens, uncounted.completion_tokens) == (0, 3)
    assert uncounted.cost_usd is None


def test_a_batch_that_still_runs_has_no_results():
    async def scenario(provider, batches):
        batch = await submit(batches)
        with pytest.raises(
            CompletionError, match=rf"of batch {batch} yet \(validating\)"
        ) as caught:
            await batches.results(batch)
        return caught.value

    error = play(scenario)

    assert (error.kind, error.may_pass) == ("batch", True)


CALLS = {
    "submit": submit,
    "find": lambda batches: batches.find("token"),
    "status": lambda batches: batches.status("batch-0"),
    "results": lambda batches: batches.results("batch-0"),
}


@pytest.mark.parametrize(
    ("status", "kind", "passes"),
    [(400, "request", False), (401, "key", False), (429, "rate", True), (529, "server", True)],
)
@pytest.mark.parametrize("call", CALLS)
def test_a_failed_call_is_made_once_and_classified(call, status, kind, passes):
    async def scenario(provider, batches):
        provider.failures = [(status, {"Retry-After": "7"})] * 9
        with pytest.raises(CompletionError) as caught:
            await CALLS[call](batches)
        return caught.value, provider.calls

    error, calls = play(scenario)

    assert (error.kind, error.may_pass) == (kind, passes)
    assert (error.status, error.retry_after) == (status, 7)
    assert KEY not in str(error)
    assert error.__cause__ is error.__context__ is None
    assert len(calls) == 1


def test_a_provider_that_is_down_may_come_back():
    async def scenario(provider, batches):
        await provider.runner.cleanup()
        with pytest.raises(CompletionError) as caught:
            await submit(batches)
        return caught.value

    error = play(scenario)

    assert (error.kind, error.may_pass) == ("server", True)


def test_only_the_key_that_api_key_env_names_is_sent_to_an_api_base(monkeypatch):
    async def scenario(provider, batches):
        batch = await submit(batches)
        provider.end([row("a", completion("ay"))])
        await batches.find("token")
        await batches.status(batch)
        await batches.results(batch)
        return set(provider.keys)

    monkeypatch.setenv("GATEWAY", "gateway-key")

    assert play(scenario) == {"Bearer none"}
    assert play(scenario, api_key_env="GATEWAY") == {"Bearer gateway-key"}


def test_a_provider_without_batches_is_a_configuration_error():
    with pytest.raises(ConfigurationError, match="for OpenAI's API only, and this is anthropic"):
        HostedBatches("anthropic/claude-sonnet-4-5")
