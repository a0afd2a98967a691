"""`[run] engine`: wherever the heavy steps run, and whatever happens to their workers, the release
is the same.
"""

import json
import os
import subprocess
import sys
import time
import traceback
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from flows.engines import open_engine, thread_limits
from flows.reindex import reindex
from flows.runner import DirectRunner
from pegboard.errors import ConfigurationError, PegboardError, SourceError
from tasks.settings.configuration import IndexSettings
from tests import engine_steps
from tests.children import end_child, start_child

ROOT = Path(__file__).parents[2]
GUARD = 120.0
"""Seconds after which a test gives up; no verdict depends on it."""


@pytest.fixture
def board(workshop, monkeypatch):
    """A function that configures a board of 40 tools with an engine; calls get 8 of their texts or
    tools.
    """
    monkeypatch.setattr("tasks.steps.embed.SHARD_TEXTS", 8)
    monkeypatch.setattr("tasks.lake.incremental.SPREAD", 8)
    tools = [workshop.tool(f"tool_{number}", f"Does {number} things.") for number in range(40)]
    workshop.servers({"git": tools})

    def configure(engine="processes", more="workers = 2", uri="board"):
        run = f'[run]\nengine = "{engine}"\n{more if engine != "local" else ""}\n'
        configuration = workshop.configure(run)
        settings = configuration.board.model_copy(update={"uri": str(workshop.folder / uri)})
        return configuration.model_copy(update={"board": settings})

    return configure


def vectors_in(lake, encoder):
    """Every text with its vector, as often as it is stored."""
    folder = lake.vector_folder(encoder.fingerprint)
    return sorted(
        (row["text_digest"], tuple(row["vector"]))
        for path in lake.files(folder)
        for row in lake.read(path).to_dicts()
    )


def lake_of(configuration):
    from tasks.lake.files import Lake

    return Lake(configuration.uri)


def test_processes_publish_the_release_and_store_the_vectors_of_a_local_run(board, encoder):
    local, spread = board("local", uri="local"), board(uri="spread")

    outcomes = [reindex(configuration) for configuration in (local, spread)]

    assert [outcome["outcome"] for outcome in outcomes] == ["published", "published"]
    assert outcomes[0]["release"] == outcomes[1]["release"]
    assert outcomes[0]["encoded"] == outcomes[1]["encoded"] == 41  # one is the agent's
    assert vectors_in(lake_of(local), encoder) == vectors_in(lake_of(spread), encoder)
    assert reindex(spread)["outcome"] == "unchanged"


CALLS = {
    "_tool_sentences",
    "_tool_documents",
    "_infer_edges_of_rows",
    "_tool_rows",
    "encode_missing",
    "_tool_shingles",
}
"""What workers are asked for in a build."""


@pytest.fixture
def change_calls(monkeypatch):
    """A function that has another function make the calls of the engines that builds open."""

    def change(make):
        class Changed:
            def __init__(self, engine):
                self.engine, self.workers, self.threads = engine, engine.workers, engine.threads

            def run(self, call):
                return make(self.engine.run, call)

        @contextmanager
        def opened(configuration):
            with open_engine(configuration) as engine:
                yield engine and Changed(engine)

        monkeypatch.setattr("flows.reindex.open_engine", opened)

    return change


LEAVES = {"_tool_documents": "before", "encode_missing": "after", "_tool_shingles": "after"}
"""Calls whose worker ends once, and when; after the call, its results are stored."""


def test_a_worker_that_ends_before_or_after_a_call_loses_and_doubles_nothing(
    board, encoder, tmp_path, change_calls
):
    local, spread = board("local", uri="local"), board(uri="spread")
    expected = reindex(local)["release"]
    left = tmp_path / "left"
    left.mkdir()

    def leave_once(run, call):
        name = call.func.__name__
        if name not in LEAVES:
            return run(call)
        marker = str(left / name)
        return run(partial(engine_steps.call_and_leave_once, marker, LEAVES[name], call))

    change_calls(leave_once)

    assert reindex(spread)["release"] == expected
    assert {marker.name for marker in left.iterdir()} == LEAVES.keys()
    assert vectors_in(lake_of(spread), encoder) == vectors_in(lake_of(local), encoder)


def test_errors_of_a_step_are_raised_as_they_are_and_one_that_ends_every_worker_is_named(board):
    with open_engine(board(more="workers = 1")) as opened:
        with pytest.raises(SourceError, match=r"^The source is gone\.$"):
            opened.run(partial(engine_steps.fail, "own"))
        with pytest.raises(KeyError, match="column") as unexpected:
            opened.run(partial(engine_steps.fail, "unexpected"))
        with pytest.raises(PegboardError, match="Strange: one and two"):
            opened.run(partial(engine_steps.fail, "strange"))
        assert opened.run(partial(engine_steps.add, 1, two=2)) == 3
        with pytest.raises(PegboardError, match=r"leave .*Finished work is kept\. If .*memory was"):
            opened.run(partial(engine_steps.leave))

    assert "engine_steps.py" in "".join(traceback.format_exception(unexpected.value))


def test_a_worker_loads_its_encoder_once_and_bounds_the_threads_of_its_libraries(
    board, monkeypatch
):
    monkeypatch.setattr("flows.engines.processors", lambda: 6)
    for name in thread_limits(1):
        monkeypatch.delenv(name, raising=False)
    index = IndexSettings(encoder="hashing/64")

    with open_engine(board()) as opened:
        assert (opened.workers, opened.threads) == (2, 3)
        calls = [partial(engine_steps.describe, index) for _ in range(6)]
        seen = DirectRunner().each([partial(opened.run, call) for call in calls], 2)

    processes = {row["pid"] for row in seen}
    assert os.getpid() not in processes
    assert len({(row["pid"], row["encoder"]) for row in seen}) == len(processes) <= 2
    assert [row["limits"] for row in seen] == [{"3"}] * 6


def test_hosted_encoders_stay_in_the_build_which_limits_their_requests(
    board, monkeypatch, encoder, change_calls
):
    configuration, names = board(), set()
    monkeypatch.setattr("flows.reindex.runs_here", lambda _: False)

    def note(_, call):
        names.add(call.func.__name__)
        return call()

    change_calls(note)

    assert reindex(configuration)["encoded"] == 41
    assert names == CALLS - {"encode_missing"}


@pytest.mark.skipif(not Path("/proc").exists(), reason="there is no /proc to see processes in")
def test_workers_end_with_a_build_that_is_killed(workshop):
    script = """
import os, signal, sys
from functools import partial
from flows.engines import Engine
engine = Engine("board", {}, 1)
print(engine.run(partial(os.getpid)), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=GUARD, cwd=ROOT
    )

    worker, deadline = Path("/proc", done.stdout.strip()), time.monotonic() + GUARD
    while worker.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not worker.exists()


def test_dask_that_is_not_installed_is_an_error_that_says_what_to_install(board, monkeypatch):
    monkeypatch.setattr("flows.engines.find_spec", lambda _: None)

    with pytest.raises(ConfigurationError, match=r"pip install \./index '\.\[dask\]'"):
        reindex(board("dask", 'address = "tcp://127.0.0.1:9"'))


@pytest.fixture
def dask(workshop, monkeypatch):
    """A function that starts a part of a Dask cluster as a process."""
    pytest.importorskip("distributed", reason="the extra [dask] is not installed")
    # Its workers have no other way to find the tests.
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), *sys.path]))
    children = []

    def start(part, *options):
        command = [sys.executable, "-m", f"distributed.cli.dask_{part}", "--no-dashboard"]
        command += ["--scheduler-file", str(workshop.folder / "scheduler.json"), *options]
        quiet = subprocess.DEVNULL
        children.append(start_child(command, cwd=workshop.folder, stdout=quiet, stderr=quiet))

    yield start
    for child in reversed(children):
        end_child(child)


@pytest.mark.slow
def test_a_dask_cluster_publishes_the_same_release_although_a_worker_ends(
    board, dask, workshop, tmp_path, monkeypatch
):
    monkeypatch.setattr("flows.engines.CONNECT_SECONDS", GUARD)
    expected = reindex(board("local", uri="local"))["release"]
    dask("scheduler", "--host", "127.0.0.1", "--port", "0")
    for _ in range(2):
        dask("worker", "--nthreads", "1")
    file, deadline = workshop.folder / "scheduler.json", time.monotonic() + GUARD
    while not file.exists() or not file.read_text("utf-8"):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    address = json.loads(file.read_text("utf-8"))["address"]
    configuration = board("dask", f'address = "{address}"', uri="spread")

    outcome = reindex(configuration)

    assert (outcome["outcome"], outcome["release"]) == ("published", expected)
    call = partial(engine_steps.add, 1, 2)
    leave_once = partial(engine_steps.call_and_leave_once, str(tmp_path / "left"), "after", call)
    with open_engine(configuration) as engine:
        assert engine.workers >= 1
        assert engine.run(leave_once) == 3
        with pytest.raises(SourceError, match=r"^The source is gone\.$"):
            engine.run(partial(engine_steps.fail, "own"))
        with pytest.raises(PegboardError, match=r"lost leave: .*Finished work is kept"):
            engine.run(partial(engine_steps.leave))


@pytest.mark.slow
def test_a_dask_cluster_that_does_not_answer_is_an_error_that_says_what_to_do(board):
    pytest.importorskip("distributed", reason="the extra [dask] is not installed")

    with pytest.raises(PegboardError, match=r"tcp://127.0.0.1:9 does not answer: .*Start a sched"):
        reindex(board("dask", 'address = "tcp://127.0.0.1:9"'))
