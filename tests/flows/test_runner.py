"""`Direct`, the runner without Prefect: what runs at once, in which order results come, and what an
error or Ctrl-C leaves.
"""

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


class Meeting:
    """Calls that end only when all of them have begun."""

    def __init__(self, parties: int) -> None:
        self.barrier = threading.Barrier(parties, timeout=GUARD)

    def attend(self, name: str) -> str:
        self.barrier.wait()
        return name


def test_calls_run_at_once_and_their_results_keep_the_order_of_the_calls():
    meeting = Meeting(3)

    results = DirectRunner().each([partial(meeting.attend, name) for name in "abc"], at_once=3)

    assert results == ["a", "b", "c"]


def test_results_keep_the_order_of_the_calls_when_the_last_ends_first():
    ended = {name: threading.Event() for name in "abc"}
    after = {"a": "b", "b": "c"}

    def call(name):
        if name in after:
            assert ended[after[name]].wait(GUARD)
        ended[name].set()
        return name

    assert DirectRunner().each([partial(call, name) for name in "abc"], at_once=3) == [
        "a",
        "b",
        "c",
    ]


@pytest.mark.parametrize("at_once", [1, 2])
def test_no_more_calls_run_at_once_than_asked_for(at_once):
    lock, running, most = threading.Lock(), [], []

    def call(number):
        with lock:
            running.append(number)
            most.append(len(running))
        with lock:
            running.remove(number)
        return number

    assert DirectRunner().each([partial(call, number) for number in range(50)], at_once) == list(
        range(50)
    )
    assert max(most) <= at_once


def test_after_an_error_what_has_not_begun_is_dropped_and_what_is_under_way_ends():
    both = threading.Barrier(2, timeout=GUARD)
    threads, begun, ended = {}, [], []

    def fail():
        threads["fail"] = threading.current_thread()
        both.wait()
        raise ValueError("broken")

    def last_long():
        both.wait()
        threads["fail"].join(GUARD)
        ended.append("last_long")

    def follow():
        begun.append("follow")

    with pytest.raises(ValueError, match="broken"):
        DirectRunner().each(
            [partial(fail), partial(last_long), partial(follow), partial(follow)], at_once=2
        )

    assert (ended, begun) == (["last_long"], [])


def test_the_error_of_the_first_call_that_failed_is_raised_as_it_is():
    error = ValueError("broken")

    def fail():
        raise error

    with pytest.raises(ValueError, match="broken") as raised:
        DirectRunner().each([partial(int), partial(fail)], at_once=2)

    assert raised.value is error


def test_sources_are_listed_at_once(workshop):
    workshop.servers({"git": [workshop.tool("create_issue")]}, "one.json")
    workshop.servers({"git": [workshop.tool("send_mail")]}, "two.json")
    configuration = workshop.configure(
        catalogs='[catalogs.one]\ntype = "mcp-dump"\npath = "one.json"\n[catalogs.two]\ntype = '
        '"mcp-dump"\npath = "two.json"\n'
    )
    meeting = Meeting(2)

    class Waiting(DirectRunner):
        def each(self, calls, at_once):
            return super().each([partial(attended, meeting, call) for call in calls], at_once)

    outcome = reindex(configuration, dry_run=True, runner=Waiting())

    assert list(outcome["catalogs"]) == ["one", "two"]


def test_shards_are_encoded_at_once_where_there_are_several_cores(workshop, monkeypatch):
    monkeypatch.setattr("tasks.embed.SHARD_TEXTS", 4)
    monkeypatch.setattr("tasks.embed.usable_cores", lambda: 2)
    workshop.servers(
        {"git": [workshop.tool(f"tool_{number}", f"Does {number}.") for number in range(8)]}
    )
    shards = []

    class Waiting(DirectRunner):
        def each(self, calls, at_once):
            if calls and calls[0].func.__name__ == "embed_shard" and len(calls) > 1:
                shards.append((len(calls), at_once))
                meeting = Meeting(at_once)
                pairs = calls[: len(calls) // at_once * at_once]
                calls = [partial(attended, meeting, call) for call in pairs] + list(
                    calls[len(pairs) :]
                )
            return super().each(calls, at_once)

    outcome = reindex(workshop.configure(), runner=Waiting())

    assert shards == [(2, 2)]
    assert (outcome["outcome"], outcome["encoded"]) == ("published", 9)  # the ninth is the agent's


def attended(meeting, call):
    meeting.attend("")
    return call()


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
@pytest.mark.parametrize("sources", [("silent",), ("kit", "silent")])
def test_ctrl_c_while_a_source_hangs_ends_the_command_and_leaves_no_process(workshop, sources):
    workshop.write("server.py", SERVER)
    workshop.servers({"git": [workshop.tool("create_issue")]})
    server = f'{{ command = "{sys.executable}", args = ["server.py", "listed"] }}'
    tables = {
        "kit": '[catalogs.kit]\ntype = "mcp-dump"\npath = "servers.json"\n',
        "silent": f'[catalogs.silent]\ntype = "mcp"\ntimeout = 3600\nservers.hanging = {server}\n',
    }
    workshop.configure(catalogs="".join(tables[name] for name in sources))
    command = [sys.executable, "-m", "pegboard", "build", "--quiet", "--no-prefect"]
    build = start_child(
        command, cwd=workshop.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        listed = workshop.folder / "listed"
        while not listed.exists() and build.poll() is None:
            time.sleep(0.02)
        assert len(marked_processes(workshop.folder)) == 2

        build.send_signal(signal.SIGINT)
        out, err = build.communicate(timeout=GUARD)
    finally:
        end_child(build)

    assert (build.returncode, out) == (130, "")
    assert err == "pegboard build: interrupted. Finished work is kept; run it again to continue.\n"
    deadline = time.monotonic() + GUARD  # a process that was killed may take a moment to go
    while marked_processes(workshop.folder) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert marked_processes(workshop.folder) == []
