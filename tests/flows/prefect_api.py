"""The API of a Prefect server, as the tests of flows and deployments read it."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import httpx

T = TypeVar("T")
GUARD = 240.0
"""Seconds after which a test gives up; no verdict depends on it."""


def eventually(read: Callable[[], T], condition: Callable[[T], Any] = bool) -> T:
    """What is read once a condition holds: the server records some time after what happened."""
    deadline = time.monotonic() + GUARD
    while not condition(value := read()):
        assert time.monotonic() < deadline, f"not within {GUARD:g} s; last read: {value!r:.500}"
        time.sleep(0.5)  # a question costs the server time that the tests wait for
    return value


class Api:
    """The server at an address."""

    def __init__(self, url: str) -> None:
        self.url = url

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """The answer; retried while the server's SQLite is busy (503), as Prefect's client does."""
        response = eventually(
            lambda: httpx.request(method, self.url + path, json=body, timeout=GUARD),
            lambda answer: answer.status_code != 503,
        ).raise_for_status()
        return response.json() if response.content else None

    def get(self, path: str) -> Any:
        return self.call("GET", path)

    def post(self, path: str, **body: Any) -> Any:
        return self.call("POST", path, body)

    def runs(self, flow: str, config: Path | str) -> list[dict[str, Any]]:
        """The runs of a flow on a configuration, oldest first."""
        runs = self.post(
            "/flow_runs/filter", flows={"name": {"any_": [flow]}}, sort="EXPECTED_START_TIME_ASC"
        )
        return [run for run in runs if run["parameters"]["config"] == str(config)]

    def flow_run(self, run: str) -> dict[str, Any]:
        return self.get(f"/flow_runs/{run}")

    def state(self, run: str) -> str:
        return self.flow_run(run)["state"]["name"]

    def completed(self, run: str) -> str:
        """Wait until a run is completed; returns the name of its state."""
        state = self.ended(run)
        assert state["type"] == "COMPLETED", state["message"]
        return state["name"]

    def ended(self, run: str) -> dict[str, Any]:
        """Wait until a run has ended; returns its state."""
        return eventually(
            lambda: self.flow_run(run)["state"],
            lambda state: state["type"] in ("COMPLETED", "FAILED", "CRASHED"),
        )

    def subflows(self, run: str) -> dict[str, str]:
        """The subflow runs of a flow run: the flow's name and the run's id."""
        runs = self.post(
            "/flow_runs/filter",
            flow_runs={"parent_flow_run_id": {"any_": [run]}},
            sort="EXPECTED_START_TIME_ASC",
        )
        return {row["name"].split()[0]: row["id"] for row in runs}

    def task_runs(self, run: str) -> list[dict[str, Any]]:
        """The task runs of a flow run and of its subflows."""
        runs = [run, *self.subflows(run).values()]
        tasks = self.post("/task_runs/filter", flow_runs={"id": {"any_": runs}})
        # A subflow has a task run in its parent, too, with a number for a key.
        return [task for task in tasks if not task["dynamic_key"].isdigit()]

    def edges(self, run: str) -> dict[str, set[str]]:
        """The graph of a flow run: what each task run and subflow builds on, by their names."""
        nodes = [node for _, node in self.get(f"/flow_runs/{run}/graph-v2")["nodes"]]
        names = {node["id"]: node["label"].partition(" / ")[0] for node in nodes}
        return {
            names[node["id"]]: {names[parent["id"]] for parent in node["parents"]} for node in nodes
        }

    def events(self, prefix: str, resource: str) -> list[dict[str, Any]]:
        """The events of a resource whose names start with a prefix, oldest first."""
        body = {"event": {"prefix": [prefix]}, "resource": {"id": [resource]}, "order": "ASC"}
        return self.post("/events/filter", filter=body, limit=50)["events"]

    def automation(self, name: str) -> dict[str, Any]:
        """The automation of that name."""
        (found,) = self.post("/automations/filter", automations={"name": {"any_": [name]}})
        return found

    def task_names(self, run: str) -> list[str]:
        """The names of the completed task runs of a flow run, in alphabetical order."""
        tasks = self.task_runs(run)
        return sorted(task["name"] for task in tasks if task["state_type"] == "COMPLETED")

    def artifacts(self, run: str) -> dict[str, dict[str, Any]]:
        """The newest artifacts of a flow run by their keys without the board's suffix."""
        artifacts = self.post(
            "/artifacts/filter", flow_runs={"id": {"any_": [run]}}, sort="CREATED_DESC"
        )
        return {artifact["key"].partition("-")[0]: artifact for artifact in reversed(artifacts)}

    def log(self, run: str) -> list[str]:
        entries = self.post("/logs/filter", logs={"flow_run_id": {"any_": [run]}})
        return [entry["message"] for entry in entries]
