"""A run as a Prefect flow against the same run without Prefect: equal results, and more to see."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from flows.build import build
from flows.prefect.names import board_key
from tasks.settings.configuration import KeepSettings
from tasks.steps.prune import prune_board
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
    held = both("build", code=8)
    assert held["outcome"] == "held"
    assert both("build", code=8)["release"] == held["release"]

    phases = "snapshot plan compose embed stage gate publish report total"
    assert (published["outcome"], [*published["seconds"]]) == ("published", phases.split())
    key = board_key(str(folders[1] / "board"))
    runs = api.runs("reindex", folders[1] / "pegboard.toml")
    states = ["Planned", "Published", "Incomplete", "Held", "Held"]
    assert [run["state"]["name"] for run in runs] == states
    assert [run["state"]["type"] for run in runs[2:]] == ["FAILED"] * 3
    assert {run["name"] for run in runs} == {f"reindex extra, kit of {key}"}
    assert {tuple(run["tags"]) for run in runs} == {(f"board:{key}", "pegboard")}
    assert_steps(api, runs[1]["id"])
    assert_tags(api, runs[1])
    assert_graph(api, runs[1]["id"])
    assert_artifacts(api, runs, published["release"])
    assert_events(api, f"pegboard.board.{key}", published["release"], held["release"])
    assert_asset(api, folders[1] / "board", published["release"])


def assert_steps(api, build):
    steps = ["snapshot kit", "snapshot extra", "revise snapshots", "make plan", "compose edges"]
    steps += ["compose records", "make release spec", "stage tables", "find suspicious"]
    steps += ["gate release", "publish release", "report release"]
    for index in ("full", "fine"):
        steps += [f"compose {index}", f"compose agents of {index}"]
        steps += [f"embed emb_{index} 1", f"embed agents_{index} 1"]
    recorded = eventually(lambda: api.task_names(build), lambda names: len(names) >= len(steps))
    assert recorded == sorted(steps)


def assert_tags(api, run):
    """Phases have the tags of their run. Tasks have none: each would ask the server for a slot."""
    phases = [api.flow_run(phase) for phase in api.subflows(run["id"]).values()]
    assert [sorted(phase["tags"]) for phase in phases] == [sorted(run["tags"])] * 3
    assert [task for task in api.task_runs(run["id"]) if task["tags"]] == []


def assert_graph(api, build):
    """Each task and phase builds on those whose results it uses."""
    phases = api.subflows(build)
    assert [*phases] == ["ingest", "index", "publish"]
    edges = api.edges(build)
    assert edges["index"] == {"ingest"}
    assert edges["publish"] == {"index"}
    assert edges["report release"] == {"publish"}
    ingest = api.edges(phases["ingest"])
    assert ingest["revise snapshots"] == {"snapshot kit", "snapshot extra"}
    assert ingest["make plan"] == {"revise snapshots"}
    index = api.edges(phases["index"])
    composed = {name for name in index if name.startswith("compose")}
    assert index["make release spec"] == composed
    encoded = {name for name in index if name.startswith("embed")}
    assert index["stage tables"] == {"make release spec", *encoded}
    assert index["find suspicious"] == {"stage tables"}
    assert api.edges(phases["publish"])["publish release"] == {"gate release"}


def assert_artifacts(api, runs, release):
    built, incomplete, held = (api.artifacts(run["id"]) for run in runs[1:4])
    # On a busy machine encoding takes long enough for an artifact of its progress.
    assert built.keys() - {"embed"} == {"build", "sources", "notices", "measures", "report"}
    assert "    5 new, 0 changed, 0 removed" in built["build"]["data"]
    assert f"reports/{release}.html" in built["report"]["data"]
    assert f"Release {release} is live on" in "\n".join(api.log(runs[1]["id"]))
    rows = {row["catalog"]: row for row in json.loads(built["sources"]["data"])}
    assert {name: (row["state"], row["tools"]) for name, row in rows.items()} == {
        "kit": ("listed", 4),
        "extra": ("listed", 1),
    }
    rows = {row["catalog"]: row for row in json.loads(incomplete["sources"]["data"])}
    assert rows["extra"]["state"] == "failed"
    assert "extra.json" in rows["extra"]["problem"]
    changes = json.loads(held["changes"]["data"])
    assert {(row["change"], row["tool"]) for row in changes} == {
        ("changed", "kit/shop/open_door"),
        ("changed", "kit/shop/paint_fence"),
    }
    assert [row["passed"] for row in json.loads(held["measures"]["data"])] == [False, False]


def assert_events(api, board, published, held):
    """Each release is an event once, however often it is held, and so is a source that failed."""
    releases = eventually(
        lambda: api.events("pegboard.release.", board), lambda events: len(events) >= 2
    )
    assert [(row["event"], row["payload"]["release"]) for row in releases] == [
        ("pegboard.release.published", published),
        ("pegboard.release.held", held),
    ]
    assert releases[0]["payload"]["counts"]["tools"] == 5
    assert "Recall@1" in " ".join(releases[1]["payload"]["reasons"])
    (source,) = api.events("pegboard.source.failed", f"{board}.catalog.extra")
    assert source["payload"]["kept"] == ["*"]


def assert_asset(api, board, release):
    """The channel is an asset with its catalogs upstream; a held release does not make it anew."""
    (made,) = api.events("prefect.asset.materialization", f"file://{board}/live")
    assert made["payload"]["release"] == release
    assert made["payload"]["measures"]["passed"] is True
    upstream = {
        row["prefect.resource.id"]
        for row in made["related"]
        if row["prefect.resource.role"] == "asset"
    }
    assert upstream == {f"file://{board}/catalogs/kit", f"file://{board}/catalogs/extra"}


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


def test_a_run_publishes_though_its_worker_was_killed_and_nobody_reads_its_output(
    workshop, prefect_server, api
):
    workshop.servers({"git": [workshop.tool("create_issue", "Opens an issue.")]})
    config = workshop.configure().file
    reader, log = os.pipe()
    os.close(reader)
    script = "import sys; from flows.prefect.flows import reindex; reindex(sys.argv[1])"
    try:
        run = subprocess.run(
            [sys.executable, "-c", script, str(config)],
            env=prefect_server.environment,
            stderr=log,
            timeout=300,
        )
    finally:
        os.close(log)
    assert run.returncode == 0
    (reported,) = api.runs("reindex", config)
    assert reported["state"]["name"] == "Published"


def test_a_complete_prune_looks_for_files_of_killed_runs_though_that_was_done_recently(
    workshop, prefect_server
):
    workshop.servers({"git": [workshop.tool("create_issue", "Opens an issue.")]})
    configuration = workshop.configure()
    build(configuration)
    prune_board(workshop.uri, KeepSettings())
    file = Path(workshop.uri) / "lake" / "documents" / "killed.parquet.tmp"
    file.write_bytes(b"half")
    os.utime(file, (0, 0))
    script = (
        "import json, sys; from flows.prefect.flows import prune; "
        "prunes = [prune(sys.argv[1]), prune(sys.argv[1], complete=True)]; "
        "print(json.dumps([pruned['bytes'] for pruned in prunes]))"
    )

    run = subprocess.run(
        [sys.executable, "-c", script, str(configuration.file)],
        env=prefect_server.environment,
        capture_output=True,
        text=True,
        timeout=300,
    )

    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout.splitlines()[-1]) == [0, len(b"half")]
    assert not file.exists()
