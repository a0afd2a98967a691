"""`DirectRunner`: concurrency, the order of results, and what an error or Ctrl-C leaves."""

import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pytest

from flows.reindex import reindex
from flows.runner import DirectRunner
from tests.children import end_child, start_child

GUARD = 120.0
"""Seconds after which a test gives up; no verdict depends on it."""


def test_no_more_calls_run_at_once_than_allowed():
    lock, running, most = threading.Lock(), [], []

    def count(number):
        with lock:
            running.append(number)
            most.append(len(running))
        time.sleep(0.01)  # long enough for others to begin, if they may
        with lock:
            running.remove(number)
        return number

    assert DirectRunner().each([partial(count, n) for n in range(20)], 2) == list(range(20))
    assert max(most) <= 2


def test_after_an_error_pending_calls_are_dropped_running_ones_end_and_the_error_is_raised():
    both = threading.Barrier(2, timeout=GUARD)
    error, threads, begun, ended = ValueError("broken"), {}, [], []

    def fail():
        threads["fail"] = threading.current_thread()
        both.wait()
        raise error

    def last_long():
        both.wait()
        threads["fail"].join(GUARD)
        ended.append("last_long")

    pending = partial(begun.append, "pending")

    with pytest.raises(ValueError, match="broken") as raised:
        DirectRunner().each([fail, last_long, pending, pending], at_once=2)

    assert raised.value is error
    assert (ended, begun) == (["last_long"], [])


def test_sources_are_listed_at_once_and_shards_encoded_at_once_on_several_cores(
    workshop, monkeypatch
):
    monkeypatch.setattr("tasks.steps.embed.SHARD_TEXTS", 4)
    monkeypatch.setattr("tasks.steps.embed.processors", lambda: 2)
    for name in ("one", "two"):
        tools = [workshop.tool(f"{name}_{number}", f"Does {number}.") for number in range(8)]
        workshop.servers({name: tools}, f"{name}.json")
    table = '[catalogs.{0}]\ntype = "mcp-dump"\npath = "{0}.json"\n'
    configuration = workshop.configure(catalogs=table.format("one") + table.format("two"))
    at_once = {}

    class Meeting(DirectRunner):
        """Lets as many calls as may run at once meet before any of them does its work."""

        def each(self, calls, limit, **inputs):
            parties = min(limit, len(calls))
            at_once.setdefault(calls[0].func.__name__, []).append((len(calls), limit))
            barrier = threading.Barrier(parties, timeout=GUARD)

            def attend(call):
                barrier.wait()
                return call()

            groups = len(calls) // parties * parties
            met = [partial(attend, call) for call in calls[:groups]]
            return super().each([*met, *calls[groups:]], limit)

    outcome = reindex(configuration, runner=Meeting())

    assert at_once == {"take_snapshot": [(2, 8)], "embed_shard": [(4, 2), (1, 2)]}
    assert (outcome["outcome"], outcome["encoded"]) == ("published", 18)  # two are the agents'


SERVER = """
import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"], start_new_session=True)
open(sys.argv[1], "w").close()
while True:
    time.sleep(3600)
"""
MARK = "PEGBOARD_LISTING="


def marked_processes(folder: Path) -> list[int]:
    """The processes of MCP servers, and of what they started, that belong to a configuration's
    folder.
    """
    pids = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            environment = (process / "environ").read_bytes().decode(errors="replace")
            here = (process / "cwd").readlink().is_relative_to(folder)
        except OSError:
            continue
        if MARK in environment and here:
            pids.append(int(process.name))
    return pids


@pytest.mark.skipif(
    not Path("/proc/self/environ").exists(), reason="there is no /proc to tell processes apart"
)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_while_a_source_hangs_ends_the_command_and_leaves_no_process(
    workshop, number, code
):
    workshop.write("server.py", SERVER)
    workshop.servers({"git": [workshop.tool("create_issue")]})
    server = f'{{ command = "{sys.executable}", args = ["server.py", "listed"] }}'
    workshop.configure(
        catalogs='[catalogs.kit]\ntype = "mcp-dump"\npath = "servers.json"\n'
        f'[catalogs.silent]\ntype = "mcp"\ntimeout = 3600\nservers.hanging = {server}\n'
    )
    command = [sys.executable, "-m", "pegboard", "build", "--quiet", "--no-prefect"]
    build = start_child(
        command, cwd=workshop.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        listed = workshop.folder / "listed"
        while not listed.exists() and build.poll() is None:
            time.sleep(0.02)
        assert len(marked_processes(workshop.folder)) == 2  # the server, and what it started

        build.send_signal(number)
        out, err = build.communicate(timeout=GUARD)
    finally:
        end_child(build)

    assert (build.returncode, out) == (code, ""), err
    assert err == "pegboard build: interrupted. Finished work is kept; run it again to continue.\n"
    deadline = time.monotonic() + GUARD  # a process that was killed may take a moment to go
    while marked_processes(workshop.folder) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert marked_processes(workshop.folder) == []
