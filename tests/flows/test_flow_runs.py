"""A run as a Prefect flow against the same run without Prefect: equal results, and more to see."""

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.flows.prefect_api import Api, eventually

pytestmark = pytest.mark.prefect

CATALOGS = "".join(
    f'[catalogs.{name}]\ntype = "mcp-dump"\npath = "{name}.json"\n' for name in ("kit", "extra")
)
GATE = '[gate]\nqueries = "golden.jsonl"\nrules = ["Recall@1 >= 0.99"]\n'
INDEXES = '[[indexes]]\nname = "full"\n[[indexes]]\nname = "fine"\nshape = "multi"\n'
TOOLS = {
    "open_door": "Opens the door of a customer.",
    "paint_fence": "Paints the fence of a garden.",
    "sell_bicycle": "Sells a bicycle to somebody.",
    "clean_window": "Cleans a window from the outside.",
}
GOLDEN = "\n".join(
    json.dumps({"query": text.lower(), "tools": [name]}) for name, text in TOOLS.items()
)


@pytest.fixture
def api(prefect_server):
    return Api(prefect_server.url)


@pytest.fixture
def folders(workshop):
    """The folder of the direct runs, and that of the flows."""
    return workshop.folder, workshop.folder / "as-flow"


def comparable(outcome, folder):
    """An outcome without what differs between two runs: the folder, times, and sizes."""
    copy = json.loads(json.dumps(outcome).replace(str(folder), "FOLDER"))
    copy["seconds"] = [*copy["seconds"]]
    for key, part in (("gate", "at"), ("report", "bytes")):
        if copy[key]:
            del copy[key][part]
    return copy


def finished_steps(err):
    """Which steps began and ended, in order; lines between depend on the time that they took."""
    lines = [
        line.partition(",")[0] for line in err.splitlines() if not line.startswith("pegboard ")
    ]
    counts = [line.partition(": ")[2].split(" of ") for line in lines]
    return [line for line, n in zip(lines, counts, strict=True) if len(n) == 1 or n[0] == n[1]]


def list_tools(folders, kit, *, extra=True):
    """Write what the sources list into both folders."""
    plants = {"water_plants": "Waters the plants."}
    for folder in folders:
        for name, tools in {"kit": kit, "extra": plants}.items():
            rows = [{"name": name, "description": text} for name, text in tools.items()]
            (folder / f"{name}.json").write_text(json.dumps({"shop": {"tools": rows}}), "utf-8")
        if not extra:
            (folder / "extra.json").unlink()


def test_a_flow_run_has_the_results_exit_codes_and_progress_of_a_direct_run(
    command, as_flow, workshop, folders, api
):
    workshop.write("golden.jsonl", GOLDEN)
    config = workshop.configure(INDEXES + GATE, CATALOGS, board="report = true").file
    for file in (workshop.folder / "golden.jsonl", config):
        shutil.copy(file, folders[1])

    def both(*arguments, code):
        """Run a command directly and as a flow; returns the outcome."""
        direct = command(*arguments, "--json")
        flow = as_flow(*arguments, "--json")
        assert direct[0] == flow.returncode == code, flow.stderr
        outcomes = [json.loads(out) for out in (direct[1], flow.stdout)]
        assert comparable(outcomes[0], folders[0]) == comparable(outcomes[1], folders[1])
        assert finished_steps(direct[2]) == finished_steps(flow.stderr)
        return outcomes[0]

    list_tools(folders, TOOLS)
    assert both("plan", code=0)["outcome"] == "planned"
    published = both("build", code=0)
    list_tools(folders, TOOLS, extra=False)
    assert both("build", "--strict", code=3)["catalogs"]["extra"]["kept"] == ["*"]
    names = list(TOOLS)
    list_tools(folders, dict(zip([names[1], names[0], *names[2:]], TOOLS.values(), strict=True)))
    assert both("build", code=8)["outcome"] == "held"

    phases = "snapshot plan compose embed stage gate publish report total"
    assert (published["outcome"], [*published["seconds"]]) == ("published", phases.split())
    runs = api.runs("reindex", folders[1] / "pegboard.toml")
    states = ["Planned", "Published", "Incomplete", "Held"]
    assert [run["state"]["name"] for run in runs] == states
    assert [run["state"]["type"] for run in runs[2:]] == ["FAILED", "FAILED"]
    assert {run["name"] for run in runs} == {f"reindex all of {folders[1]}/pegboard.toml"}

    release, build = published["release"], runs[1]["id"]
    assert "    5 new, 0 changed, 0 removed" in api.artifacts(build)["build"]["data"]
    assert f"Release {release} is live on" in "\n".join(api.log(build))

    steps = ["snapshot kit", "snapshot extra", "revise snapshots", "make plan", "compose edges"]
    steps += ["compose records", "make release spec", "stage tables", "find suspicious"]
    steps += ["gate release", "publish release", "report release"]
    for index in ("full", "fine"):
        steps += [f"compose {index}", f"compose agents of {index}"]
        steps += [f"embed emb_{index} 1", f"embed agents_{index} 1"]
    recorded = eventually(lambda: api.task_names(build), lambda names: len(names) >= len(steps))
    assert recorded == sorted(steps)


def kill_run(how, config, environment):
    """Run `killed_run.py` to its end."""
    worker = Path(__file__).with_name("killed_run.py")
    killed = subprocess.run(
        [sys.executable, worker, how, config], cwd=config.parent, env=environment, timeout=300
    )
    assert killed.returncode == -signal.SIGKILL


@pytest.mark.parametrize("order", [("build", "flow"), ("flow", "build")])
def test_each_kind_of_run_continues_a_killed_one_of_the_other(
    command, as_flow, workshop, prefect_server, api, order
):
    config = workshop.configure().file
    tools = [workshop.tool(f"task_{number}", f"Does {number}.") for number in range(50)]
    workshop.servers({"git": tools})
    kill_run(order[0], config, prefect_server.environment)
    arguments = ("build", "-c", str(config), "--json", "--quiet")

    out = command(*arguments)[1] if order[1] == "build" else as_flow(*arguments).stdout

    outcome = json.loads(out)
    assert (outcome["outcome"], outcome["encoded"]) == ("published", 31)  # of 50 and their agent
