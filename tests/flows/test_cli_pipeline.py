"""`pegboard init`, `plan` and `build` as a person runs them, with a Prefect server of their own.

A build costs a start of Prefect (ten seconds, the first in a folder more), so the story of a board is one test, and what needs no Prefect is apart.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import pegboard

PEGBOARD = [sys.executable, "-m", "pegboard.cli"]


@pytest.fixture
def environment(tmp_path):
    """No Prefect server, profile or home of the person who runs the tests; no board either."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "PEGBOARD_"))}
    return {**kept, "HOME": str(tmp_path / "home")}


@pytest.fixture
def command(workshop, environment):
    """Run a command in the workshop's folder; returns exit code, stdout and stderr."""

    def run(*arguments):
        done = subprocess.run(
            [*PEGBOARD, *arguments], cwd=workshop.folder, env=environment, capture_output=True, text=True, timeout=180
        )
        return done.returncode, done.stdout, done.stderr

    return run


def servers(workshop, *names):
    workshop.servers({"git": [workshop.tool(name, f"Does {name} to an issue.") for name in names]})


def descendants(pid):
    """The processes below one of ours, by their ids."""
    parents = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        parents[int(status.parent.name)] = int(fields[1])
    found = [pid]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one and child not in found]
    return found[1:]


def wait_for(condition, seconds=90.0):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    return condition()


def test_init_writes_an_example_that_loads_and_keeps_what_is_there(command, workshop):
    path = workshop.folder / "pegboard.toml"

    code, out, err = command("init")
    assert (code, err) == (0, "")
    assert out == "Wrote pegboard.toml. Name your sources in it, then: pegboard build -c pegboard.toml\n"
    path.write_text("mine", "utf-8")

    code, out, err = command("init")
    assert (code, out) == (2, "")
    assert err == "pegboard init: pegboard.toml is there already. Give another path, or --force to replace it.\n"
    assert path.read_text("utf-8") == "mine"

    code, out, _ = command("init", "--force", "--json")
    assert (code, json.loads(out)) == (0, {"written": "pegboard.toml"})
    assert command("init", "--stdout") == (0, path.read_text("utf-8"), "")
    assert "[board]" in path.read_text("utf-8")


@pytest.mark.parametrize("verb", ["build", "plan"])
def test_a_bad_configuration_is_said_without_waiting_for_prefect(command, workshop, verb):
    workshop.write("pegboard.toml", '[board]\nuri = "board"\nchanel = "live"\n[catalogs.kit]\ntype = "nosuch"\n')
    start = time.monotonic()

    code, out, err = command(verb)

    assert (code, out) == (2, "")
    assert err.startswith(f"pegboard {verb}: pegboard.toml has 2 problems:\n")
    assert "board.chanel: there is no such setting" in err
    assert "Traceback" not in err
    assert time.monotonic() - start < 10  # without waiting for Prefect
    assert not (workshop.folder / "board").exists()


def test_a_configuration_or_catalog_that_is_not_there_is_said(command, workshop):
    code, _, err = command("build", "-c", "none.toml")
    assert (code, err.count("\n")) == (2, 1)
    assert "There is no configuration at none.toml" in err

    servers(workshop, "one")
    workshop.configure()
    code, out, _ = command("build", "--catalog", "other", "--json")
    error = json.loads(out)["error"]
    assert (code, error["type"]) == (2, "ConfigurationError")
    assert "no catalog 'other'. It has: kit" in error["message"]


@pytest.mark.slow
def test_the_story_of_a_board(command, workshop, encoder, environment):
    """With a release live: a build that is killed in the middle, a plan, a build that publishes, one with nothing to do."""
    configuration = workshop.configure()
    servers(workshop, "create_issue", "delete_issue")
    old = workshop.run(configuration).release

    servers(workshop, "create_issue", *(f"task_{number}" for number in range(4_000)))
    build = subprocess.Popen(
        [*PEGBOARD, "build", "--quiet"],
        cwd=workshop.folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    lake = workshop.folder / "board" / "lake"
    shards = len(list(lake.glob("vectors/*/*.parquet")))
    try:
        assert wait_for(lambda: len(list(lake.glob("vectors/*/*.parquet"))) > shards or build.poll() is not None)
        below = descendants(build.pid)
    finally:
        build.kill()
        build.wait()
    assert build.returncode == -signal.SIGKILL  # the first of its four shards was done, no more
    assert below  # the Prefect server of the run, which ends with it
    assert wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in below), 20)
    assert workshop.store.channel().release == old.id
    hits = pegboard.open(workshop.uri, encoder=encoder).search("issue", 9)
    assert {hit.tool.name for hit in hits} == {"create_issue", "delete_issue"}

    servers(workshop, "create_issue", "close_issue")
    code, out, _ = command("plan", "--json")
    plan = json.loads(out)
    assert (code, plan["outcome"], plan["release"]) == (0, "planned", old.id)
    assert plan["plan"] == {
        "channel": "live",
        "live": old.id,
        "new": ["kit/git/close_issue"],
        "changed": [],
        "removed": ["kit/git/delete_issue"],
        "unchanged": 1,
        "withdrawn": [],
        "texts": {"full": {"documents": 3, "to_encode": 1}},  # the third is the agent's
        "edges": {},
    }
    assert workshop.store.all() == [old]

    code, out, err = command("build")
    live = workshop.store.channel()
    assert (code, live.generation, live.history) == (0, 2, (old.id,))
    assert "1 new, 0 changed, 1 removed, 1 unchanged tools\n" in out
    assert f"Release {live.release} is live on {workshop.uri} (1 texts encoded).\n" in out
    assert "snapshot: 1 of 1" in err
    hits = pegboard.open(workshop.uri, encoder=encoder).search("issue", 9)
    assert {hit.tool.name for hit in hits} == {"create_issue", "close_issue"}

    code, out, err = command("build", "--json", "--quiet")
    again = json.loads(out)
    assert (code, err) == (0, "")
    assert (again["outcome"], again["encoded"], again["release"]) == ("unchanged", 0, live.release)
    assert workshop.store.channel() == live

    workshop.store.rollback()
    code, out, _ = command("build")
    assert (code, workshop.store.channel().release) == (0, old.id)  # the next night does not undo what a person did
    assert f"these tools make release {live.release}, from which 'live' was rolled back. Release {old.id} stays." in out
    workshop.store.promote(live.release)
    code, out, _ = command("build")
    assert f"Nothing changed: release {live.release} stays live." in out
    assert not (workshop.folder / "home" / ".prefect").exists()  # nothing of Prefect lands in the person's home
