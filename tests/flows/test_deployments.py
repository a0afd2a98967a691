"""prefect.yaml, the watch and the clean-up on a real Prefect server with a real worker.

The server is that of the test session; one worker serves all tests here, and each test has a board
of its own."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest

import pegboard
from flows.build import build
from pegboard.store.releases import ReleaseStore
from tests.children import end_child, start_child

pytestmark = pytest.mark.prefect

T = TypeVar("T")
GUARD = 240.0
"""Seconds after which a test gives up; no verdict depends on it."""
ROOT = Path(__file__).parents[2]
TOOLS = [
    {"name": "convert", "description": "Convert an amount of money to another currency."},
    {"name": "weather", "description": "The weather of a place."},
    {"name": "send_mail", "description": "Send a mail."},
]
NEW_TOOL = {"name": "book_table", "description": "Book a table in a restaurant."}


def until(condition: Callable[[], T | None], what: str) -> T:
    """The first true value of a condition."""
    deadline = time.monotonic() + GUARD
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.5)  # a question costs the server time that the tests wait for
    raise AssertionError(f"not within {GUARD:g} s: {what}")


@dataclass
class Deployed:
    """A project folder whose prefect.yaml was deployed to the server, and the worker that runs its
    deployments.
    """

    url: str
    project: Path
    environment: dict[str, str]
    worker: subprocess.Popen[bytes] | None = None

    def run(self, *command: str) -> str:
        """What a command printed that was run in the project's folder, with the server in its
        environment.
        """
        done = subprocess.run(
            [sys.executable, *command],
            cwd=self.project,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=GUARD,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def pause_schedules(self) -> None:
        """Without this, a test that is run at 03:00 or at a quarter of an hour has a run too
        many.
        """
        for deployment in self.post("/deployments/filter"):
            for schedule in deployment["schedules"]:
                path = f"/deployments/{deployment['id']}/schedules/{schedule['id']}"
                self.call("PATCH", path, {"active": False})

    def need_worker(self) -> None:
        if self.worker is None:
            with (self.project.parent / "worker.log").open("ab") as log:
                self.worker = start_child(
                    [
                        sys.executable,
                        "-m",
                        "prefect",
                        "worker",
                        "start",
                        "--pool",
                        "pegboard",
                        "--type",
                        "process",
                    ],
                    cwd=self.project,
                    env=self.environment,
                    stdout=log,
                    stderr=log,
                )

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """What the API answers, asked again while its SQLite is busy (503), as Prefect's own client
        does.
        """

        def answer() -> httpx.Response | None:
            response = httpx.request(method, self.url + path, json=body, timeout=60)
            return None if response.status_code == 503 else response

        response = until(answer, f"an answer to {method} {path}").raise_for_status()
        return response.json() if response.content else None

    def get(self, path: str) -> Any:
        return self.call("GET", path)

    def post(self, path: str, body: dict[str, Any] | None = None) -> Any:
        return self.call("POST", path, body or {})

    def runs(self, flow: str, config: Path) -> list[dict[str, Any]]:
        """The flow runs of a configuration, oldest first."""
        runs = self.post(
            "/flow_runs/filter",
            {"flows": {"name": {"any_": [flow]}}, "sort": "EXPECTED_START_TIME_ASC"},
        )
        return [run for run in runs if run["parameters"]["config"] == str(config)]

    def flow_run(self, run: str) -> dict[str, Any]:
        return self.get(f"/flow_runs/{run}")

    def state(self, run: str) -> str:
        return self.flow_run(run)["state"]["name"]

    def artifact(self, run: str, key: str) -> dict[str, Any]:
        """The newest artifact of a run under a key."""
        body = {
            "flow_runs": {"id": {"any_": [run]}},
            "artifacts": {"key": {"any_": [key]}},
            "sort": "CREATED_DESC",
        }
        return self.post("/artifacts/filter", body)[0]

    def events(self, catalog: str) -> list[dict[str, Any]]:
        """The events that say that a catalog changed."""
        wanted = {
            "event": {"name": ["catalog.changed"]},
            "resource": {"id": [f"pegboard.catalog.{catalog}"]},
        }
        return self.post("/events/filter", {"filter": wanted})["events"]

    def deployed(self, name: str, config: Path | str) -> str:
        """Start a run of a deployment; returns its id."""
        deployment = self.get(f"/deployments/name/{name}")["id"]
        return self.post(
            f"/deployments/{deployment}/create_flow_run", {"parameters": {"config": str(config)}}
        )["id"]

    def taken_slots(self) -> int:
        return self.get("/deployments/name/reindex/nightly")["global_concurrency_limit"][
            "active_slots"
        ]

    def watch(self, config: Path) -> str:
        """Run `watch/sources` to its end; returns the id of the run."""
        self.need_worker()
        run = self.deployed("watch/sources", config)
        until(lambda: self.state(run) == "Completed", "the watch is completed")
        return run


@pytest.fixture(scope="module")
def prefect(prefect_server, tmp_path_factory: pytest.TempPathFactory) -> Generator[Deployed]:
    """The real prefect.yaml, deployed to the server with its schedules paused, and a worker."""
    project = tmp_path_factory.mktemp("deployed") / "project"
    project.mkdir()
    shutil.copy(ROOT / "prefect.yaml", project)
    write_board(project)
    deployed = Deployed(prefect_server.url, project, prefect_server.environment)
    try:
        deployed.run("-m", "prefect", "work-pool", "create", "pegboard", "--type", "process")
        deployed.need_worker()  # it starts on another core meanwhile
        deployed.run("-m", "prefect", "--no-prompt", "deploy", "--all")
        deployed.pause_schedules()
        yield deployed
    finally:
        if deployed.worker is not None:
            end_child(deployed.worker)


def write_board(
    folder: Path, catalog: str = "acme", tools: list[dict[str, str]] = TOOLS, more: str = ""
) -> Path:
    """A configuration with one small catalog and its own board."""
    (folder / "tools.json").write_text(json.dumps({"tools": tools}))
    config = folder / "pegboard.toml"
    config.write_text(
        f'[board]\nuri = "board"\nreport = false\n[[indexes]]\nencoder = "hashing/256"\n'
        f'[catalogs.{catalog}]\ntype = "mcp-dump"\npath = "tools.json"\nagent = "office"\n{more}'
    )
    return config


def live(config: Path) -> str:
    channel = ReleaseStore(str(config.parent / "board")).channel("live")
    assert channel is not None
    return channel.release


def test_every_deployment_is_a_flow_that_can_be_loaded(prefect):
    deployments = {
        deployment["name"]: deployment for deployment in prefect.post("/deployments/filter")
    }

    assert deployments.keys() == {"nightly", "sources", "by-hand"}
    nightly = deployments["nightly"]
    assert [schedule["schedule"]["cron"] for schedule in nightly["schedules"]] == ["0 3 * * *"]
    assert nightly["global_concurrency_limit"]["limit"] == 1
    assert nightly["concurrency_options"]["collision_strategy"] == "ENQUEUE"
    assert all(
        deployment["parameters"] == {"config": "pegboard.toml"}
        for deployment in deployments.values()
    )


def test_the_nightly_deployment_publishes_the_release_of_a_direct_run_and_of_a_flow_by_the_command(
    prefect, tmp_path
):
    for name in ("direct", "flow"):
        (tmp_path / name).mkdir()
        write_board(tmp_path / name)

    direct = build(tmp_path / "direct" / "pegboard.toml")
    command = (
        "-m",
        "pegboard",
        "build",
        "--prefect",
        "-c",
        str(tmp_path / "flow" / "pegboard.toml"),
    )
    flow = json.loads(prefect.run(*command, "--json", "--quiet"))
    prefect.need_worker()
    printed = prefect.run(
        "-m",
        "prefect",
        "deployment",
        "run",
        "reindex/nightly",
        "--param",
        "config=pegboard.toml",
        "--watch",
        "--watch-interval",
        "1",
    )

    assert "Completed" in printed
    assert direct["outcome"] == flow["outcome"] == "published"
    assert direct["release"] == flow["release"] == live(prefect.project / "pegboard.toml")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A configuration whose board was published by a direct run, and the outcome of that run."""
    config = write_board(tmp_path_factory.mktemp("built"), "office")
    return config, build(config)


def test_a_watch_starts_exactly_one_run_for_a_catalog_that_changed_and_none_otherwise(
    prefect, built
):
    config, before = built

    seen = prefect.watch(config)
    assert json.loads(prefect.artifact(seen, "sources")["data"])[0]["changed"] == "no"
    assert prefect.events("office") == []

    write_board(config.parent, "office", [*TOOLS, NEW_TOOL])
    prefect.watch(config)
    (event,) = until(lambda: prefect.events("office"), "the event arrived")
    assert event["payload"] == {"catalog": "office", "config": str(config)}
    requested = until(lambda: prefect.runs("reindex", config), "a run")[0]
    until(lambda: prefect.state(requested["id"]) == "Completed", "the run is completed")
    assert requested["parameters"]["catalog"] == "office"
    assert live(config) != before["release"]
    board = pegboard.open(str(config.parent / "board"))
    assert [hit.tool.id for hit in board.search("book a table", k=1)] == [
        "office/office/book_table"
    ]

    # Events are handled in order: a run that the first watch had asked for would be there by now.
    assert len(prefect.events("office")) == 1
    assert len(prefect.runs("reindex", config)) == 1


@contextmanager
def source_that_does_not_answer() -> Generator[tuple[str, threading.Event]]:
    """The address of an OpenAPI document that is never sent, and the event that someone asks for
    it.
    """
    asked, over = threading.Event(), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.set()
            over.wait()

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/openapi.json", asked
        finally:
            over.set()
            server.shutdown()
            thread.join()


def endless(folder: Path, url: str) -> Path:
    """A configuration whose run does not end as long as its source does not answer."""
    folder.mkdir()
    return write_board(
        folder, more=f'[catalogs.silent]\ntype = "openapi"\nurl = "{url}"\ntimeout = 900\n'
    )


def start(prefect: Deployed, config: Path, asked: threading.Event) -> str:
    """Start a run in the worker, and wait until it lists its source."""
    prefect.need_worker()
    asked.clear()
    run = prefect.deployed("reindex/nightly", config)
    assert asked.wait(GUARD)
    return run


def kill(prefect: Deployed, run: str) -> None:
    """Kill the worker and the process of a run, as a power cut would."""
    worker, prefect.worker = prefect.worker, None
    assert worker is not None
    flow = prefect.flow_run(run)["labels"]["pegboard.process.pid"]
    parent = int(Path(f"/proc/{flow}/stat").read_text().rpartition(")")[2].split()[1])
    assert parent == worker.pid, "it is no process that this test started"
    os.kill(worker.pid, signal.SIGKILL)
    os.kill(flow, signal.SIGKILL)
    worker.wait()
    until(lambda: not runs(flow), "the flow's process is gone")


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_watch_ends_a_run_that_was_killed_and_the_waiting_one_gets_its_turn(prefect, tmp_path):
    quick = write_board(tmp_path)
    with source_that_does_not_answer() as (url, asked):
        killed = start(prefect, endless(tmp_path / "endless", url), asked)
        kill(prefect, killed)
    waiting = prefect.deployed("reindex/nightly", quick)
    prefect.need_worker()
    until(
        lambda: prefect.state(waiting) == "AwaitingConcurrencySlot",
        "the next run waits for the killed one",
    )
    assert prefect.state(killed) == "Running"

    prefect.watch(quick)

    assert prefect.state(killed) == "Crashed"
    until(lambda: prefect.state(waiting) == "Completed", "the waiting run is completed")
    assert live(quick)


def test_a_run_ends_one_whose_lease_expired_and_keeps_the_slot_until_it_is_killed_and_ended_itself(
    prefect, tmp_path
):
    with source_that_does_not_answer() as (url, asked):
        config = endless(tmp_path / "endless", url)
        first = start(prefect, config, asked)
        kill(prefect, first)
        # What the server does by itself when the lease expires, some five minutes after the kill.
        lease = {
            "lease_id": prefect.flow_run(first)["state"]["state_details"][
                "deployment_concurrency_lease_id"
            ]
        }
        prefect.post("/v2/concurrency_limits/decrement-with-lease", lease)
        assert (prefect.state(first), prefect.taken_slots()) == ("Running", 0)

        second = start(prefect, config, asked)
        assert (prefect.state(first), prefect.taken_slots()) == ("Crashed", 1)
        assert prefect.run("-m", "flows.prefect.stale_runs").startswith("0 stale runs")
        assert prefect.state(second) == "Running"

        kill(prefect, second)
        assert prefect.taken_slots() == 1
        assert second in prefect.run("-m", "flows.prefect.stale_runs")
        assert (prefect.state(second), prefect.taken_slots()) == ("Crashed", 0)
