"""A board of forty tools with two indexes, by a stub encoder, and golden queries for it."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tasks.settings.sweep import Sweep, read_sweep
from tasks.sweep.cells import Cell, is_done, measure_cell
from tasks.sweep.design import Design, design

THINGS = ("invoice", "room", "taxi", "ticket", "parcel", "lamp", "garden", "recipe")
DEEDS = {
    "book": "Reserves",
    "cancel": "Calls off",
    "list": "Shows every",
    "paint": "Colours",
    "send": "Posts",
}
INDEXES = """
[[indexes]]
name = "whole"  # every part
parts = ["name", "description", "arguments"]
shape = "single"

[[indexes]]
name = "names"
parts = ["name"]
shape = "single"
"""


def golden() -> list[dict[str, Any]]:
    """A query for each tool, in other words than the tool's own, and one for every two deeds with a
    thing.
    """
    single = [
        {"query": f"{said.lower()} my {thing}", "tools": [f"{deed}_{thing}"]}
        for thing in THINGS
        for deed, said in DEEDS.items()
    ]
    pairs = [
        {
            "query": f"book the {thing}, then send the {thing}",
            "tools": [f"book_{thing}", f"send_{thing}"],
        }
        for thing in THINGS
    ]
    return single + pairs


@dataclass(frozen=True)
class Bench:
    """A published board, and the steps of a sweep of it as plain calls."""

    folder: Path
    encoder: Any
    release: str

    @property
    def config(self) -> Path:
        return self.folder / "pegboard.toml"

    def read(self, **given: Any) -> Sweep:
        values = {
            "golden": str(self.folder / "golden.jsonl"),
            "release": "live",
            "timed": 2,
            "measures": ["Recall"],
            "k": "1..3",
        }
        return read_sweep(self.config, {**values, **given})

    def design(self, **given: Any) -> Design:
        return design(self.read(**given))

    def measure(self, laid: Design) -> list[Cell]:
        """Measure what is not done; returns what was."""
        todo = [cell for cell in laid.cells if not is_done(cell)]
        for cell in todo:
            measure_cell(cell, encoder=self.encoder)
        return todo


@pytest.fixture(scope="session")
def shared_bench(tmp_path_factory, workshop_type, hashing) -> Bench:
    """Do not change it."""
    workshop = workshop_type(tmp_path_factory.mktemp("bench"))
    servers = {
        "office": [
            workshop.tool(f"{deed}_{thing}", f"{said} a {thing}.")
            for thing in THINGS
            for deed, said in DEEDS.items()
        ]
    }
    workshop.servers(servers)
    workshop.write("golden.jsonl", "".join(json.dumps(one) + "\n" for one in golden()))
    encoder = hashing(48)
    release = workshop.run(workshop.configure(INDEXES), encoder=encoder).release
    return Bench(workshop.folder, encoder, release.id)


@pytest.fixture
def bench(shared_bench, tmp_path) -> Bench:
    shutil.copytree(shared_bench.folder, tmp_path, dirs_exist_ok=True)
    return replace(shared_bench, folder=tmp_path)


@pytest.fixture
def whole() -> Callable[..., Any]:
    """What a golden query of tools needs, whose names are their ids."""
    from pegboard.evaluation.golden import Needed

    return lambda *tools: Needed({tool: frozenset((tool,)) for tool in tools})
