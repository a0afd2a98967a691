"""Live MCP servers: well-behaved ones written with the SDK, and raw ones that misbehave, over stdio
and HTTP.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest
from pydantic import ValidationError

from catalogs.mcp.source import source
from catalogs.shared.listing import Listing, ListingBuilder
from pegboard.errors import SourceError
from tests.children import end_child, start_child

SERVERS = Path(__file__).parent / "servers"
KEY = "open-sesame-4711"


def raw(behaviour: str, *args: str, **entry) -> dict:
    return {
        "command": sys.executable,
        "args": [str(SERVERS / "raw_stdio.py"), behaviour, *args],
        **entry,
    }


def listed(base: Path, servers: dict | None = None, **options) -> Listing:
    builder = ListingBuilder("acme", base)
    if servers is not None:
        options["servers"] = servers
    source.read(builder, source.options(type="mcp", **{"timeout": 600, **options}))
    return builder.build()


def names(listing: Listing) -> list[str]:
    return [tool.name for tool in listing.tools]


def only_failure(listing: Listing) -> str:
    (failure,) = listing.failures
    assert failure.agent not in [agent.id for agent in listing.agents]
    return failure.why


@pytest.fixture(scope="module")
def http_port():
    server = start_child(
        [sys.executable, str(SERVERS / "sdk_http.py")], stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    yield int(server.stdout.readline())
    end_child(server)
    server.stdout.close()


def test_a_server_written_with_the_sdk_is_listed_with_its_title_instructions_and_annotations(
    tmp_path,
):
    entry = {"command": sys.executable, "args": [str(SERVERS / "sdk_stdio.py")]}

    listing = listed(tmp_path, {"weather": entry})

    (agent,) = listing.agents
    assert (agent.id, agent.kind) == ("acme/weather", "mcp-server")
    assert agent.description == "Weather desk\n\nAsk for the weather of a city."
    assert agent.source.endswith("sdk_stdio.py")
    forecast, report = listing.tools
    assert forecast.id == "acme/weather/forecast"
    assert forecast.description == "The temperatures of the next days in a city."
    assert forecast.annotations == {"title": "Forecast", "readOnlyHint": True}
    assert set(forecast.input_schema["properties"]) == {"city", "days"}
    assert forecast.output_schema is not None
    assert report.description == "Report the weather outside"
    assert (listing.rejected, listing.failures) == ((), ())


@pytest.mark.parametrize(
    ("path", "kind"), [("mcp", "http"), ("mcp", None), ("mcp", "streamable-http"), ("sse", None)]
)
def test_a_server_over_http_is_listed_with_headers_from_the_environment(
    tmp_path, monkeypatch, http_port, path, kind
):
    monkeypatch.setenv("CLOCK_KEY", KEY)
    entry = {
        "url": f"http://127.0.0.1:{http_port}/{path}?pass=word",
        "headers": {"Authorization": "Bearer ${env:CLOCK_KEY}"},
    }

    listing = listed(tmp_path, {"clock": {**entry, **({"type": kind} if kind else {})}})

    assert listing.failures == ()
    assert names(listing) == ["now"]
    assert listing.agents[0].description == "Clock\n\nTells the time."
    assert listing.agents[0].source == f"http://127.0.0.1:{http_port}/{path}"


@pytest.mark.parametrize("path", ["mcp", "sse"])
def test_a_server_over_http_that_refuses_the_key_fails_with_its_status_and_without_the_key(
    tmp_path, http_port, path
):
    entry = {
        "url": f"http://127.0.0.1:{http_port}/{path}?k=wrong-key",
        "headers": {"Authorization": "Bearer wrong-key"},
    }

    why = only_failure(listed(tmp_path, {"clock": entry}))

    assert "HTTP 401" in why
    assert "wrong-key" not in why


def test_a_server_that_cannot_be_reached_fails(tmp_path):
    why = only_failure(listed(tmp_path, {"gone": {"url": "http://127.0.0.1:9/mcp?key=sesame"}}))

    assert "cannot be reached" in why
    assert "sesame" not in why


def test_all_pages_of_tools_are_listed(tmp_path):
    assert names(listed(tmp_path, {"raw": raw("pages")})) == [
        f"tool_{page}_{n}" for page in (1, 2, 3) for n in (0, 1)
    ]


def test_a_cursor_that_repeats_fails_instead_of_listing_forever(tmp_path):
    assert "repeats a cursor on page 2" in only_failure(listed(tmp_path, {"raw": raw("endless")}))


def test_one_malformed_tool_is_one_rejected_row_and_the_others_are_listed(tmp_path):
    listing = listed(tmp_path, {"raw": raw("malformed")})

    assert names(listing) == ["good", "last"]
    assert listing.failures == ()
    reasons = [(row.where, row.why) for row in listing.rejected]
    assert [where for where, _ in reasons] == [f"raw: tools[{n}]" for n in (1, 2, 3, 4, 5, 6)]
    for (_, why), expected in zip(
        reasons,
        [
            "not valid JSON Schema",
            "expected text",
            "no name",
            "expected an object",
            "already listed",
            "10,000,000",
        ],
        strict=True,
    ):
        assert expected in why


def test_bytes_that_are_not_utf8_cost_only_their_tool(tmp_path):
    listing = listed(tmp_path, {"raw": raw("bytes")})

    assert names(listing) == ["good"]
    assert "not UTF-8" in listing.rejected[0].why


def test_a_greeting_on_stdout_does_no_harm(tmp_path):
    assert names(listed(tmp_path, {"raw": raw("greet")})) == ["good"]


def test_a_server_without_tools_is_an_agent_all_the_same(tmp_path):
    listing = listed(tmp_path, {"raw": raw("prompts")})

    assert [agent.name for agent in listing.agents] == ["raw"]
    assert (listing.tools, listing.failures) == ((), ())


def test_a_server_that_knows_only_the_newest_protocol_is_listed(tmp_path):
    listing = listed(tmp_path, {"raw": raw("modern")})

    assert names(listing) == ["good"]
    assert listing.agents[0].description == "Modern only."


def failure_in_time(base: Path, entry: dict, ready: Callable[[str], bool]) -> tuple[str, int]:
    """Why a server without an end fails, and within how many seconds: as many as it takes to get
    `ready` on this machine.
    """
    for seconds in (1, 4, 16, 64, 256):
        why = only_failure(listed(base, {"raw": entry}, timeout=seconds))
        if ready(why):
            return why, seconds
    raise AssertionError(why)


def test_a_server_that_hangs_fails_in_time_and_is_ended_with_its_children(tmp_path):
    pids = tmp_path / "pids"

    def started(_):
        return pids.exists() and len(pids.read_text().split()) == 2

    why, seconds = failure_in_time(tmp_path, raw("hang", str(pids), str(os.getpid())), started)

    assert f"did not answer within {seconds} seconds (waiting for initialize)" in why
    for pid in pids.read_text().split():
        wait_for_end(int(pid))


@pytest.mark.skipif(
    not Path("/proc/self/environ").exists(), reason="only Linux tells the environment of a process"
)
def test_a_server_that_ends_leaves_no_child_behind(tmp_path):
    script = (
        f'while kill -0 {os.getpid()}; do sleep 1; done 2> /dev/null & echo $! > pid; exec "$@"'
    )
    entry = {
        "command": "sh",
        "args": ["-c", script, "sh", sys.executable, str(SERVERS / "raw_stdio.py"), "good"],
    }

    listing = listed(tmp_path, {"raw": {**entry, "cwd": str(tmp_path)}})

    assert names(listing) == ["good"]
    wait_for_end(int((tmp_path / "pid").read_text()))


def wait_for_end(pid: int) -> None:
    """Wait until a process is gone, or waits only to be buried by its parent; the test's own limit
    ends it.
    """
    while True:
        try:
            os.kill(pid, 0)
            if " Z " in Path(f"/proc/{pid}/stat").read_text():
                return
        except ProcessLookupError:
            return
        except FileNotFoundError:
            pass  # gone meanwhile, or no Linux
        time.sleep(0.1)


def test_a_server_that_dies_fails_with_the_end_of_its_stderr_and_without_its_secrets(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("MY_TOKEN", "hunter2-hunter2")

    why = only_failure(listed(tmp_path, {"raw": raw("die", env={"SECRET_TOKEN": "${MY_TOKEN}"})}))

    assert "ended before it answered initialize" in why
    assert why.endswith("ImportError: no module named soup; token [MY_TOKEN]")
    assert "Processing request" not in why


def test_a_server_that_writes_to_stderr_without_end_fails_with_the_end_of_it(tmp_path):
    end = "The end of its stderr: oops\noops\noops\noops\noops"

    failure_in_time(
        tmp_path, {"command": "sh", "args": ["-c", "yes oops >&2"]}, lambda why: why.endswith(end)
    )


def test_a_server_that_answers_with_an_error_fails_with_that_error_and_without_its_secrets(
    tmp_path,
):
    why = only_failure(
        listed(tmp_path, {"raw": raw("refuse", env={"SECRET_TOKEN": "hunter2-hunter2"})})
    )

    assert why.endswith("it answered tools/list with the error -32603: bad key ***")


def test_a_server_that_talks_no_json_fails_with_what_it_said(tmp_path):
    failure_in_time(tmp_path, raw("babble"), lambda why: "'Welcome to the babbling server!'" in why)


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"command": "no-such-command-here"}, "'no-such-command-here' was not found"),
        ({"command": sys.executable, "cwd": "no-such-folder"}, "cwd is not a folder"),
        (
            {"command": "x", "args": ["${NOT_SET_A}"], "env": {"B": "${env:NOT_SET_B}"}},
            "variable NOT_SET_A is not set",
        ),
        (
            {"command": "x", "args": ["${NOT_SET_A}"], "env": {"B": "${env:NOT_SET_B}"}},
            "variable NOT_SET_B is not set",
        ),
        (
            {"url": "https://x/mcp", "headers": {"X": "${input:api-key}"}},
            "${input:api-key} is known only to an editor",
        ),
        ({"command": "x", "args": "one two"}, "its args are str, expected a list"),
        ({"command": "x", "env": ["A=1"]}, "its env are list, expected an object"),
        ({"command": ["x"]}, "its command is list, expected text"),
        ({"type": "carrier-pigeon", "url": "https://x"}, "its type is 'carrier-pigeon'"),
        ({"type": "http", "command": "x"}, "has no url"),
        ({}, "neither a command nor a url"),
        ("uvx mcp-server-git", "is str, expected an object"),
        ({"command": "x", "envFile": ".env"}, "envFile is not read"),
    ],
)
def test_a_server_that_cannot_be_started_fails_by_itself(tmp_path, entry, expected):
    assert expected in only_failure(listed(tmp_path, {"broken": entry}))


def test_broken_servers_do_not_disturb_the_others(tmp_path):
    servers = {
        "a": raw("good"),
        "b": raw("die"),
        "c": {"command": "no-such-command-here"},
        "d": raw("good"),
        "e": 5,
    }

    listing = listed(tmp_path, servers, concurrency=2)

    assert [agent.name for agent in listing.agents] == ["a", "d"]
    assert [failure.agent for failure in listing.failures] == ["acme/b", "acme/c", "acme/e"]


def test_servers_are_listed_from_a_thread(tmp_path):
    found: list[Listing] = []

    thread = Thread(target=lambda: found.append(listed(tmp_path, {"raw": raw("good")})))
    thread.start()
    thread.join()

    assert names(found[0]) == ["good"]


def test_references_are_resolved_and_the_shells_own_left_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("FIRST", "one")
    monkeypatch.setenv("EMPTY", "")
    args = [
        "${FIRST}",
        "${env:FIRST}-more",
        "${NOT_SET_A:-two}",
        "${EMPTY:-three}",
        "${list[@]}",
        "$FIRST",
    ]

    listing = listed(tmp_path, {"raw": raw("arguments", *args)})

    assert set(names(listing)) == {"one", "one-more", "two", "three", "${list[@]}", "$FIRST"}
    assert listing.agents[0].source.endswith("arguments " + " ".join(args))


def test_a_server_gets_its_own_variables_and_those_that_launchers_need_but_no_others(
    tmp_path, monkeypatch
):
    for name in (
        "SSL_CERT_FILE",
        "https_proxy",
        "UV_OFFLINE",
        "UV_PUBLISH_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "OTHER",
    ):
        monkeypatch.setenv(name, "1")
    asked = [*os.environ, "MINE", "NUMBER", "NULL"]

    listing = listed(
        tmp_path, {"raw": raw("environment", *asked, env={"MINE": "1", "NUMBER": 5, "NULL": None})}
    )

    seen = set(names(listing))
    assert {"PATH", "SSL_CERT_FILE", "https_proxy", "UV_OFFLINE", "MINE", "NUMBER"} <= seen
    assert not {"UV_PUBLISH_TOKEN", "AWS_SECRET_ACCESS_KEY", "OTHER", "NULL"} & seen


def test_a_server_runs_in_the_folder_of_its_configuration_or_in_one_relative_to_it(tmp_path):
    (tmp_path / "team" / "inner").mkdir(parents=True)
    servers = {"a": raw("folder"), "b": raw("folder", cwd="inner")}
    (tmp_path / "team" / "mcp.json").write_text(json.dumps({"mcpServers": servers}))

    assert names(listed(tmp_path, path="team/mcp.json")) == ["team", "inner"]


def test_disabled_and_skipped_servers_are_not_started(tmp_path):
    servers = {
        "a": raw("good"),
        "b": raw("good", disabled=True),
        "c": raw("good", enabled=False),
        "d": raw("good"),
    }

    listing = listed(tmp_path, servers, skip=["d"])

    assert [agent.name for agent in listing.agents] == ["a"]
    assert listing.failures == ()


def test_only_the_named_servers_are_listed_and_one_that_is_not_configured_fails(tmp_path):
    listing = listed(tmp_path, {"a": raw("good"), "b": raw("die")}, only=["a", "z"])

    assert [agent.name for agent in listing.agents] == ["a"]
    assert "is named by 'only' but not configured. Configured: a, b" in only_failure(listing)


CONFIGURATIONS = {
    "claude": '{"mcpServers": %s}',
    "vscode mcp.json": '{\n  // what we use\n  "inputs": [], /* none */\n  "servers": %s, // '
    "all\n}",
    "vscode settings.json": '{"editor.fontSize": 12, "url": "http://x//y", "mcp": {"servers": '
    "%s,},\n}",
}


@pytest.mark.parametrize("text", CONFIGURATIONS.values(), ids=CONFIGURATIONS.keys())
def test_the_configurations_of_known_clients_are_read(tmp_path, text):
    servers = {"raw": raw("arguments", "http://x//y", "a,]", 'say "/* hi */"')}
    (tmp_path / "mcp.json").write_text(text % json.dumps(servers), encoding="utf-8-sig")

    assert set(names(listed(tmp_path, path="mcp.json"))) == {"http://x//y", "a,]", 'say "/* hi */"'}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, "Cannot read"),
        (b'{\n"mcpServers": {"a" 5}}', "not JSON: Expecting ':' delimiter at line 2"),
        (b"[]", "not an MCP client configuration"),
        (b'{"tools": []}', "'mcpServers', 'servers', 'mcp.servers'"),
        (b'{"mcpServers": {"caf\xe9": {}}}', "is not UTF-8"),
    ],
)
def test_a_configuration_that_cannot_be_read_says_why(tmp_path, content, expected):
    if content is not None:
        (tmp_path / "mcp.json").write_bytes(content)

    with pytest.raises(SourceError, match=expected):
        listed(tmp_path, path="mcp.json")


@pytest.mark.parametrize(
    "options", [{}, {"path": "x", "servers": {}}, {"servers": {}, "timeout": 0}]
)
def test_options_that_make_no_sense_are_refused(options):
    with pytest.raises(ValidationError):
        source.options(type="mcp", **options)


def test_a_configuration_of_no_servers_lists_nothing(tmp_path):
    assert listed(tmp_path, {}) == Listing()


@pytest.mark.parametrize(
    ("args", "shown"),
    [
        (["--token=abc", "--api-key", "abc", "--verbose"], "--token=*** --api-key *** --verbose"),
        (["--token", "${TOKEN}", "--key=${env:KEY}"], "--token ${TOKEN} --key=${env:KEY}"),
        (["--token", "${TOKEN:-abc}"], "--token ***"),
        (["-e", "GITHUB_TOKEN=abc", "-e", "GITHUB_TOKEN"], "-e GITHUB_TOKEN=*** -e GITHUB_TOKEN"),
        (
            ["--header", "X-Any: abc", "Authorization: Bearer abc"],
            "--header X-Any:*** Authorization: ***",
        ),
        (
            ["postgres://me:abc@db/sales?sslkey=abc", "--url=https://x/y?key=abc"],
            "postgres://db/sales --url=https://x/y",
        ),
        (["sk-abcdefgh12345678", "ghp_abcdefgh12345678"], "*** ***"),
        (
            ["-y", "@scope/server-github@1.2.3", "/data", "--port", 80],
            "-y @scope/server-github@1.2.3 /data --port 80",
        ),
    ],
)
def test_the_source_of_an_agent_hides_what_looks_like_a_secret(args, shown):
    from catalogs.mcp.secrets import public_command

    assert public_command("run", args) == f"run {shown}"
