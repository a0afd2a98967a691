"""A run as a Prefect flow, on the server of the test session, against the same run without Prefect:
the same results, and more to look at.
"""

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest

from tests.children import end_child, start_child

pytestmark = pytest.mark.prefect

GUARD = 120.0
"""Seconds after which a test gives up; no verdict depends on it."""

# Runs commands one after another, as importing Prefect takes seconds: reads their arguments, writes
# exit code, stdout and stderr.
COMMANDS = """
import contextlib, io, json, sys
from pegboard.cli.main import main

for line in sys.stdin:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(json.loads(line))
    print(json.dumps([code, out.getvalue(), err.getvalue()]), flush=True)
"""
CATALOGS = "".join(
    f'[catalogs.{name}]\ntype = "mcp-dump"\npath = "{name}.json"\n' for name in ("kit", "extra")
)
GATE = '[gate]\nqueries = "golden.jsonl"\nrules = ["Recall@1 >= 0.99"]\n'
SWEEP = (
    '[sweep]\ngolden = "golden.jsonl"\nstrategies = ["search"]\ntools = ["all"]\nk = '
    '"1"\ntimed = 0\n'
)
INDEXES = '[[indexes]]\nname = "full"\n[[indexes]]\nname = "fine"\nshape = "multi"\n'
TOOLS = {
    "open_door": "Opens the door of a customer.",
    "paint_fence": "Paints the fence of a garden.",
    "sell_bicycle": "Sells a bicycle to somebody.",
    "clean_window": "Cleans a window from the outside.",
}
T = TypeVar("T")


class Api:
    """What the Prefect server knows of the runs of one configuration."""

    def __init__(self, url: str, config: Path) -> None:
        self.url, self.config = url, config

    def post(self, path: str, **body: Any) -> list[dict[str, Any]]:
        return (
            httpx.post(f"{self.url}/{path}/filter", json=body, timeout=60).raise_for_status().json()
        )

    def runs(self) -> list[dict[str, Any]]:
        """The flow runs, oldest first."""
        runs = self.post("flow_runs", sort="START_TIME_ASC")
        return [run for run in runs if run["parameters"]["config"] == str(self.config)]

    def of_run(self, path: str, run: str) -> list[dict[str, Any]]:
        return self.post(path, flow_runs={"id": {"any_": [run]}})

    def task_names(self, run: str) -> list[str]:
        """The names of the task runs that are completed, in alphabetical order."""
        return sorted(
            task["name"]
            for task in self.of_run("task_runs", run)
            if task["state_type"] == "COMPLETED"
        )

    def log(self, run: str) -> list[str]:
        return [
            entry["message"] for entry in self.post("logs", logs={"flow_run_id": {"any_": [run]}})
        ]


def eventually(read: Callable[[], T], condition: Callable[[T], bool]) -> T:
    """What is read once a condition holds: the server records task runs and logs some time after
    they happen.
    """
    deadline = time.monotonic() + GUARD
    while not condition(value := read()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return value


class FlowCommands:
    """Runs commands in a folder of its own with the server in its environment, as `command` does
    without.
    """

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder
        folder.mkdir()
        self._log = (folder / "commands.log").open("w+")
        self._child = start_child(
            [sys.executable, "-c", COMMANDS],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write(json.dumps(arguments) + "\n")
        self._child.stdin.flush()
        line = self._child.stdout.readline()
        assert line, (self.folder / "commands.log").read_text()
        code, out, err = json.loads(line)
        return code, out, err

    def end(self) -> None:
        end_child(self._child)
        for stream in (self._child.stdin, self._child.stdout, self._log):
            assert stream is not None
            stream.close()


@pytest.fixture
def as_flow(prefect_server, tmp_path):
    commands = FlowCommands(tmp_path / "as-flow", prefect_server.environment)
    yield commands
    commands.end()


def plain(outcome: dict[str, Any], folder: Path) -> dict[str, Any]:
    """An outcome without what differs between two runs: the folder, the time and how long it took.
    The phases stay.
    """
    copy = json.loads(json.dumps(outcome).replace(str(folder), "FOLDER"))
    copy["seconds"] = [phase for phase in copy["seconds"] if phase != "prefect"]
    for key, part in (("gate", "at"), ("report", "bytes")):
        if copy[key]:
            del copy[key][part]
    return copy


def progress_lines(err: str) -> list[str]:
    """Which steps began and ended, in order. What is printed between depends on the time that they
    took.
    """
    lines = [
        line.partition(",")[0] for line in err.splitlines() if not line.startswith("pegboard ")
    ]
    counts = [line.partition(": ")[2].split(" of ") for line in lines]
    return [
        line
        for line, count in zip(lines, counts, strict=True)
        if len(count) == 1 or count[0] == count[1]
    ]


def write(folder: Path, kit: dict[str, str], extra: bool = True) -> None:
    def saved(tools: dict[str, str]) -> str:
        return json.dumps(
            {
                "shop": {
                    "tools": [{"name": name, "description": text} for name, text in tools.items()]
                }
            }
        )

    (folder / "kit.json").write_text(saved(kit), "utf-8")
    (folder / "extra.json").write_text(saved({"water_plants": "Waters the plants."}), "utf-8")
    if not extra:
        (folder / "extra.json").unlink()


def test_a_flow_run_has_the_results_exit_codes_and_progress_of_a_direct_run(
    command, as_flow, workshop, prefect_server
):
    queries = [{"query": text.lower(), "tools": [name]} for name, text in TOOLS.items()]
    workshop.write("golden.jsonl", "\n".join(map(json.dumps, queries)))
    workshop.configure(INDEXES + GATE + SWEEP, CATALOGS, board="report = true")
    for name in ("golden.jsonl", "pegboard.toml"):
        shutil.copy(workshop.folder / name, as_flow.folder)
    names = list(TOOLS)
    swapped = dict(zip([names[1], names[0], *names[2:]], TOOLS.values(), strict=True))
    api = Api(prefect_server.url, as_flow.folder / "pegboard.toml")

    def both(*arguments: str, code: int, **sources: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Run a command directly and as a flow; returns the outcomes."""
        outcomes = []
        for run, folder in ((command, workshop.folder), (as_flow, as_flow.folder)):
            write(folder, **sources)
            ended, out, err = run(*arguments, "--json")
            assert ended == code, err
            outcomes.append((plain(json.loads(out), folder), progress_lines(err), json.loads(out)))
        direct, flow = outcomes
        assert direct[0] == flow[0]
        assert direct[1] == flow[1]
        assert "prefect" in flow[2]["seconds"]
        return direct[0], flow[2]

    planned, _ = both("plan", code=0, kit=TOOLS)
    assert planned["outcome"] == "planned"

    published, _ = both("build", code=0, kit=TOOLS)
    assert published["outcome"] == "published"
    assert published["seconds"] == [
        "load",
        "snapshot",
        "plan",
        "compose",
        "embed",
        "stage",
        "gate",
        "publish",
        "report",
        "total",
    ]

    failed, _ = both("build", "--strict", code=3, kit=TOOLS, extra=False)
    assert failed["catalogs"]["extra"]["kept"] == ["*"]

    held, _ = both("build", code=8, kit=swapped)
    assert held["outcome"] == "held"

    runs = api.runs()
    assert [run["state"]["name"] for run in runs] == ["Completed", "Completed", "Completed", "Held"]
    assert runs[3]["state"]["type"] == "FAILED"
    assert {run["name"] for run in runs} == {f"reindex all of {api.config}"}

    release, build = published["release"], runs[1]["id"]
    artifacts = {
        one["key"]: one
        for one in api.of_run("artifacts", build)
        if one["key"] in ("plan", "release", "report")
    }
    assert {key: one["type"] for key, one in artifacts.items()} == {
        "plan": "table",
        "release": "markdown",
        "report": "markdown",
    }
    assert [
        row["tools"] for row in json.loads(artifacts["plan"]["data"]) if row["change"] == "new"
    ] == [5]
    assert artifacts["release"]["data"].startswith(f"# Release `{release}`\n")
    assert {one["key"] for one in api.of_run("artifacts", build) if one["type"] == "progress"} == {
        "snapshot"
    }

    task_names = [
        "snapshot kit",
        "snapshot extra",
        "revise",
        "plan live",
        "compose full",
        "compose agents of full",
        "compose fine",
        "compose agents of fine",
        "edges",
        "records",
        "release",
        "embed full 1",
        "embed full 1",
        "embed fine 1",
        "embed fine 1",
        f"stage {release}",
        f"gate {release}",
        f"publish {release}",
        f"report {release}",
    ]
    recorded = eventually(
        lambda: api.task_names(build), lambda names: len(names) >= len(task_names)
    )
    assert recorded == sorted(task_names)


def test_commands_that_fail_end_alike(command, as_flow, workshop):
    workshop.configure()
    shutil.copy(workshop.folder / "pegboard.toml", as_flow.folder)

    for arguments in (
        ("build", "--catalog", "other"),  # a mistake that is found before the run
        ("build",),  # a source that fails and never had tools: an error of the run
    ):
        direct, flow = command(*arguments, "--quiet"), as_flow(*arguments, "--quiet")

        assert direct[0] == flow[0] != 0
        assert direct[1] == flow[1]
        assert direct[2].replace(str(workshop.folder), "") == flow[2].replace(
            str(as_flow.folder), ""
        )


def test_a_sweep_as_a_flow_names_the_choice_of_a_direct_one_and_shows_it(
    command, as_flow, workshop, prefect_server
):
    queries = [{"query": text.lower(), "tools": [name]} for name, text in TOOLS.items()]
    workshop.write("golden.jsonl", "\n".join(map(json.dumps, queries)))
    workshop.configure(INDEXES + SWEEP)
    workshop.servers({"shop": [workshop.tool(name, text) for name, text in TOOLS.items()]})
    for name in ("golden.jsonl", "pegboard.toml", "servers.json"):
        shutil.copy(workshop.folder / name, as_flow.folder)

    _, out, _ = command("sweep", "--json", "--seed", "7")
    code, out_of_flow, err = as_flow("sweep", "--json", "--seed", "7")

    direct, flow = json.loads(out), json.loads(out_of_flow)
    assert code == 0, err
    assert direct.keys() == flow.keys()
    assert [direct[key] for key in ("release", "choice", "says")] == [
        flow[key] for key in ("release", "choice", "says")
    ]
    api = Api(prefect_server.url, Path("pegboard.toml"))
    (run,) = [run for run in api.runs() if run["parameters"].get("seed") == 7]
    cells = direct["cells"]["total"]
    tasks = eventually(
        lambda: api.task_names(run["id"]),
        lambda names: (
            "report the sweep" in names
            and sum(name.startswith("measure ") for name in names) >= cells
        ),
    )
    assert {"lay out the sweep", "report the sweep"} <= set(tasks)
    assert sum(name.startswith("measure ") for name in tasks) == cells == 2
    (artifact,) = [one for one in api.of_run("artifacts", run["id"]) if one["key"] == "sweep"]
    assert artifact["data"] == "\n\n".join(direct["says"])


@pytest.mark.parametrize("order", [("build", "flow"), ("flow", "build")])
def test_each_kind_of_run_goes_on_where_a_killed_one_of_the_other_stopped(
    command, workshop, prefect_server, order
):
    config = workshop.configure().file
    workshop.servers(
        {"git": [workshop.tool(f"task_{number}", f"Does {number}.") for number in range(50)]}
    )
    environment = prefect_server.environment
    killed = subprocess.run(
        [sys.executable, Path(__file__).with_name("killed_run.py"), order[0], str(config)],
        cwd=workshop.folder,
        env=environment,
        timeout=300,
    )
    assert killed.returncode == -signal.SIGKILL

    if order[1] == "flow":
        done = subprocess.run(
            [sys.executable, "-m", "pegboard", "build", "-c", str(config), "--json", "--quiet"],
            cwd=workshop.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
        code, out = done.returncode, done.stdout
    else:
        code, out, _ = command("build", "--json", "--quiet")

    outcome = json.loads(out)
    assert (code, outcome["outcome"], outcome["encoded"]) == (
        0,
        "published",
        31,
    )  # of 50 tools and their agent


def test_a_stale_run_is_ended_by_the_next_and_that_stands_in_its_log(as_flow, prefect_server):
    write(as_flow.folder, {f"task_{number}": f"Does {number}." for number in range(50)})
    config = as_flow.folder / "pegboard.toml"
    config.write_text(
        f'[board]\nuri = "board"\nreport = false\n{CATALOGS}[[indexes]]\nencoder = "hashing/256"\n',
        "utf-8",
    )
    api = Api(prefect_server.url, config)
    subprocess.run(
        [sys.executable, Path(__file__).with_name("killed_run.py"), "flow", str(config)],
        cwd=as_flow.folder,
        env=prefect_server.environment,
        timeout=300,
    )
    (killed,) = api.runs()
    assert killed["state"]["name"] == "Running"

    code, _, err = as_flow("build", "-c", str(config), "--quiet")

    assert code == 0, err
    killed, run = api.runs()
    assert [killed["state"]["name"], run["state"]["name"]] == ["Crashed", "Completed"]
    message = (
        f"The run {killed['name']} was still Running, but its process is gone: it is Crashed now"
    )
    assert message in eventually(lambda: api.log(run["id"]), lambda log: message in log)
