"""What `pegboard deploy` makes, on a real Prefect server with a real worker.

One worker serves all tests here, and each test has a board of its own."""

import json
import os
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
from flows.prefect.deployments import PENDING_SECONDS
from flows.prefect.flows import HEARTBEAT_SECONDS
from flows.prefect.names import board_key
from pegboard.store.releases import ReleaseStore
from tests.children import end_child, start_child
from tests.flows.prefect_api import GUARD, Api, eventually

pytestmark = pytest.mark.prefect

TOOLS = [
    {"name": "convert", "description": "Convert an amount of money to another currency."},
    {"name": "weather", "description": "The weather of a place."},
]
MIN_WITHIN = 10
"""Seconds that Prefect allows a trigger to wait for an event, at least."""


class Deployed(Api):
    """A board that is deployed, and the worker that runs its deployments."""

    def __init__(self, server, project: Path) -> None:
        super().__init__(server.url)
        self.project, self.environment = project, server.environment
        self.worker: subprocess.Popen[bytes] | None = None

    def python(self, *arguments: str) -> str:
        """What `python -m ...` prints in the project's folder."""
        done = self.attempt(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def attempt(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """`python -m ...` in the project's folder, which may fail."""
        return subprocess.run(
            [sys.executable, "-m", *arguments],
            cwd=self.project,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=GUARD,
        )

    def need_worker(self) -> None:
        if self.worker is None:
            command = f"{sys.executable} -m prefect worker start --pool pegboard --type process"
            with (self.project.parent / "worker.log").open("ab") as log:
                self.worker = start_child(
                    command.split(), cwd=self.project, env=self.environment, stdout=log, stderr=log
                )

    def start(self, config: Path | str, **parameters: Any) -> str:
        """Start a build of the deployment in the worker; returns its id."""
        self.need_worker()
        path = f"/deployments/{self.deployment('reindex/project')['id']}/create_flow_run"
        return self.post(path, parameters={"config": str(config), **parameters})["id"]

    def deployment(self, name: str) -> dict[str, Any]:
        return self.get(f"/deployments/name/{name}")

    def warnings(self, task_run: str) -> list[str]:
        """The warnings in the log of a task run."""
        entries = self.post("/logs/filter", logs={"task_run_id": {"any_": [task_run]}})
        return [entry["message"] for entry in entries if entry["level"] == WARNING]

    def kill_process(self, run: str) -> None:
        """Kill the process of a run."""
        process = int(self.flow_run(run)["infrastructure_pid"].rpartition(":")[2])
        assert stat(process)[1] == str(self.worker.pid), "it is no process that this test started"
        os.kill(process, signal.SIGKILL)
        eventually(lambda: stat(process)[0] in "ZX")

    def kill(self, run: str) -> None:
        """Kill the worker and the process of a run, as a power cut would."""
        os.kill(self.worker.pid, signal.SIGSTOP)
        self.kill_process(run)
        self.worker.kill()
        self.worker.wait()
        self.worker = None

    def shorten(self, name: str, seconds: int) -> None:
        """Have an automation wait no longer than some seconds."""
        automation = self.automation(name)
        automation["trigger"]["within"] = seconds
        kept = ("name", "description", "enabled", "tags", "trigger", "actions")
        self.call(
            "PUT", f"/automations/{automation['id']}", {part: automation[part] for part in kept}
        )


def stat(pid: int) -> list[str]:
    """The state of a process, its parent and more; X if it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ["X"]


@pytest.fixture(scope="module")
def prefect(prefect_server, tmp_path_factory) -> Generator[Deployed]:
    """A project whose board is deployed without a schedule, and a worker."""
    project = tmp_path_factory.mktemp("deployed") / "project"
    project.mkdir()
    write_board(project)
    deployed = Deployed(prefect_server, project)
    try:
        deployed.python("pegboard", "deploy", "--cron", "none")
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


def test_deploy_makes_deployments_with_typed_described_parameters_and_their_schedules(prefect):
    prefect.python("pegboard", "deploy", "--prune", "0 4 * * 0", "--timezone", "Europe/Berlin")
    printed = prefect.python("pegboard", "deploy", "--cron", "none", "--json")

    deployed = json.loads(printed)
    assert deployed["name"] == "project"
    assert [*deployed["deployments"]] == ["reindex", "evaluate", "prune", "watch"]
    resource = f"pegboard.board.{board_key(str(prefect.project / 'board'))}"
    assert deployed["resource"] == resource
    for flow in deployed["deployments"]:
        row = prefect.deployment(f"{flow}/project")
        assert row["parameters"] == {"config": "pegboard.toml"}
        assert row["tags"] == ["pegboard", resource.replace("pegboard.board.", "board:")]
        assert row["schedules"] == []
        properties = row["parameter_openapi_schema"]["properties"]
        assert [name for name, part in properties.items() if not part.get("description")] == []
    names = [row["name"] for row in prefect.post("/automations/filter")]
    assert len([name for name in names if name.startswith("pegboard project: ")]) == 3


def test_a_deployed_build_publishes_the_release_of_a_direct_run_and_is_named_after_its_board(
    prefect, tmp_path
):
    direct = build(write_board(tmp_path / "direct"))
    run = prefect.start("pegboard.toml")
    assert prefect.completed(run) == "Published"

    assert direct["outcome"] == "published"
    assert direct["release"] == live(prefect.project / "pegboard.toml")
    key = board_key(str(prefect.project / "board"))
    assert prefect.flow_run(run)["name"] == f"reindex acme of {key}"


def test_a_watch_starts_a_build_when_a_source_changes_and_a_second_watch_ends(prefect):
    config = prefect.project / "pegboard.toml"
    prefect.need_worker()
    path = f"/deployments/{prefect.deployment('watch/project')['id']}/create_flow_run"
    parameters = {"config": "pegboard.toml", "interval": 1}
    watch = prefect.post(path, parameters=parameters)["id"]
    count = len(prefect.runs("reindex", "pegboard.toml"))

    first = eventually(lambda: prefect.runs("reindex", "pegboard.toml")[count:])[0]["id"]
    prefect.completed(first)
    before = live(config)
    (prefect.project / "tools.json").write_text(json.dumps({"tools": TOOLS[:1]}))
    second = eventually(lambda: prefect.runs("reindex", "pegboard.toml")[count + 1 :])[0]["id"]

    assert prefect.completed(second) == "Published"
    assert live(config) != before
    skipped = prefect.post(path, parameters=parameters)["id"]
    assert prefect.completed(skipped) == "Skipped"
    assert prefect.state(watch) == "Running"
    cancelling = {"type": "CANCELLING", "name": "Cancelling"}
    prefect.post(f"/flow_runs/{watch}/set_state", state=cancelling, force=True)
    eventually(lambda: prefect.state(watch) == "Cancelled")


def test_a_watch_whose_process_was_killed_starts_again_before_its_schedule(prefect):
    prefect.python("pegboard", "deploy", "--cron", "none", "--watch", "0 0 1 1 *")
    prefect.need_worker()
    path = f"/deployments/{prefect.deployment('watch/project')['id']}/create_flow_run"
    watch = prefect.post(path)["id"]
    eventually(lambda: prefect.state(watch) == "Running")
    runs = {run["id"] for run in prefect.runs("watch", "pegboard.toml")}

    prefect.kill_process(watch)

    assert prefect.ended(watch)["type"] == "CRASHED"
    again = eventually(
        lambda: [
            run
            for run in prefect.runs("watch", "pegboard.toml")
            if run["id"] not in runs and not run["auto_scheduled"]
        ]
    )
    (started,) = again
    eventually(lambda: prefect.state(started["id"]) == "Running")
    prefect.python("pegboard", "deploy", "--cron", "none")
    cancelling = {"type": "CANCELLING", "name": "Cancelling"}
    prefect.post(f"/flow_runs/{started['id']}/set_state", state=cancelling, force=True)
    eventually(lambda: prefect.state(started["id"]) == "Cancelled")


def test_a_board_of_two_names_has_the_automations_of_the_name_deployed_last(prefect):
    tag = f"board:{board_key(str(prefect.project / 'board'))}"

    def automations():
        return prefect.post("/automations/filter", automations={"tags": {"all_": [tag]}})

    prefect.python("pegboard", "deploy", "--name", "second", "--cron", "none")
    of_second = automations()
    prefect.python("pegboard", "deploy", "--cron", "none")
    of_project = automations()

    for name, rows in (("second", of_second), ("project", of_project)):
        assert {row["name"].partition(": ")[0] for row in rows} == {f"pegboard {name}"}
        (trigger,) = [row for row in rows if row["actions"][0]["type"] == "run-deployment"]
        deployment = prefect.deployment(f"reindex/{name}")["id"]
        assert trigger["actions"][0]["deployment_id"] == deployment


def test_the_event_of_a_changed_catalog_starts_one_run_of_its_own_board_without_any_payload(
    prefect, tmp_path
):
    other = tmp_path / "elsewhere" / "project"
    other.parent.mkdir()
    config = write_board(other, "office")
    deploy = ("pegboard", "deploy", "-c", str(config), "--cron", "none")
    refused = prefect.attempt(*deploy)
    assert refused.returncode == 2
    assert "reindex/project deploys another board" in refused.stderr
    before = prefect.deployment("reindex/project")
    resource = json.loads(prefect.python(*deploy, "--name", "other", "--json"))["resource"]
    assert prefect.deployment("reindex/project")["pull_steps"] == before["pull_steps"]
    runs = len(prefect.runs("reindex", "pegboard.toml"))

    prefect.need_worker()
    event = ("event", "emit", "pegboard.catalog.changed", "--resource-id")
    prefect.python("prefect", *event, f"{resource}.catalog.office")

    started = eventually(
        lambda: [
            row
            for row in prefect.runs("reindex", "pegboard.toml")
            if row["deployment_id"] == prefect.deployment("reindex/other")["id"]
        ]
    )
    assert [row["parameters"]["catalog"] for row in started] == ["office"]
    assert prefect.completed(started[0]["id"]) == "Published"
    assert live(config)
    assert len(prefect.runs("reindex", "pegboard.toml")) == runs + 1


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
                f'[catalogs.silent]\ntype = "openapi"\nurl = "{url}"\n'
                "timeout = 900\nattempts = 1\n",
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
    published = prefect.start(config, allow_missing=True)
    assert prefect.completed(published) == "Published"
    unchanged = prefect.start(config)
    assert prefect.completed(unchanged) == "Unchanged"
    strict = prefect.start(config, strict=True)
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


def test_a_run_of_the_command_waits_for_a_deployed_build_of_its_board(prefect, tmp_path):
    with source_that_does_not_answer() as (silent, listed, over):
        config = write_board(tmp_path, more=silent)
        deployed = prefect.start(config, allow_missing=True)
        assert listed.wait(GUARD)
        command = [sys.executable, "-m", "pegboard", "build", "-c", str(config), "--json"]
        progress = tmp_path / "progress"
        with progress.open("ab") as lines:
            waiting = start_child(
                command, env=prefect.environment, stdout=subprocess.PIPE, stderr=lines
            )
        try:
            eventually(lambda: "Another run builds this board" in progress.read_text("utf-8"))
            (_, second) = prefect.runs("reindex", config)
            assert prefect.task_runs(second["id"]) == []
            over.set()
            printed, _ = waiting.communicate(timeout=GUARD)
        finally:
            end_child(waiting)

    assert prefect.completed(deployed) == "Published"
    assert json.loads(printed)["outcome"] == "unchanged"


def test_a_run_whose_machine_was_lost_is_crashed_with_its_phase_and_the_next_builds_the_board(
    prefect, tmp_path
):
    prefect.shorten("pegboard project: lost runs end", HEARTBEAT_SECONDS + 5)
    with source_that_does_not_answer() as (silent, listed, _):
        config = write_board(tmp_path, more=silent)
        killed = prefect.start(config)
        assert listed.wait(GUARD)
        prefect.kill(killed)
    (phase,) = prefect.subflows(killed).values()
    assert [prefect.state(run) for run in (killed, phase)] == ["Running", "Running"]

    waiting = prefect.start(write_board(tmp_path))

    assert prefect.completed(waiting) == "Published"
    assert prefect.state(killed) == "Crashed"
    assert prefect.ended(phase)["name"] == "Crashed"
    assert live(config)


def test_a_run_that_is_lost_before_it_starts_is_crashed(prefect):
    name = "pegboard project: runs lost before they start end"
    usual = prefect.automation(name)["trigger"]["within"]
    path = f"/deployments/{prefect.deployment('reindex/project')['id']}/create_flow_run"
    prefect.shorten(name, MIN_WITHIN)
    try:
        run = prefect.post(path, state={"type": "PENDING"})["id"]
        state = prefect.ended(run)
    finally:
        prefect.shorten(name, usual)

    assert (state["type"], usual) == ("CRASHED", PENDING_SECONDS)


def test_a_missing_configuration_is_one_message_without_a_traceback(prefect):
    run = prefect.start("none.toml")

    state = eventually(
        lambda: prefect.flow_run(run)["state"], lambda state: state["type"] == "FAILED"
    )

    message = f"No configuration at {prefect.project}/none.toml. "
    assert message in state["message"]
    log = eventually(lambda: prefect.log(run), lambda lines: "Engine execution" in " ".join(lines))
    assert len([line for line in log if message in line]) >= 1
    assert not [line for line in log if "Traceback" in line]
