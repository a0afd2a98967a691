"""One retry policy for all sources: which failures are retried, how often, and after what wait."""

import json
import sys
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from catalogs.shared.listing import ListingBuilder, SourceKind, SourceOptions
from catalogs.shared.reading import SETTLE_SECONDS, list_source
from catalogs.shared.retries import Retries
from pegboard.errors import SourceError
from tests.catalogs.flaky_server import CUT, SILENT, flaky_server, mcp_answer, refused_url
from tests.catalogs.mcp_servers import raw

OPENAPI = {
    "openapi": "3.1.0",
    "info": {"title": "Shop", "version": "1"},
    "paths": {"/a": {"get": {"operationId": "good", "responses": {"200": {"description": "ok"}}}}},
}
CARD = {"name": "shop", "description": "Sells.", "skills": [{"id": "good", "name": "Good"}]}
REGISTRY = {
    "servers": [
        {"server": {"name": "shop", "tools": [{"name": "good", "inputSchema": {"type": "object"}}]}}
    ]
}
KINDS = {
    "openapi": (lambda *_: OPENAPI, lambda url: {"url": f"{url}/api.json?key=hunter2-hunter2"}),
    "a2a": (lambda *_: CARD, lambda url: {"urls": [f"{url}/card.json"]}),
    "registry": (lambda *_: REGISTRY, lambda url: {"url": url}),
    "mcp": (mcp_answer, lambda url: {"servers": {"shop": {"url": f"{url}/mcp"}}, "timeout": 600}),
}
DAY = 86_400


@pytest.fixture
def attempt(listed):
    """A function that lists a source of a kind whose server fails at first.

    It returns the listing, or the error's text; the requests; the waits; and the reports.
    """

    def outcome_of(kind, failures, **options):
        answer, options_of = KINDS[kind]
        waits = []
        reports = []
        with flaky_server(failures, answer) as server:
            try:
                outcome = listed(
                    kind, waits=waits, reports=reports, **options_of(server.url), **options
                )
            except SourceError as error:
                return str(error), server.requests, waits, reports
        if outcome.failures:
            outcome = outcome.failures[0].why
        return outcome, server.requests, waits, reports

    return outcome_of


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_that_is_unavailable_twice_is_listed_at_the_third_attempt(attempt, kind):
    listing, requests, waits, reports = attempt(kind, [503, 503])

    assert [tool.name for tool in listing.tools] == ["good"]
    assert requests[:3] == [requests[0]] * 3
    assert (len(waits), waits[0] <= 0.5, waits[1] <= 1) == (2, True, True)
    assert ["attempt 1 of 4" in report for report in reports] == [True, False]
    assert all("503" in report and "hunter2" not in report for report in reports)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("status", [408, 429, 500, 502, 504])
def test_transient_statuses_are_retried(attempt, kind, status):
    listing, _, waits, _ = attempt(kind, [status])

    assert [tool.name for tool in listing.tools] == ["good"]
    assert len(waits) == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("status", [400, 401, 403, 404, 501])
def test_permanent_statuses_are_not_retried(attempt, kind, status):
    why, requests, waits, _ = attempt(kind, [status] * 9)

    assert str(status) in why
    assert waits == []
    if kind != "mcp":  # an MCP client tries both handshakes
        assert len(requests) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_the_wait_that_a_server_asks_for_is_spent(attempt, kind):
    listing, _, waits, _ = attempt(kind, [(429, {"Retry-After": "2"})])

    assert [tool.name for tool in listing.tools] == ["good"]
    assert waits == [2.0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_wait_longer_than_the_bound_fails_at_once_and_is_named(attempt, kind):
    why, requests, waits, _ = attempt(kind, [(429, {"Retry-After": str(DAY)})] * 9)

    assert "asks to wait 86,400 seconds (Retry-After), longer than max_wait = 60" in why
    assert "429" in why
    assert (len(requests), waits) == (1, [])


def test_the_wait_that_a_server_over_sse_asks_for_is_bounded_too(servers):
    waits = []
    failures = [(503, {"Retry-After": "3"}), (429, {"Retry-After": str(DAY)})]
    with flaky_server(failures, mcp_answer) as server:
        (failure,) = servers({"shop": {"url": f"{server.url}/sse"}}, waits=waits).failures

    assert "2 attempts failed" in failure.why
    assert "HTTP 429" in failure.why
    assert "asks to wait 86,400 seconds" in failure.why
    assert waits == [3.0]


def test_a_wait_may_be_a_date_and_the_bound_is_an_option(attempt):
    moment = datetime.now(UTC) + timedelta(seconds=DAY)
    reply = (503, {"Retry-After": format_datetime(moment, usegmt=True)})

    listing, _, waits, _ = attempt("openapi", [reply], max_wait=2 * DAY)

    assert [tool.name for tool in listing.tools] == ["good"]
    assert DAY - 600 < waits[0] <= DAY


@pytest.mark.parametrize("kind", KINDS)
def test_a_cut_body_is_fetched_again(attempt, kind):
    listing, _, waits, _ = attempt(kind, [CUT])

    assert [tool.name for tool in listing.tools] == ["good"]
    assert len(waits) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_that_does_not_begin_to_answer_is_asked_again(listed, kind):
    answer, options_of = KINDS[kind]
    with flaky_server([SILENT], answer) as server:
        options = {**options_of(server.url), "timeout": 3, "attempts": 20}
        listing = listed(kind, waits=[], **options)

    assert [tool.name for tool in listing.tools] == ["good"]
    assert len(server.requests) >= 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_refused_connection_fails_after_the_attempts_and_says_how_many(listed, kind):
    _, options_of = KINDS[kind]
    waits = []

    try:
        listing = listed(kind, waits=waits, attempts=3, **options_of(refused_url()))
        why = listing.failures[0].why
    except SourceError as error:
        why = str(error)

    assert "3 attempts failed, the last one because" in why
    assert "hunter2" not in why
    assert len(waits) == 2


def test_only_the_page_that_failed_is_asked_for_again(listed):
    def answer(method, path, body):
        number = 2 if "cursor" in path else 1
        server = {"server": {"name": f"io.acme/{number}"}}
        return {"servers": [server], "metadata": {"nextCursor": "2" if number == 1 else None}}

    with flaky_server([], answer) as server:
        original = server.next_failure
        failures = [503, 503]

        def fail_second_page(method, path):
            original(method, path)
            return failures.pop() if "cursor" in path and failures else None

        server.next_failure = fail_second_page
        listing = listed("registry", waits=[], url=server.url)

    assert [agent.name for agent in listing.agents] == ["io.acme/1", "io.acme/2"]
    assert ["cursor" in request for request in server.requests] == [False, True, True, True]


def test_one_card_that_fails_does_not_repeat_the_others(listed):
    def answer(method, path, body):
        return {**CARD, "name": path}

    with flaky_server([], answer) as server:
        original = server.next_failure

        def fail_second_card(method, path):
            original(method, path)
            return 503 if path == "/b" else None

        server.next_failure = fail_second_card
        urls = [f"{server.url}/{name}" for name in "abc"]
        listing = listed("a2a", waits=[], attempts=3, urls=urls)

    assert server.requests == ["GET /a", *["GET /b"] * 3, "GET /c"]
    assert [agent.name for agent in listing.agents] == ["/a", "/c"]
    (why,) = listing.unreadable
    assert "3 attempts failed" in why


def test_a_document_that_is_not_valid_is_not_fetched_again(listed):
    waits = []
    with (
        flaky_server([], lambda *_: {"openapi": "4"}) as server,
        pytest.raises(SourceError, match="its version is '4'"),
    ):
        listed("openapi", waits=waits, url=server.url)

    assert (len(server.requests), waits) == (1, [])


@pytest.mark.parametrize("code", ["3", "signal"])
def test_a_server_that_dies_at_its_start_is_started_again(servers, tmp_path, code):
    starts = tmp_path / "starts"
    waits = []
    reports = []

    listing = servers(
        {"raw": raw("flaky", str(starts), code, "2")}, waits=waits, reports=reports, attempts=5
    )

    assert [tool.name for tool in listing.tools] == ["good"]
    assert starts.read_text() == "start\n" * 3
    ending = "exit code 3" if code == "3" else "signal SIGKILL"
    assert ["raw: attempt" in report and ending in report for report in reports] == [True, True]
    assert len(waits) == 2


def test_a_dead_server_is_reported_with_its_exit_code_and_the_end_of_its_stderr(
    servers, tmp_path, monkeypatch
):
    monkeypatch.setenv("MY_TOKEN", "hunter2-hunter2")
    starts = tmp_path / "starts"
    entry = raw("flaky", str(starts), "3", "9", env={"SECRET_TOKEN": "${MY_TOKEN}"})

    (failure,) = servers({"raw": entry}, waits=[], attempts=2).failures

    assert starts.read_text() == "start\n" * 2
    assert "2 attempts failed, the last one because: it ended before it answered" in failure.why
    assert "(exit code 3)" in failure.why
    assert failure.why.endswith("The end of its stderr: cannot start; token [MY_TOKEN]")


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"command": "no-such-command-here"}, "'no-such-command-here' was not found"),
        ({"command": "sh", "args": ["-c", "no-such-command-here"]}, "(exit code 127)"),
        (raw("refuse"), "the error -32603"),
        (raw("endless"), "lists more than 20,000 tools"),
    ],
)
def test_a_permanent_failure_of_a_server_is_not_retried(servers, entry, why):
    waits = []

    (failure,) = servers({"raw": entry}, waits=waits).failures

    assert why in failure.why
    assert waits == []


def test_no_attempt_begins_after_half_of_the_time_of_the_source(tmp_path):
    def unavailable():
        raise SourceError("The shop is closed.", may_pass=True)

    waits = []

    with pytest.raises(SourceError, match=r"closed\. There was no time for another attempt"):
        Retries(seconds=0, sleep=waits.append).call(unavailable)

    assert waits == []


class Shop:
    """A plug-in whose `read` raises errors before it adds its tool."""

    def __init__(self, *errors):
        self.errors = list(errors)
        self.reads = 0

    def read(self, listing, options):
        self.reads += 1
        agent = listing.agent("shop")
        listing.tool(agent, f"tool_{self.reads}", where="shop")
        if self.errors:
            raise self.errors.pop(0)

    def listed(self, tmp_path, waits):
        builder = ListingBuilder("kit", tmp_path, retries=Retries(sleep=waits.append))
        kind = SourceKind(options=SourceOptions, read=self.read)
        return list_source(kind, builder, SourceOptions(type="shop"))


def test_a_plug_in_is_read_again_if_its_error_says_that_it_may_pass(tmp_path):
    shop = Shop(
        SourceError("The shop is closed.", may_pass=True, retry_after=7),
        ConnectionResetError("reset"),
        TimeoutError("late"),
    )
    waits = []

    listing = shop.listed(tmp_path, waits)

    assert [tool.name for tool in listing.tools] == ["tool_4"]
    assert (waits[0], len(waits)) == (7, 3)


@pytest.mark.parametrize(
    "error", [SourceError("The shop is gone."), ValueError("odd"), PermissionError("no")]
)
def test_any_other_error_of_a_plug_in_is_final(tmp_path, error):
    shop = Shop(error)
    waits = []

    with pytest.raises(type(error)):
        shop.listed(tmp_path, waits)

    assert (shop.reads, waits) == (1, [])


class Writer(list):
    """Waits during which another program continues to write a file."""

    def __init__(self, *writes):
        super().__init__()
        self.writes = list(writes)

    def append(self, seconds):
        super().append(seconds)
        if self.writes:
            self.writes.pop(0)()


TOOLS = json.dumps([{"name": "good", "parameters": {"type": "object", "properties": {}}}])


def test_a_file_that_is_being_written_is_read_again(listed, tmp_path):
    path = tmp_path / "tools.json"
    path.write_text(TOOLS[:20])
    waits = Writer(lambda: path.write_text(TOOLS[:40]), lambda: path.write_text(TOOLS))

    listing = listed("functions", waits=waits, path="tools.json")

    assert [tool.name for tool in listing.tools] == ["good"]
    assert listing.unreadable == ()


def test_a_file_that_is_being_replaced_is_waited_for(listed, tmp_path):
    waits = Writer(lambda: (tmp_path / "tools.json").write_text(TOOLS))

    listing = listed("functions", waits=waits, path="*.json")

    assert [tool.name for tool in listing.tools] == ["good"]


def test_a_broken_file_of_several_is_read_again_while_it_is_written(listed, tmp_path):
    (tmp_path / "a.json").write_text(TOOLS.replace("good", "fine"))
    (tmp_path / "b.json").write_text(TOOLS[:20])
    waits = Writer(lambda: (tmp_path / "b.json").write_text(TOOLS))

    listing = listed("functions", waits=waits, path="*.json")

    assert [tool.name for tool in listing.tools] == ["fine", "good"]


def test_a_broken_file_that_nobody_writes_is_not_retried(listed, tmp_path):
    (tmp_path / "tools.json").write_text(TOOLS[:20])
    waits = []
    reports = []

    with pytest.raises(SourceError, match="is not JSON"):
        listed("functions", waits=waits, reports=reports, path="tools.json")

    assert (waits, reports) == ([SETTLE_SECONDS], [])


def test_a_file_that_never_stops_changing_is_listed_as_it_was_read_last(tmp_path):
    path = tmp_path / "tools.json"

    def read(listing, options):
        agent = listing.agent("shop")
        listing.tool(agent, f"tool_{path.stat().st_size}", where="shop")
        path.write_text(path.read_text() + "x")

    path.write_text("")
    builder = ListingBuilder("kit", tmp_path, retries=Retries(attempts=3, sleep=[].append))
    kind = SourceKind(options=SourceOptions, read=read, inputs=lambda base, options: [path])

    listing = list_source(kind, builder, SourceOptions(type="shop"))

    assert [tool.name for tool in listing.tools] == ["tool_2"]


def test_python_modules_are_imported_once(listed, tmp_path):
    (tmp_path / "given_shop.py").write_text("raise ConnectionError('no network')\n")
    waits = []

    with pytest.raises(SourceError, match="ConnectionError: no network"):
        listed("python", waits=waits, target="given_shop", search_path=".")

    assert waits == []
    assert "given_shop" not in sys.modules
