"""`pegboard sweep` as a person runs it, with a Prefect server of its own: killed in the middle, and run again."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from pegboard.releases import ReleaseStore

PEGBOARD = [sys.executable, "-m", "pegboard.cli"]
INDEXES = """
default_index = "full"  # as it was

[[indexes]]
name = "full"

[[indexes]]
name = "names"
parts = ["name"]

[sweep]
golden = "golden.jsonl"
tools = [6, "all"]
plans = ["search", "clauses", "dummy-steps"]
k = "1..5"
timed = 2
"""
DEEDS = ("create", "delete", "rename")
THINGS = ("issue", "branch", "forecast", "lunch")


@pytest.fixture
def environment(tmp_path):
    """No Prefect server, profile or home of the person who runs the tests."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "PEGBOARD_"))}
    return {**kept, "HOME": str(tmp_path / "home")}


@pytest.fixture
def folder(workshop):
    """A catalog of twelve tools, with a golden query for each."""
    tools = {f"{deed}_{thing}": f"{deed.title()}s a {thing}." for deed in DEEDS for thing in THINGS}
    workshop.servers({"office": [workshop.tool(name, said) for name, said in tools.items()]})
    catalogs = '[catalogs.kit]\ntype = "mcp-dump"\npath = "servers.json"\n'
    top, _, rest = INDEXES.partition("\n\n")
    workshop.write("pegboard.toml", f'{top}\n\n[board]\nuri = "board"\n{catalogs}\n{rest}')
    golden = [{"query": f"please {name.replace('_', ' a ')}", "tools": [name]} for name in tools]
    workshop.write("golden.jsonl", "".join(json.dumps(one) + "\n" for one in golden))
    return workshop.folder


def done(folder):
    return {
        file.name: file.stat().st_mtime_ns
        for file in (folder / "sweep" / "cells").glob("*.parquet")
        if "values" not in file.name
    }


@pytest.mark.slow
def test_a_sweep_that_was_killed_goes_on_and_writes_its_choice(folder, environment):
    with subprocess.Popen([*PEGBOARD, "sweep", "--quiet"], cwd=folder, env=environment) as running:
        deadline = time.monotonic() + 150
        while not done(folder) and running.poll() is None and time.monotonic() < deadline:
            time.sleep(0.005)
        running.send_signal(signal.SIGKILL)
        assert running.wait(10) == -signal.SIGKILL
    before = done(folder)
    assert 0 < len(before) < 12

    again = subprocess.run(
        [*PEGBOARD, "sweep", "--write", "--json"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=180,
    )

    assert again.returncode == 0, again.stderr
    assert f"cells: {len(before)} of 12, done before\n" in again.stderr
    outcome = json.loads(again.stdout)
    assert outcome["cells"] == {"total": 12, "finished_before": len(before)}
    after = done(folder)
    assert len(after) == 12
    assert {name: after[name] for name in before} == before
    assert outcome["tools"] == 12
    assert outcome["choice"]["best"]["n"] == 12
    assert [one["tools"] for one in outcome["samples"]] == [6, 12]
    assert all("which says little" in warning for warning in outcome["warnings"])

    store = ReleaseStore(str(folder / "sweep" / "board"))
    assert [(one.name, one.release) for one in store.channels()] == [("sweep", outcome["release"])]
    assert not (folder / "board").exists()  # what is configured is not touched
    assert sorted(file.name for file in folder.glob(".pegboard.sweep*")) == []
    chosen, text = outcome["choice"]["recommended"], (folder / "pegboard.toml").read_text("utf-8")
    assert f'default_index = "{chosen["index"]}"  # as it was' in text
    assert f'plan = "{chosen["plan"]}"' in text
    assert (folder / "sweep" / "sweep.html").is_file()


def test_what_is_wrong_is_told_before_prefect_is_started(folder, environment):
    start = time.monotonic()
    command = [*PEGBOARD, "sweep", "--plan", "nosuch", "-k", "x", "--golden", "none.jsonl"]

    refused = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60)

    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith("pegboard sweep: The sweep cannot run, for 3 reasons:\n")
    assert "Traceback" not in refused.stderr
    assert time.monotonic() - start < 10
    assert not (folder / "sweep").exists()
