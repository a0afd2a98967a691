"""The request log, metrics and spans of a gateway."""

import asyncio
import json
from pathlib import Path

import pytest

from pegboard.errors import ConfigurationError
from pegboard.opening import open_board
from pegboard.serve.access.clients import Client
from pegboard.serve.gateway import Gateway
from pegboard.serve.metrics import Metrics
from pegboard.serve.settings import GatewaySettings

ANA = Client(name="ana")


def lines_of(file):
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


class StubSpan:
    """Stores its attributes."""

    def __init__(self):
        self.attributes = {}

    def set_attributes(self, attributes):
        self.attributes |= attributes


@pytest.fixture
def use(board_uri, tmp_path):
    """A function: metrics that recorded a search, a call, a list and a refusal, and the lines of
    their log.
    """

    def used(query="exchange rates of today"):
        file = tmp_path / "requests.jsonl"
        metrics = Metrics(file)

        async def run():
            gateway = Gateway(GatewaySettings(), open_board(board_uri))
            gateway.finder.metrics = metrics
            search = await gateway.finder.find(ANA, query, 2, session="secret-session-id")
            tool = search.result.hits[0].tool.id
            metrics.record_call(ANA, "secret-session-id", tool, "ok", 12.34, 56)
            metrics.record_list(ANA, "", 2, 100.4, 1_000.4)
            metrics.record_refusal("credentials", "/mcp")
            await gateway.close()

        asyncio.run(run())
        metrics.close()
        return metrics, lines_of(file)

    return used


def test_the_log_has_a_line_for_each_request_without_secrets_and_is_private(use, tmp_path):
    _, (find, call, listed, refused) = use("exchange rates sk-abcdef1234567890abcdef12\nof today")

    assert (find["event"], find["client"]) == ("find", "ana")
    assert find["query"].startswith("exchange rates")
    assert find["hits"][0]["tool"] == call["tool"] == "finance/finance/list_rates"
    assert find["hits"][0]["score"] > find["hits"][1]["score"]
    assert (call["outcome"], call["ms"], call["bytes"]) == ("ok", 12.3, 56)
    assert (listed["tokens"], listed["tokens_of_all"]) == (100, 1_000)
    assert find["session"] == call["session"] != ""
    assert refused["reason"] == "credentials"
    file = tmp_path / "requests.jsonl"
    assert "sk-abcdef" not in file.read_text("utf-8")
    assert "secret-session-id" not in file.read_text("utf-8")
    assert file.stat().st_mode & 0o077 == 0


def test_the_log_is_rotated_by_size_and_keeps_two_old_files(tmp_path, monkeypatch):
    monkeypatch.setattr("pegboard.serve.metrics.MAX_BYTES", 2_000)
    monkeypatch.setattr("pegboard.serve.metrics.ROTATED_FILES", 2)
    file = tmp_path / "requests.jsonl"
    metrics = Metrics(file)
    for number in range(200):
        metrics.record_refusal("credentials", f"request {number}")
    metrics.close()

    files = [tmp_path / f"requests.jsonl{end}" for end in (".2", ".1", "")]
    assert sorted(tmp_path.iterdir()) == sorted(files)
    assert all(part.stat().st_size <= 2_000 for part in files)
    assert all(part.stat().st_mode & 0o077 == 0 for part in files)
    details = [line["detail"] for part in files for line in lines_of(part)]
    assert details == [f"request {number}" for number in range(200 - len(details), 200)]


def test_a_full_disk_and_lone_surrogates_do_not_fail_requests(tmp_path):
    for file in (Path("/dev/full"), tmp_path / "requests.jsonl"):
        metrics = Metrics(file)
        metrics.record_refusal("credentials", "tea \ud800")
        metrics.record_refusal("credentials", "coffee")
        metrics.close()

    assert len(lines_of(tmp_path / "requests.jsonl")) == 2


def test_a_log_in_a_missing_folder_is_a_configuration_error(tmp_path):
    with pytest.raises(ConfigurationError, match=r"\[serve\] log"):
        Metrics(tmp_path / "missing" / "requests.jsonl")


def test_metrics_and_spans_have_counts_and_tools_but_not_the_query(use, monkeypatch):
    span = StubSpan()
    monkeypatch.setattr("opentelemetry.trace.get_current_span", lambda: span)
    metrics, _ = use("exchange rates of today")

    text = metrics.as_text({"kit/desk": {"state": "failed"}}).decode()

    for line in (
        'pegboard_find_seconds_count{client="ana",outcome="found"} 1.0',
        'pegboard_call_seconds_count{catalog="finance",client="ana",outcome="ok"} 1.0',
        'pegboard_tokens_saved_total{client="ana"} 900.0',
        'pegboard_refusals_total{reason="credentials"} 1.0',
        'pegboard_upstream_state{agent="kit/desk",state="failed"} 1.0',
    ):
        assert line in text
    assert span.attributes["pegboard.tools"][0] == "finance/finance/list_rates"
    assert span.attributes["pegboard.client"] == "ana"
    assert span.attributes["pegboard.outcome"] == "ok"
    assert "exchange" not in f"{text} {span.attributes}"
