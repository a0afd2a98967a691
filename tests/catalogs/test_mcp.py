"""Live MCP servers: well-behaved ones written with the SDK, and raw ones that misbehave, over stdio
and HTTP.
"""

import json
import os
import re
import sys
import time
from pathlib import Path

import pytest

from pegboard.errors import SourceError
from pegboard.servers.shown import public_command
from tests.catalogs.mcp_servers import (
    SERVERS,
    failure_in_time,
    http_server,
    names,
    only_failure,
    raw,
)

KEY = "open-sesame-4711"


@pytest.fixture(scope="module")
def http_port():
    with http_server("sdk_http.py") as port:
        yield port


def test_a_server_written_with_the_sdk_is_listed_with_its_description(servers):
    entry = {"command": sys.executable, "args": [str(SERVERS / "sdk_stdio.py")]}

    listing = servers({"weather": entry})

    (agent,) = listing.agents
    assert (agent.id, agent.kind) == ("kit/weather", "mcp-server")
    assert agent.description == "Weather desk\n\nAsk for the weather of a city."
    assert agent.source.endswith("sdk_stdio.py")
    forecast, report = listing.tools
    assert forecast.id == "kit/weather/forecast"
    assert forecast.description == "The temperatures of the next days in a city."
    assert forecast.annotations == {"title": "Forecast", "readOnlyHint": True}
    assert set(forecast.input_schema["properties"]) == {"city", "days"}
    assert forecast.output_schema is not None
    assert report.description == "Report the weather outside"
    assert (listing.rejected, listing.failures) == ((), ())


def test_included_prompts_resources_and_skills_become_separate_agents(servers):
    entry = {"command": sys.executable, "args": [str(SERVERS / "sdk_stdio.py")]}

    listing = servers({"weather": entry}, include=["prompts", "resources", "skills"])

    assert [(agent.name, agent.kind) for agent in listing.agents] == [
        ("weather", "mcp-server"),
        ("weather:prompts", "prompt"),
        ("weather:resources", "resource"),
        ("weather:skills", "skill"),
    ]
    rows = {tool.name: tool for tool in listing.tools}
    assert [*rows] == [
        "forecast", "report", "explain", "small_talk", "months", "stations", "packing",
    ]  # fmt: skip
    assert rows["explain"].input_schema["required"] == ["city"]
    assert set(rows["explain"].input_schema["properties"]) == {"city", "tone"}
    assert rows["stations"].annotations == {"uri": "desk://stations", "mimeType": "text/csv"}
    assert rows["months"].annotations["uriTemplate"] == "desk://years/{year}/{month}"
    assert set(rows["months"].input_schema["properties"]) == {"year", "month"}
    assert rows["packing"].annotations == {
        "uri": "skill://packing/SKILL.md",
        "body": "Take a coat.",
    }
    assert (listing.rejected, listing.failures) == ((), ())


def test_a_failed_server_keeps_its_prompts_and_skills_as_it_keeps_its_tools(servers):
    listing = servers({"gone": {"command": "/no/such/command"}}, include=["prompts"])

    assert [failure.agent for failure in listing.failures] == ["kit/gone", "kit/gone:prompts"]


def test_instances_of_one_server_are_listed_once_with_all_addresses(servers):
    entry = {"command": sys.executable, "args": [str(SERVERS / "sdk_stdio.py")]}
    several = {"here": entry, "there": {**entry, "args": [*entry["args"], "--there"]}}

    (agent,) = servers(several, instances="one").agents

    assert agent.name == "here"
    assert agent.source.count("sdk_stdio.py") == 2
    assert agent.source.endswith("--there")


@pytest.mark.parametrize(
    ("path", "kind"), [("mcp", "http"), ("mcp", None), ("mcp", "streamable-http"), ("sse", None)]
)
def test_a_server_over_http_is_listed_with_headers_from_the_environment(
    servers, monkeypatch, http_port, path, kind
):
    monkeypatch.setenv("CLOCK_KEY", KEY)
    url = f"http://127.0.0.1:{http_port}/{path}"
    headers = {"Authorization": "Bearer ${env:CLOCK_KEY}"}
    entry = {"url": f"{url}?pass=word", "headers": headers, **({"type": kind} if kind else {})}

    listing = servers({"clock": entry})

    assert listing.failures == ()
    assert names(listing) == ["now"]
    assert [(agent.description, agent.source) for agent in listing.agents] == [
        ("Clock\n\nTells the time.", url)
    ]


@pytest.mark.parametrize("path", ["mcp", "sse"])
def test_a_server_over_http_that_rejects_the_key_fails_with_its_status_but_not_the_key(
    servers, http_port, path
):
    url = f"http://127.0.0.1:{http_port}/{path}"
    headers = {"Authorization": "Bearer wrong-key"}

    why = only_failure(servers({"clock": {"url": f"{url}?k=wrong-key", "headers": headers}}))

    assert "HTTP 401" in why
    assert "wrong-key" not in why


def test_a_server_that_cannot_be_reached_fails(servers):
    why = only_failure(servers({"gone": {"url": "http://127.0.0.1:9/mcp?key=sesame"}}))

    assert "cannot be reached" in why
    assert "sesame" not in why


@pytest.mark.parametrize(
    ("behaviour", "tools", "description"),
    [
        ("pages", [f"tool_{page}_{n}" for page in (1, 2, 3) for n in (0, 1)], ""),
        ("greet", ["good"], ""),
        ("prompts", [], ""),
        ("modern", ["good"], "Modern only."),
        ("stderr", ["good"], ""),
    ],
    ids=["pages", "a greeting on stdout", "no tools", "only the newest protocol", "much on stderr"],
)
def test_a_server_with_unusual_behaviour_is_listed(servers, behaviour, tools, description):
    listing = servers({"raw": raw(behaviour)})

    assert [(agent.name, agent.description) for agent in listing.agents] == [("raw", description)]
    assert names(listing) == tools
    assert (listing.rejected, listing.failures) == ((), ())


@pytest.mark.parametrize("value", [b'"\\ud83d"', b"[" * 2000 + b"]" * 2000, b"9" * 6000])
def test_a_tool_that_the_sdk_cannot_parse_is_rejected_alone(servers, tmp_path, value):
    good, bad = (
        b'{"name": "%b", "description": %b}' % pair
        for pair in ((b"good", b'"Does good."'), (b"bad", value))
    )
    (tmp_path / "tools.raw").write_bytes(b"[%b, %b]" % (good, bad))

    listing = servers({"raw": raw("file", str(tmp_path / "tools.raw"))})

    assert "good" in names(listing)
    assert listing.failures == ()


def test_a_server_that_hangs_fails_at_the_timeout_and_is_killed_with_its_children(
    servers, tmp_path
):
    pids = tmp_path / "pids"

    def started(_):
        return pids.exists() and len(pids.read_text().split()) == 2

    why, seconds = failure_in_time(servers, raw("hang", str(pids), str(os.getpid())), started)

    assert f"did not answer within {seconds} seconds (waiting for initialize)" in why
    for pid in pids.read_text().split():
        wait_for_end(int(pid))


@pytest.mark.skipif(
    not Path("/proc/self/environ").exists(), reason="only Linux tells the environment of a process"
)
def test_a_server_that_ends_leaves_no_child_behind(servers, tmp_path):
    script = (
        f'while kill -0 {os.getpid()}; do sleep 1; done 2> /dev/null & echo $! > pid; exec "$@"'
    )
    good = raw("good")
    args = ["-c", script, "sh", good["command"], *good["args"]]

    listing = servers({"raw": {"command": "sh", "args": args, "cwd": str(tmp_path)}})

    assert names(listing) == ["good"]
    wait_for_end(int((tmp_path / "pid").read_text()))


def wait_for_end(pid):
    """Wait until a process is gone or a zombie; the test's timeout limits the wait."""
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


@pytest.mark.parametrize(
    ("behaviour", "expected"),
    [
        (
            "die",
            r"ended before it answered initialize.*ImportError: no module.*; token \[MY_TOKEN\]",
        ),
        ("refuse", r"it answered tools/list with the error -32603: bad key \*\*\*"),
        ("closed", r"it answered tools/list with the error -32000: no more today"),
        ("endless", r"it lists more than 20,000 tools; correct the server"),
    ],
)
def test_a_failing_server_is_reported_without_secrets_and_the_others_are_listed(
    servers, monkeypatch, behaviour, expected
):
    monkeypatch.setenv("MY_TOKEN", "hunter2-hunter2")
    entry = raw(behaviour, env={"SECRET_TOKEN": "${MY_TOKEN}"})

    listing = servers({"a": raw("good"), "b": entry, "c": raw("good"), "d": 5}, concurrency=2)

    assert [agent.name for agent in listing.agents] == ["a", "c"]
    failures = {failure.agent: failure.why for failure in listing.failures}
    assert list(failures) == ["kit/b", "kit/d"]
    assert re.search(f"(?s){expected}$", failures["kit/b"])
    assert "Processing request" not in failures["kit/b"]


@pytest.fixture(scope="module")
def hostile_port():
    with http_server("hostile_http.py") as port:
        yield port


@pytest.mark.parametrize(
    ("behaviour", "tools", "why"),
    [
        ("numbers", ["tool_0", "tool_1", "tool_null"], None),
        ("blank", ["tool_null"], None),
        ("stuck", ["a", "b", "c"], "ends after 3, because it sent the cursor '3' twice"),
        (
            "circle",
            ['tool_"a"', 'tool_"b"', "tool_null"],
            "ends after 3, because it sent the cursor 'a' twice",
        ),
        ("strange", ["tool_null"], "because the cursor of its next page is ['a'], expected text"),
    ],
)
def test_any_cursor_is_sent_back_once_and_one_that_repeats_ends_the_list(
    servers, behaviour, tools, why
):
    listing = servers({"raw": raw(behaviour)})

    assert names(listing) == tools
    assert (listing.rejected, listing.failures) == ((), ())
    notices = [(notice.kind, notice.where) for notice in listing.notices]
    assert notices == ([("partial", "raw")] if why else [])
    assert all(why in notice.why for notice in listing.notices)


def test_an_endless_event_fails_at_the_limit(servers, hostile_port):
    entry = {"url": f"http://127.0.0.1:{hostile_port}/events"}

    assert "SSE stream failed" in only_failure(servers({"raw": entry}, max_bytes=2_000_000))


@pytest.mark.parametrize("path", ["headers", "silence"])
def test_an_answer_that_trickles_does_not_outlast_the_timeout(servers, hostile_port, path):
    entry = {"url": f"http://127.0.0.1:{hostile_port}/{path}"}

    why, _ = failure_in_time(servers, entry, lambda why: "did not answer within" in why)

    assert "raise timeout" in why


def test_endless_or_invalid_output_of_a_server_fails_and_is_quoted(servers):
    end = "The end of its stderr: oops\noops\noops\noops\noops"
    endless = {"command": "sh", "args": ["-c", "yes oops >&2"]}

    failure_in_time(servers, endless, lambda why: why.endswith(end))
    failure_in_time(servers, raw("babble"), lambda why: "'Welcome to the babbling server!'" in why)


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"command": "no-such-command-here"}, "'no-such-command-here' was not found"),
        ({"command": sys.executable, "cwd": "no-such-folder"}, "cwd is not a folder"),
        ({"command": "x", "args": ["${NOT_SET_A}"]}, "variable NOT_SET_A is not set"),
        (
            {"url": "https://x/mcp", "headers": {"X": "${input:api-key}"}},
            "${input:api-key} is known only to an editor",
        ),
        ({"command": "x", "args": "one two"}, "its args: Input should be a valid list"),
        (
            {"type": "carrier-pigeon", "url": "https://x"},
            "its type: Input should be 'stdio'",
        ),
        ({}, "neither a command nor a url"),
        ("uvx mcp-server-git", "is str, expected an object"),
        ({"command": "x", "envFile": ".env"}, "envFile is not read"),
    ],
)
def test_a_server_that_cannot_be_started_does_not_affect_others(servers, entry, expected):
    assert expected in only_failure(servers({"broken": entry}))


def test_references_are_resolved_and_shell_variables_are_kept(servers, monkeypatch):
    monkeypatch.setenv("FIRST", "one")
    monkeypatch.setenv("EMPTY", "")
    args = ["${FIRST}", "${env:FIRST}-more", "${NOT_SET_A:-two}", "${EMPTY:-three}"]
    args += ["${list[@]}", "$FIRST"]

    listing = servers({"raw": raw("arguments", *args)})

    assert set(names(listing)) == {"one", "one-more", "two", "three", "${list[@]}", "$FIRST"}
    assert listing.agents[0].source.endswith("arguments " + " ".join(args))


def test_a_server_gets_its_configured_variables_and_those_that_launchers_need(servers, monkeypatch):
    passed = {"SSL_CERT_FILE", "https_proxy", "UV_OFFLINE"}
    withheld = {"UV_PUBLISH_TOKEN", "AWS_SECRET_ACCESS_KEY", "OTHER"}
    for name in passed | withheld:
        monkeypatch.setenv(name, "1")
    configured = {"MINE": "1", "NUMBER": 5, "NULL": None}

    seen = set(
        names(servers({"raw": raw("environment", *os.environ, *configured, env=configured)}))
    )

    assert {"PATH", "MINE", "NUMBER", *passed} <= seen
    assert not {"NULL", *withheld} & seen


def test_a_server_runs_in_the_folder_of_its_configuration_or_in_one_relative_to_it(
    servers, tmp_path
):
    (tmp_path / "team" / "inner").mkdir(parents=True)
    entries = {"a": raw("folder"), "b": raw("folder", cwd="inner")}
    (tmp_path / "team" / "mcp.json").write_text(json.dumps({"mcpServers": entries}))

    assert names(servers(path="team/mcp.json")) == ["team", "inner"]


def test_disabled_and_skipped_servers_are_not_started(servers):
    entries = {"a": raw("good"), "d": raw("die")}
    entries |= {"b": raw("die", disabled=True), "c": raw("die", enabled=False)}

    skipped = servers(entries, skip=["d"])
    named = servers(entries, only=["a", "z"])

    assert names(skipped) == names(named) == ["good"]
    assert skipped.failures == ()
    assert [(notice.kind, notice.count) for notice in skipped.notices] == [("skipped", 2)]
    assert named.notices == ()
    assert "is named by 'only' but not configured. Configured: a, b, c, d" in only_failure(named)


CONFIGURATIONS = {
    "claude": '{"mcpServers": %s}',
    "vscode mcp.json": '{\n  // what we use\n  "inputs": [], /* none */\n  "servers": %s, // '
    "all\n}",
    "vscode settings.json": '{"editor.fontSize": 12, "url": "http://x//y", "mcp": {"servers": '
    "%s,},\n}",
}


@pytest.mark.parametrize("text", CONFIGURATIONS.values(), ids=CONFIGURATIONS.keys())
def test_the_configurations_of_known_clients_are_read(servers, tmp_path, text):
    args = ["http://x//y", "a,]", 'say "/* hi */"']
    entries = json.dumps({"raw": raw("arguments", *args)})
    (tmp_path / "mcp.json").write_text(text % entries, encoding="utf-8-sig")

    assert set(names(servers(path="mcp.json"))) == set(args)


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
def test_a_configuration_that_cannot_be_read_says_why(servers, tmp_path, content, expected):
    if content is not None:
        (tmp_path / "mcp.json").write_bytes(content)

    with pytest.raises(SourceError, match=expected):
        servers(path="mcp.json")


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
            ["-y", "@scope/server-github@1.2.3", "/data", "--port", "80"],
            "-y @scope/server-github@1.2.3 /data --port 80",
        ),
    ],
)
def test_the_source_of_an_agent_hides_what_looks_like_a_secret(args, shown):
    assert public_command("run", args) == f"run {shown}"


def test_tools_that_only_clients_with_sampling_or_elicitation_see_are_listed(servers):
    """The server lists a tool for each capability of the client."""
    listing = servers({"raw": raw("capabilities")})

    assert set(names(listing)) >= {"sampling", "elicitation"}
