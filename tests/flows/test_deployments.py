"""prefect.yaml and prefect.automations.yaml on a real Prefect server with a real worker.

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
from logging import WARNING
from pathlib import Path
from typing import Any

import pytest

from flows.build import build
from flows.prefect.runner import board_slug
from pegboard.store.releases import ReleaseStore
from tests.children import end_child, start_child
from tests.flows.prefect_api import GUARD, Api, eventually

pytestmark = pytest.mark.prefect

ROOT = Path(__file__).parents[2]
TOOLS = [
    {"name": "convert", "description": "Convert an amount of money to another currency."},
    {"name": "weather", "description": "The weather of a place."},
]
HEARTBEAT_SECONDS = 30
"""What prefect.yaml sets; the least that Prefect allows."""
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

    def start(self, deployment: str, config: Path | str, **parameters: Any) -> str:
        """Start a run of a deployment in the worker; returns its id."""
        self.need_worker()
        deployment_id = self.get(f"/deployments/name/{deployment}")["id"]
        path = f"/deployments/{deployment_id}/create_flow_run"
        return self.post(path, parameters={"config": str(config), **parameters})["id"]

    def warnings(self, task_run: str) -> list[str]:
        """The warnings in the log of a task run."""
        entries = self.post("/logs/filter", logs={"task_run_id": {"any_": [task_run]}})
        return [entry["message"] for entry in entries if entry["level"] == WARNING]

    def slots(self, config: Path) -> int:
        """How many runs have the slot of a board."""
        slug = board_slug(str(config.parent / "board"))
        return self.get(f"/v2/concurrency_limits/pegboard-{slug}")["active_slots"]

    def kill(self, run: str) -> None:
        """Kill the worker and the process of a run, as a power cut would."""
        worker, self.worker = self.worker, None
        flow = int(self.flow_run(run)["infrastructure_pid"].rpartition(":")[2])
        assert stat(flow)[1] == str(worker.pid), "it is no process that this test started"
        os.kill(worker.pid, signal.SIGKILL)
        os.kill(flow, signal.SIGKILL)
        worker.wait()
        eventually(lambda: stat(flow)[0] in "ZX")

    def automate(self) -> None:
        """Create the automations of the project, with the shortest wait for a heartbeat."""
        text = (ROOT / "prefect.automations.yaml").read_text("utf-8")
        file = self.project / "prefect.automations.yaml"
        file.write_text(text.replace("within: 120", f"within: {HEARTBEAT_SECONDS + 5}"), "utf-8")
        self.python("prefect", "automation", "create", "--from-file", file.name)


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
    assert deployments.keys() >= {"nightly", "processes"}
    assert [schedule["schedule"]["cron"] for schedule in nightly["schedules"]] == ["0 3 * * *"]
    assert nightly["global_concurrency_limit"]["limit"] == 1
    assert nightly["concurrency_options"]["collision_strategy"] == "ENQUEUE"
    assert all(row["parameters"]["config"] == "pegboard.toml" for row in deployments.values())
    assert all(row["tags"] == ["pegboard"] for row in deployments.values())

    direct = build(write_board(tmp_path / "direct"))
    config = write_board(tmp_path / "flow")
    command = ("build", "--prefect", "-c", str(config), "--json", "--quiet")
    flow = json.loads(prefect.python("pegboard", *command))
    run = prefect.start("reindex/nightly", "pegboard.toml")
    assert prefect.completed(run) == "Published"

    assert direct["outcome"] == flow["outcome"] == "published"
    assert direct["release"] == flow["release"] == live(prefect.project / "pegboard.toml")


def test_the_event_of_a_changed_catalog_starts_one_run_that_lists_it(prefect, tmp_path):
    config = write_board(tmp_path, "office")
    before = build(config)
    write_board(tmp_path, "office", [*TOOLS, NEW_TOOL])
    payload = json.dumps({"catalog": "office", "config": str(config)})
    event = ("event", "emit", "catalog.changed", "--resource-id", "pegboard.catalog.office")

    prefect.need_worker()
    prefect.python("prefect", *event, "--payload", payload)

    (requested,) = eventually(lambda: prefect.runs("reindex", config))
    assert prefect.completed(requested["id"]) == "Published"
    assert requested["parameters"]["catalog"] == "office"
    assert live(config) != before["release"]


@contextmanager
def source_that_does_not_answer() -> Generator[tuple[str, threading.Event, threading.Event]]:
    """The table of a catalog that does not answer, the event that it is listed, and the event that
    lets it answer.
    """
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
            yield (
                f'[catalogs.silent]\ntype = "openapi"\nurl = "{url}"\ntimeout = 900\n',
                listed,
                over,
            )
        finally:
            over.set()
            server.shutdown()
            thread.join()


def test_a_dead_source_is_a_failed_task_with_a_warning_in_every_run_and_fails_a_strict_one(
    prefect, tmp_path
):
    dead = '[catalogs.dead]\ntype = "mcp-dump"\npath = "gone.json"\n'
    config = write_board(tmp_path, more=dead)
    published = prefect.start("reindex/nightly", config)
    assert prefect.completed(published) == "Published"
    unchanged = prefect.start("reindex/nightly", config)
    assert prefect.completed(unchanged) == "Unchanged"
    strict = prefect.start("reindex/nightly", config, strict=True)
    state = prefect.ended(strict)
    assert (state["type"], state["name"]) == ("FAILED", "Incomplete")
    assert "dead: " in state["message"]
    for run in (published, unchanged, strict):
        tasks = eventually(
            lambda run=run: {task["name"]: task for task in prefect.task_runs(run)},
            lambda tasks: {"revise snapshots", "snapshot acme", "snapshot dead"} <= tasks.keys(),
        )
        failed = tasks["snapshot dead"]
        assert (failed["state_type"], failed["state_name"]) == ("FAILED", "SourceFailed")
        assert "gone.json" in failed["state"]["message"]
        assert tasks["snapshot acme"]["state_type"] == "COMPLETED"
        assert "gone.json" in prefect.artifacts(run)["build"]["data"]
        (warning,) = eventually(lambda task=failed["id"]: prefect.warnings(task))
        assert warning.startswith("dead: ")
        assert "gone.json" in warning


def test_two_deployments_of_one_board_build_one_after_the_other(prefect, tmp_path):
    with source_that_does_not_answer() as (silent, listed, over):
        config = write_board(tmp_path, more=silent)
        first = prefect.start("reindex/nightly", config)
        assert listed.wait(GUARD)
        second = prefect.start("reindex/processes", config, run={"engine": "local"})
        eventually(lambda: prefect.log(second), lambda log: "Another run builds" in " ".join(log))
        assert (prefect.slots(config), prefect.task_runs(second)) == (1, [])
        over.set()

        assert [prefect.completed(run) for run in (first, second)] == ["Published", "Unchanged"]
    tasks = [prefect.task_runs(run) for run in (first, second)]
    assert max(row["end_time"] for row in tasks[0]) < min(row["start_time"] for row in tasks[1])


def test_a_run_whose_machine_was_lost_is_crashed_and_the_next_builds_the_board(prefect, tmp_path):
    prefect.automate()
    with source_that_does_not_answer() as (silent, listed, _):
        config = write_board(tmp_path, more=silent)
        killed = prefect.start("reindex/nightly", config)
        assert listed.wait(GUARD)
        prefect.kill(killed)
    assert prefect.state(killed) == "Running"

    waiting = prefect.start("reindex/nightly", write_board(tmp_path))

    assert prefect.completed(waiting) == "Published"
    assert prefect.state(killed) == "Crashed"
    assert live(config)


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
