"""What a watch notices of URLs, registries, MCP servers and listings, with servers on loopback."""

import json
import sys
import threading
from collections.abc import Generator
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit
from urllib.request import urlopen

import anyio
import pytest

from tasks.watch.loop import BuildResult
from tests.tasks.watch.conftest import until

QUICK = 0.05


class Documents(ThreadingHTTPServer):
    """Serves one document, which tests change.

    Attributes:
        body: of the document.
        headers: which of `etag` and `modified` its answers have.
        status: another status that it answers with; 0 for none.
        answers: the statuses of its answers, in their order.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.body = b"{}"
        self.headers = "etag"
        self.status = 0
        self.retry_after = ""
        self.answers: list[int] = []
        self.queries: list[dict[str, list[str]]] = []
        self.sent: list[Any] = []
        self.url = f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    """Answers a request."""

    server: Documents

    def do_GET(self) -> None:
        server = self.server
        server.queries.append(parse_qs(urlsplit(self.path).query))
        server.sent.append(self.headers)
        body = b"" if server.status else server.body
        etag = f'"{sha256(body).hexdigest()[:8]}"'
        headers = {"ETag": etag} if server.headers == "etag" else {}
        if server.headers == "modified":
            headers["Last-Modified"] = server.modified
        known = self.headers.get("If-None-Match") or self.headers.get("If-Modified-Since")
        is_known = known is not None and known in headers.values() and not server.status
        status = server.status or (304 if is_known else 200)
        server.answers.append(status)
        self.send_response(status)
        if server.retry_after:
            headers["Retry-After"] = server.retry_after
        for name, value in headers.items():
            self.send_header(name, value)
        content = b"" if status == 304 else body
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def documents() -> Generator[Documents]:
    server = Documents()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def openapi(path: str) -> bytes:
    paths = {path: {"get": {"operationId": "read", "responses": {"200": {"description": "ok"}}}}}
    document = {"openapi": "3.1.0", "info": {"title": "t", "version": "1"}, "paths": paths}
    return json.dumps(document).encode()


@pytest.mark.parametrize("headers", ["etag", "modified", "none"])
def test_a_changed_document_is_noticed_by_its_headers_or_its_content(trial, documents, headers):
    documents.headers, documents.body = headers, openapi("/old")
    documents.modified = "Sat, 28 Nov 2026 20:00:00 GMT"
    trial.configure(f'[catalogs.api]\ntype = "openapi"\nurl = "{documents.url}"\n')

    async def scenario():
        async with trial.watching(QUICK):
            await until(lambda: len(documents.answers) > 3)
            assert len(trial.builds) == 1
            documents.modified = "Sat, 28 Nov 2026 21:00:00 GMT"
            documents.body = openapi("/new")
            await until(lambda: len(trial.builds) == 2)

    anyio.run(scenario)

    assert trial.builds == [["api"], ["api"]]
    assert documents.answers.count(200) == 2 if headers != "none" else 304 not in documents.answers


def test_a_server_that_fails_is_reported_once_and_a_change_meanwhile_is_built(trial, documents):
    documents.body = openapi("/old")
    trial.configure(f'[catalogs.api]\ntype = "openapi"\nurl = "{documents.url}"\n')

    async def scenario():
        async with trial.watching(QUICK):
            documents.status = 503
            await until(lambda: documents.answers.count(503) >= 3)
            documents.body, documents.status = openapi("/new"), 0
            await until(lambda: len(trial.builds) == 2)

    anyio.run(scenario)

    assert len(trial.texts("unreachable")) == len(trial.texts("reachable")) == 1
    assert "503" in trial.texts("unreachable")[0]


def test_a_server_that_asks_to_wait_is_left_alone(trial, documents):
    documents.body = openapi("/old")
    trial.configure(f'[catalogs.api]\ntype = "openapi"\nurl = "{documents.url}"\n')

    async def scenario():
        async with trial.watching(QUICK):
            documents.retry_after, documents.status = "3000", 503
            await until(lambda: 503 in documents.answers)
            await anyio.sleep(20 * QUICK)

    anyio.run(scenario)

    assert documents.answers.count(503) == 1


def test_a_build_that_met_a_failing_source_is_repeated_when_it_is_reachable_again(trial, documents):
    """The change was noticed, and its build met status 503: the change must not be lost."""
    documents.body = openapi("/old")
    trial.configure(f'[catalogs.api]\ntype = "openapi"\nurl = "{documents.url}"\n')

    async def scenario():
        async with trial.watching(QUICK):

            async def meet_failure(catalogs):
                documents.status = 503
                await until(lambda: trial.texts("unreachable"))
                trial.answer = succeed
                documents.status = 0
                return BuildResult("published", failed={"api": "status 503"})

            succeed, trial.answer = trial.answer, meet_failure
            documents.body = openapi("/new")
            await until(lambda: len(trial.texts("built")) == 3)

    anyio.run(scenario)

    assert trial.builds == [["api"]] * 3


def test_no_event_contains_a_secret_of_an_address_or_header(trial, documents, monkeypatch):
    monkeypatch.setenv("KEY", "topsecret4711value")
    documents.body = openapi("/old")
    address = documents.url.replace("http://", "http://ana:hush8899pass@")
    trial.configure(
        f'[catalogs.api]\ntype = "openapi"\nurl = "{address}/doc?token=query5544secret"\n'
        'headers = { X-Key = "${KEY}" }\n'
    )

    async def scenario():
        async with trial.watching(QUICK):
            documents.status = 503
            await until(lambda: trial.texts("unreachable"))

    anyio.run(scenario)

    stored = (trial.folder / "board/lake/watch/looks.json").read_text("utf-8")
    text = repr(trial.events) + stored
    assert documents.sent[0]["X-Key"] == "topsecret4711value"
    for secret in ("topsecret4711value", "hush8899pass", "query5544secret"):
        assert secret not in text


def test_a_registry_is_asked_for_updates_since_the_last_one(trial, documents):
    def entry(name: str, time: str) -> dict[str, Any]:
        meta = {"io.modelcontextprotocol.registry/official": {"updatedAt": time}}
        return {"server": {"name": name, "description": "d", "version": "1"}, "_meta": meta}

    def serve(*entries: dict[str, Any]) -> None:
        documents.body = json.dumps({"servers": entries}).encode()

    first, second = "2999-01-01T00:00:00Z", "2999-01-02T00:00:00Z"
    serve(entry("a/one", first))
    trial.configure(f'[catalogs.registry]\ntype = "registry"\nurl = "{documents.url}"\n')

    async def scenario():
        async with trial.watching(QUICK):
            await until(lambda: len(documents.queries) > 3)
            assert len(trial.builds) == 1
            serve(entry("a/one", first), entry("a/two", second))
            await until(lambda: len(trial.builds) == 2)
            count = len(documents.queries)
            await until(lambda: len(documents.queries) > count + 2)

    anyio.run(scenario)

    since = [query["updated_since"][0] for query in documents.queries]
    assert since[0] < first
    assert since[1] == first
    assert since[-1] == second
    assert len(trial.builds) == 2


def test_functions_in_python_are_listed_again_when_their_module_changes(trial):
    module = trial.folder / "office_tools.py"
    module.write_text('def book(room: str) -> str:\n    """Books a room."""\n    return room\n')
    trial.configure(
        '[catalogs.office]\ntype = "python"\ntarget = "office_tools"\nsearch_path = ["."]\n'
    )

    async def scenario():
        async with trial.watching():
            module.write_text(module.read_text().replace("Books", "Reserves"))
            await until(lambda: len(trial.builds) == 2)

    anyio.run(scenario)

    assert trial.builds == [["office"], ["office"]]


def mcp(trial, port: int) -> None:
    trial.configure(
        '[catalogs.live]\ntype = "mcp"\n'
        f'[catalogs.live.servers.changing]\nurl = "http://127.0.0.1:{port}/mcp"\n'
    )


def tools(trial, **texts: str) -> None:
    (trial.folder / "tools.json").write_text(json.dumps(texts), "utf-8")


def test_a_server_that_announces_a_change_is_listed_at_once(trial, changing_server):
    tools(trial, clock="Tells the time.")
    with changing_server("announces") as port:
        mcp(trial, port)

        async def scenario():
            async with trial.watching(interval=600):
                for number in (2, 3):
                    tools(trial, clock=f"Tells the time, version {number}.")
                    while len(trial.builds) < number:  # the stream opens after the first list
                        await anyio.to_thread.run_sync(announce, port)
                        await anyio.sleep(QUICK)

        anyio.run(scenario)

    assert trial.builds == [["live"]] * 3


def announce(port: int) -> None:
    with urlopen(f"http://127.0.0.1:{port}/announce") as answer:
        assert answer.status == 200


def test_a_server_that_announces_nothing_is_listed_at_the_interval(trial, changing_server):
    tools(trial, clock="Tells the time.")
    with changing_server() as port:
        mcp(trial, port)

        async def scenario():
            async with trial.watching(QUICK):
                tools(trial, clock="Tells the time and the date.")
                await until(lambda: len(trial.builds) == 2)

        anyio.run(scenario)

    assert trial.builds == [["live"], ["live"]]


def test_a_server_that_dies_and_comes_back_is_watched_again(trial, changing_server):
    tools(trial, clock="Tells the time.")

    async def scenario():
        async with anyio.create_task_group() as group:
            with changing_server() as port:
                mcp(trial, port)
                group.start_soon(trial.watch(QUICK).run)
                await until(lambda: trial.texts("built"))
            await until(lambda: trial.texts("unreachable"))
            tools(trial, clock="Tells the time and the date.")
            with changing_server(port=port):
                await until(lambda: len(trial.builds) == 2)
            group.cancel_scope.cancel()

    anyio.run(scenario)

    assert trial.builds == [["live"], ["live"]]
    assert len(trial.texts("reachable")) == 1


@pytest.mark.parametrize("behaviour", ["silent", "dead"])
def test_a_server_that_hangs_or_dies_does_not_keep_others_from_being_built(trial, behaviour):
    script = "import time; time.sleep(600)" if behaviour == "silent" else "raise SystemExit(3)"
    trial.write("a.json", "a")
    trial.configure(
        '[catalogs.a]\ntype = "functions"\npath = "a.json"\n'
        '[catalogs.live]\ntype = "mcp"\ntimeout = 0.5\n[catalogs.live.servers.bad]\n'
        f'command = "{sys.executable}"\nargs = ["-c", "{script}"]\n'
    )

    async def scenario():
        async with trial.watching(QUICK):
            await until(lambda: trial.texts("unreachable"))
            trial.write("a.json", "better")
            await until(lambda: len(trial.builds) == 2)

    anyio.run(scenario)

    assert trial.builds == [["a", "live"], ["a"]]
    assert "MCP server bad" in trial.texts("unreachable")[0]


def test_a_changed_file_of_servers_changes_what_is_watched(trial, changing_server):
    tools(trial, clock="Tells the time.")
    servers = trial.folder / "mcp.json"
    servers.write_text('{"mcpServers": {}}')
    trial.configure('[catalogs.live]\ntype = "mcp"\npath = "mcp.json"\n')
    with changing_server() as port:

        async def scenario():
            async with trial.watching(0.5):
                entry = {"changing": {"url": f"http://127.0.0.1:{port}/mcp"}}
                servers.write_text(json.dumps({"mcpServers": entry}))
                await until(lambda: len(trial.builds) >= 2)
                await until(lambda: "changing" in repr(trial.events))
                count = len(trial.builds)
                tools(trial, clock="Tells the time and the date.")
                await until(lambda: len(trial.builds) > count)

        anyio.run(scenario)
