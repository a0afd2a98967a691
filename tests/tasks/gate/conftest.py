"""A small shop whose descriptions name its tools, golden queries for it, and builds of it."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pegboard.store.releases import Release
from tasks.gate.results import read_details
from tasks.steps.gate import gate_release
from tasks.steps.publish import publish_release

VERBS = {"open": "Opens", "paint": "Paints", "sell": "Sells", "clean": "Cleans"}
THINGS = ("door", "window", "roof", "fence", "bicycle")
TOOLS = {
    f"tool_{verb[0]}{thing[0]}": f"{text} the {thing} of a customer."
    for verb, text in VERBS.items()
    for thing in THINGS
}
QUERIES = [
    {"query": f"please {verb} my {thing}", "tools": [f"tool_{verb[0]}{thing[0]}"], "kind": verb}
    for verb in VERBS
    for thing in THINGS
]
SWAPPED = ("tool_od", "tool_cb")


@dataclass(frozen=True)
class Built:
    """What a build returned; `gate` is the decision in the manifest, and `details` its details."""

    gate: dict[str, Any]
    release: Release | None
    details: dict[str, Any]

    @property
    def rules(self) -> list[bool | None]:
        return [rule["passed"] for rule in self.gate["rules"]]


class Shop:
    """A workshop with one server. `build` runs from the sources to the channel."""

    def __init__(self, workshop: Any) -> None:
        self.workshop = workshop
        self.lines("golden.jsonl", QUERIES)
        self.sells(TOOLS)
        self.configured = ""
        self.catalogs = None

    def lines(self, file: str, values: list[dict[str, Any]]) -> Path:
        return self.workshop.write(file, "\n".join(map(json.dumps, values)))

    def sells(self, tools: dict[str, str]) -> None:
        self.workshop.servers(
            {"shop": [self.workshop.tool(name, text) for name, text in tools.items()]}
        )

    def configure(self, gate: str = 'queries = "golden.jsonl"\n', rest: str = "") -> None:
        """Set what the configuration has under `[gate]`, if anything, and before it."""
        self.configured = rest + (f"[gate]\n{gate}" if gate else "")

    @property
    def configuration(self) -> Any:
        return self.workshop.configure(self.configured, self.catalogs)

    @property
    def live(self) -> str | None:
        channel = self.workshop.store.channel()
        return channel.release if channel else None

    @property
    def releases(self) -> list[str]:
        return [release.id for release in self.workshop.store.all()]

    def build(self, *, publish: bool = True) -> Built:
        configuration = self.configuration
        run = self.workshop.run(configuration, until="stage")
        if run.pins is None:
            return Built({}, None, {})
        staging = (configuration, run.plan, run.snapshots, run.spec, run.pins)
        gate = gate_release(*staging)
        assert gate is not None
        if not publish:
            return Built(gate, None, {})
        release = publish_release(*staging, gate)
        return Built(gate, release, read_details(self.workshop.uri, release) or {})


@pytest.fixture
def shop(workshop: Any) -> Shop:
    return Shop(workshop)


@pytest.fixture(scope="session")
def first_builds(
    tmp_path_factory: pytest.TempPathFactory, workshop_type: Any
) -> Callable[[str], tuple[str, Built]]:
    """A board with the tools, built once for each gate. Do not change it."""
    builds: dict[str, tuple[str, Built]] = {}

    def first_build(gate: str) -> tuple[str, Built]:
        if gate not in builds:
            shop = Shop(workshop_type(tmp_path_factory.mktemp("shop")))
            shop.configure(gate)
            builds[gate] = shop.workshop.uri, shop.build()
        return builds[gate]

    return first_build


@pytest.fixture
def publish_first(
    shop: Shop, first_builds: Callable[[str], tuple[str, Built]]
) -> Callable[[str], Built]:
    """Give the shop a gate and a board with a first release; returns what its build returned."""

    def publish_first(gate: str) -> Built:
        uri, first = first_builds(gate)
        shutil.copytree(uri, shop.workshop.uri)
        shop.configure(gate)
        return first

    return publish_first


@pytest.fixture(scope="session")
def tools() -> dict[str, str]:
    return TOOLS


@pytest.fixture(scope="session")
def queries() -> list[dict[str, Any]]:
    return QUERIES


@pytest.fixture(scope="session")
def sabotaged() -> dict[str, str]:
    """The tools of the shop, two of them with each other's description."""
    left_tool, right_tool = SWAPPED
    return {**TOOLS, left_tool: TOOLS[right_tool], right_tool: TOOLS[left_tool]}


@pytest.fixture(scope="session")
def swapped_ids() -> set[str]:
    return {f"kit/shop/{name}" for name in SWAPPED}
