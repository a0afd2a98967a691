"""The request log, metrics and spans of a gateway."""

import asyncio
import json
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest

from pegboard.errors import ConfigurationError
from pegboard.opening import open_board
from pegboard.retrieval.found import FindResult, Trace
from pegboard.serve.access import Client
from pegboard.serve.gateway import Gateway
from pegboard.serve.request_log import RequestLog
from pegboard.serve.settings import GatewaySettings, ServeSettings
from pegboard.serve.tracing import Tracing

ANA = Client("ana")
NOTHING = SimpleNamespace(result=FindResult((), Trace("search"), release="r"), hits=())


def lines_of(file):
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def use(gateway, query="exchange rates of today", session="secret-session-id"):
    async def run():
        found = await gateway.finder.find(ANA, query, 2, session=session, explain=True)
        gateway.observers.called(ANA, session, found.hits[0].tool.id, "ok", 12.34, 56)
        gateway.observers.listed(ANA, session, 2, 100.4, 1_000.4)

    asyncio.run(run())


@pytest.fixture
def gateway(board_uri, tmp_path):
    settings = GatewaySettings(serve=ServeSettings(log=tmp_path / "requests.jsonl"))
    gateway = Gateway.open(settings, open_board(board_uri), board_uri)
    yield gateway
    asyncio.run(gateway.close())


def test_the_log_has_a_line_for_each_request(gateway, tmp_path):
    use(gateway)
    gateway.log.close()

    find, call, listed = lines_of(tmp_path / "requests.jsonl")

    assert (find["event"], find["client"], find["query"]) == (
        "find",
        "ana",
        "exchange rates of today",
    )
    assert find["hits"][0]["tool"] == call["tool"] == "finance/finance/list_rates"
    assert find["hits"][0]["score"] > find["hits"][1]["score"]
    assert (call["outcome"], call["ms"], call["bytes"]) == ("ok", 12.3, 56)
    assert (listed["tokens"], listed["tokens_of_all"]) == (100, 1_000)
    assert find["session"] == call["session"] != ""
    assert find["release"] == gateway.board.release.id


def test_the_log_has_no_secrets_and_no_session_ids_and_is_private(gateway, tmp_path):
    use(gateway, "rates with token sk-abcdef1234567890abcdef12\nand a second line")
    gateway.log.close()

    file = tmp_path / "requests.jsonl"
    text = file.read_text("utf-8")

    assert "sk-abcdef" not in text
    assert "secret-session-id" not in text
    assert len(lines_of(file)) == 3
    assert file.stat().st_mode & 0o077 == 0


def test_the_log_is_rotated_by_size_and_keeps_so_many_files(tmp_path):
    file = tmp_path / "requests.jsonl"
    log = RequestLog(file, max_bytes=2_000, rotated_files=2)
    for number in range(200):
        log.found(ANA, "s", f"request {number}", NOTHING, 1.0)
    log.close()

    files = [tmp_path / f"requests.jsonl{end}" for end in (".2", ".1", "")]
    assert sorted(tmp_path.iterdir()) == sorted(files)
    assert all(part.stat().st_size <= 2_000 for part in files)
    assert all(part.stat().st_mode & 0o077 == 0 for part in files)
    queries = [line["query"] for part in files for line in lines_of(part)]
    assert queries == [f"request {number}" for number in range(200 - len(queries), 200)]


def test_closing_the_log_writes_every_line_that_waits(tmp_path):
    log = RequestLog(tmp_path / "requests.jsonl")
    for number in range(20_000):
        log.found(ANA, "", f"request {number}", NOTHING, 1.0)
    log.close()
    log.close()

    assert log.dropped == 0
    assert [line["query"] for line in lines_of(tmp_path / "requests.jsonl")] == [
        f"request {number}" for number in range(20_000)
    ]


def test_a_full_disk_costs_lines_and_no_request(caplog):
    log = RequestLog(Path("/dev/full"))
    log.found(ANA, "", "tea", NOTHING, 1.0)
    log.found(ANA, "", "coffee", NOTHING, 1.0)
    log.close()

    assert log.dropped == 2
    assert caplog.text.count("cannot be written") == 1


def test_a_line_has_the_words_of_a_request_as_far_as_they_are_characters(tmp_path):
    log = RequestLog(tmp_path / "requests.jsonl")
    log.found(ANA, "", "tea \ud800", NOTHING, 1.0)
    log.close()

    assert lines_of(tmp_path / "requests.jsonl")[0]["query"].startswith("tea")


def test_a_log_in_a_missing_folder_is_an_error_at_the_start(tmp_path):
    with pytest.raises(ConfigurationError, match=r"\[serve\] log"):
        RequestLog(tmp_path / "missing" / "requests.jsonl")


def test_metrics_count_requests_calls_and_tokens(gateway, board_uri):
    use(gateway)
    gateway.observers.refused("credentials", "/mcp")
    health = {"kit/desk": {"state": "failed"}}
    text = gateway.metrics.text(health).decode()

    for line in (
        'pegboard_finds_total{client="ana",outcome="found"} 1.0',
        'pegboard_calls_total{catalog="finance",client="ana",outcome="ok"} 1.0',
        'pegboard_tokens_saved_total{client="ana"} 900.0',
        "pegboard_find_seconds_count 1.0",
        'pegboard_refusals_total{reason="credentials"} 1.0',
        'pegboard_upstream_state{agent="kit/desk",state="failed"} 1.0',
    ):
        assert line in text
    assert "exchange rates" not in text
    hour = gateway.metrics.last_hour()
    assert (len(hour), hour[0]["finds"]) == (60, {})
    assert sum(minute["calls"].get("ok", 0) for minute in hour) == 1


class StubSpan:
    def __init__(self, name="", attributes=(), start_time=0):
        self.name, self.attributes, self.start, self.events = name, dict(attributes), start_time, []

    def add_event(self, name, attributes, timestamp):
        self.events.append((name, attributes))

    def set_attributes(self, attributes):
        self.attributes |= attributes

    def end(self, end_time):
        self.end_time = end_time


class StubTracer:
    def __init__(self):
        self.spans = []

    def start_span(self, name, attributes, start_time):
        self.spans.append(StubSpan(name, attributes, start_time))
        return self.spans[-1]


@pytest.mark.parametrize("texts", [False, True])
def test_spans_have_candidates_scores_and_reasons_and_words_only_if_asked_for(
    gateway, texts, monkeypatch
):
    tracer, call = StubTracer(), StubSpan()
    monkeypatch.setattr("opentelemetry.trace.get_current_span", lambda: call)
    gateway.observers.observers.append(Tracing(texts=texts, tracer=tracer))

    use(gateway, "exchange rates with token sk-abcdef1234567890abcdef12")

    [find] = tracer.spans
    assert find.name == "pegboard.find"
    assert find.start < find.end_time
    names = [name for name, _ in find.events]
    assert names.count("hit") == 2
    [search] = [values for name, values in find.events if name == "search search"]
    hit = next(values for name, values in find.events if name == "hit")
    assert json.loads(hit["why"])["ranker"]["adds"]
    assert search["milliseconds"] > 0
    assert ("pegboard.query" in find.attributes) == texts
    assert "sk-abcdef" not in str(find.attributes)
    events = [attributes for _, attributes in find.events]
    values = [value for own in (find.attributes, *events) for value in own.values()]
    assert all(isinstance(value, str | bool | int | float) for value in values)
    assert call.attributes["pegboard.outcome"] == "ok"


def test_an_ended_gateway_has_written_a_line_for_each_request_that_it_answered(board_uri, tmp_path):
    (tmp_path / "pegboard.toml").write_text(
        f'[board]\nuri = "{board_uri}"\n[serve]\nlog = "requests.jsonl"\n', "utf-8"
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "pegboard", "serve", "-c", str(tmp_path / "pegboard.toml")]
    process = subprocess.Popen([*command, "--port", str(port)], stderr=subprocess.PIPE)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}") as client:
            wait_until_it_answers(client, process)
            for number in range(50):
                query = {"query": f"rates {number}"}
                assert client.post("/v1/find", json=query, timeout=60).status_code == 200
        process.send_signal(signal.SIGTERM)
        process.communicate()
    finally:
        process.kill()

    queries = [line["query"] for line in lines_of(tmp_path / "requests.jsonl")]
    assert queries == [f"rates {number}" for number in range(50)]


def wait_until_it_answers(client, process):
    while True:
        try:
            client.get("/healthz")
        except httpx.TransportError:
            assert process.poll() is None, process.stderr.read().decode()
            time.sleep(0.1)
        else:
            return


def test_a_gateway_over_stdio_writes_its_log_when_it_is_ended(board_uri, tmp_path):
    log = tmp_path / "requests.jsonl"
    (tmp_path / "pegboard.toml").write_text(
        f'[board]\nuri = "{board_uri}"\n[serve]\nlog = "{log}"\n', "utf-8"
    )
    command = [sys.executable, "-m", "pegboard", "serve", "--stdio"]
    process = subprocess.Popen(
        [*command, "-c", str(tmp_path / "pegboard.toml")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    client = {"protocolVersion": "2025-06-18", "capabilities": {}}
    client["clientInfo"] = {"name": "test", "version": "1"}
    call = {"name": "search_tools", "arguments": {"query": "exchange rates"}}
    try:
        for message in (
            {"id": 1, "method": "initialize", "params": client},
            {"method": "notifications/initialized"},
            {"id": 2, "method": "tools/call", "params": call},
        ):
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        process.stdin.flush()
        while json.loads(process.stdout.readline()).get("id") != 2:
            pass
        process.send_signal(signal.SIGTERM)
        process.communicate()
    finally:
        process.kill()

    assert [line["query"] for line in lines_of(log) if line["event"] == "find"] == [
        "exchange rates"
    ]
