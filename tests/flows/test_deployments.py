"""prefect.yaml, the watch and the clean-up on a real Prefect server with a real worker.

One worker serves all tests here, and each test has a board of its own."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import pegboard
from flows.build import build
from pegboard.store.releases import ReleaseStore
from tests.children import end_child, start_child
from tests.flows.prefect_api import GUARD, Api, eventually

pytestmark = pytest.mark.prefect

ROOT = Path(__file__).parents[2]
TOOLS = [
    {"name": "convert", "description": "Convert an amount of money to another currency."},
    {"name": "weather", "description": "The weather of a place."},
]
NEW_TOOL = {"name": "book_table", "description": "Book a table in a restaurant."}


class Deployed(Api):
    """A project whose prefect.yaml is deployed, and the worker that runs its deployments."""

    def __init__(self, server, project: Path) -> None:
        super().__init__(server.url)
        self.project, self.environment = project, server.environment
        self.worker: subprocess.Popen[bytes] | None = None

    def python(self, *arguments: str) -> str:
        """What `python -m ...` prints in the project's folder."""
        done = subprocess.run(
            [sys.executable, "-m", *arguments],
            cwd=self.project,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=GUARD,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def need_worker(self) -> None:
        if self.worker is None:
            command = f"{sys.executable} -m prefect worker start --pool pegboard --type process"
            with (self.project.parent / "worker.log").open("ab") as log:
                self.worker = start_child(
                    command.split(), cwd=self.project, env=self.environment, stdout=log, stderr=log
                )

    def start(self, deployment: str, config: Path | str) -> str:
        """Start a run of a deployment in the worker; returns its id."""
        self.need_worker()
        deployment_id = self.get(f"/deployments/name/{deployment}")["id"]
        path = f"/deployments/{deployment_id}/create_flow_run"
        return self.post(path, parameters={"config": str(config)})["id"]

    def watch(self, config: Path) -> str:
        """Run `watch/sources` to its end; returns the id of the run."""
        run = self.start("watch/sources", config)
        self.completed(run)
        return run

    def events(self, catalog: str) -> list[dict]:
        """The events that say that a catalog changed."""
        changed = {"event": {"name": ["catalog.changed"]}}
        resource = {"resource": {"id": [f"pegboard.catalog.{catalog}"]}}
        return self.post("/events/filter", filter=changed | resource)["events"]

    def taken_slots(self) -> int:
        nightly = self.get("/deployments/name/reindex/nightly")
        return nightly["global_concurrency_limit"]["active_slots"]

    def kill(self, run: str) -> None:
        """Kill the worker and the process of a run, as a power cut would."""
        worker, self.worker = self.worker, None
        flow = self.flow_run(run)["labels"]["pegboard.process.pid"]
        assert stat(flow)[1] == str(worker.pid), "it is no process that this test started"
        os.kill(worker.pid, signal.SIGKILL)
        os.kill(flow, signal.SIGKILL)
        worker.wait()
        eventually(lambda: stat(flow)[0] in "ZX")


def stat(pid: int) -> list[str]:
    """The state of a process, its parent and more; X if it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ["X"]


@pytest.fixture(scope="module")
def prefect(prefect_server, tmp_path_factory) -> Generator[Deployed]:
    """The real prefect.yaml, deployed with its schedules paused, and a worker."""
    project = tmp_path_factory.mktemp("deployed") / "project"
    project.mkdir()
    shutil.copy(ROOT / "prefect.yaml", project)
    write_board(project)
    deployed = Deployed(prefect_server, project)
    try:
        deployed.python("prefect", "work-pool", "create", "pegboard", "--type", "process")
        deployed.need_worker()  # it starts on another core meanwhile
        deployed.python("prefect", "--no-prompt", "deploy", "--all")
        # Otherwise a test at 03:00 or at a quarter of an hour has a run too many.
        for deployment in deployed.post("/deployments/filter"):
            for schedule in deployment["schedules"]:
                path = f"/deployments/{deployment['id']}/schedules/{schedule['id']}"
                deployed.call("PATCH", path, {"active": False})
        yield deployed
    finally:
        if deployed.worker is not None:
            end_child(deployed.worker)


def write_board(folder: Path, catalog: str = "acme", tools=TOOLS, more: str = "") -> Path:
    """A configuration with one small catalog and its own board."""
    folder.mkdir(exist_ok=True)
    (folder / "tools.json").write_text(json.dumps({"tools": tools}))
    config = folder / "pegboard.toml"
    config.write_text(
        f'[board]\nuri = "board"\nreport = false\n[[indexes]]\nencoder = "hashing/256"\n'
        f'[catalogs.{catalog}]\ntype = "mcp-dump"\npath = "tools.json"\nagent = "office"\n{more}'
    )
    return config


def live(config: Path) -> str:
    return ReleaseStore(str(config.parent / "board")).channel("live").release


def test_the_nightly_deployment_publishes_the_release_of_a_direct_run_and_of_a_flow_by_the_command(
    prefect, tmp_path
):
    deployments = {row["name"]: row for row in prefect.post("/deployments/filter")}
    nightly = deployments["nightly"]
    engines = {"processes", "dask", "ray"}
    assert deployments.keys() == {"nightly", "sources", "by-hand", *engines}
    assert [schedule["schedule"]["cron"] for schedule in nightly["schedules"]] == ["0 3 * * *"]
    assert nightly["global_concurrency_limit"]["limit"] == 1
    assert nightly["concurrency_options"]["collision_strategy"] == "ENQUEUE"
    for name, deployment in deployments.items():
        parameters = dict(deployment["parameters"])
        assert parameters.pop("run", {}).get("engine") == (name if name in engines else None)
        assert parameters == {"config": "pegboard.toml"}

    direct = build(write_board(tmp_path / "direct"))
    config = write_board(tmp_path / "flow")
    command = ("build", "--prefect", "-c", str(config), "--json", "--quiet")
    flow = json.loads(prefect.python("pegboard", *command))
    run = prefect.start("reindex/nightly", "pegboard.toml")
    assert prefect.completed(run) == "Published"

    assert direct["outcome"] == flow["outcome"] == "published"
    assert direct["release"] == flow["release"] == live(prefect.project / "pegboard.toml")


def test_a_watch_starts_exactly_one_run_for_a_catalog_that_changed_and_none_otherwise(
    prefect, tmp_path
):
    config = write_board(tmp_path, "office")
    before = build(config)

    seen = prefect.watch(config)
    assert json.loads(prefect.artifacts(seen)["sources"]["data"])[0]["changed"] == "no"
    assert prefect.events("office") == []

    write_board(tmp_path, "office", [*TOOLS, NEW_TOOL])
    prefect.watch(config)
    (event,) = eventually(lambda: prefect.events("office"))
    assert event["payload"] == {"catalog": "office", "config": str(config)}
    requested = eventually(lambda: prefect.runs("reindex", config))[0]
    assert prefect.completed(requested["id"]) == "Published"
    assert requested["parameters"]["catalog"] == "office"
    assert live(config) != before["release"]
    (hit,) = pegboard.open(str(tmp_path / "board")).search("book a table", k=1)
    assert hit.tool.id == "office/office/book_table"
    # Events are handled in order: a run that the first watch had asked for would be there by now.
    assert (len(prefect.events("office")), len(prefect.runs("reindex", config))) == (1, 1)


@contextmanager
def source_that_does_not_answer() -> Generator[tuple[str, threading.Event]]:
    """The table of a catalog that never answers, and the event that someone lists it."""
    listed, over = threading.Event(), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            listed.set()
            over.wait()

        def log_message(self, *_) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}/openapi.json"
        try:
            yield f'[catalogs.silent]\ntype = "openapi"\nurl = "{url}"\ntimeout = 900\n', listed
        finally:
            over.set()
            server.shutdown()
            thread.join()


def test_a_watch_ends_a_run_that_was_killed_and_the_waiting_one_gets_its_turn(prefect, tmp_path):
    quick = write_board(tmp_path)
    with source_that_does_not_answer() as (silent, listed):
        killed = prefect.start("reindex/nightly", write_board(tmp_path / "endless", more=silent))
        assert listed.wait(GUARD)
        prefect.kill(killed)
    waiting = prefect.start("reindex/nightly", quick)
    eventually(lambda: prefect.state(waiting), lambda state: state == "AwaitingConcurrencySlot")
    assert prefect.state(killed) == "Running"

    prefect.watch(quick)

    assert prefect.state(killed) == "Crashed"
    assert prefect.completed(waiting) == "Published"
    assert live(quick)


def test_a_missing_configuration_is_one_message_without_a_traceback(prefect):
    run = prefect.start("reindex/nightly", "none.toml")

    state = eventually(
        lambda: prefect.flow_run(run)["state"], lambda state: state["type"] == "FAILED"
    )

    message = f"No configuration at {prefect.project}/none.toml. "
    assert message in state["message"]
    log = eventually(lambda: prefect.log(run), lambda lines: "Engine execution" in " ".join(lines))
    assert len([line for line in log if message in line]) >= 1
    assert not [line for line in log if "Traceback" in line]


def test_a_run_ends_one_whose_lease_expired_and_keeps_the_slot_until_it_is_killed_and_ended_itself(
    prefect, tmp_path
):
    with source_that_does_not_answer() as (silent, listed):
        config = write_board(tmp_path, more=silent)
        first = prefect.start("reindex/nightly", config)
        assert listed.wait(GUARD)
        prefect.kill(first)
        # What the server does by itself when the lease expires, some five minutes after the kill.
        details = prefect.flow_run(first)["state"]["state_details"]
        lease = details["deployment_concurrency_lease_id"]
        prefect.post("/v2/concurrency_limits/decrement-with-lease", lease_id=lease)
        assert (prefect.state(first), prefect.taken_slots()) == ("Running", 0)

        listed.clear()
        second = prefect.start("reindex/nightly", config)
        assert listed.wait(GUARD)
        assert (prefect.state(first), prefect.taken_slots()) == ("Crashed", 1)
        assert prefect.python("flows.prefect.stale_runs").startswith("0 stale runs")
        assert prefect.state(second) == "Running"

        prefect.kill(second)
        assert prefect.taken_slots() == 1
        assert second in prefect.python("flows.prefect.stale_runs")
        assert (prefect.state(second), prefect.taken_slots()) == ("Crashed", 0)
