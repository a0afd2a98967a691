"""A board of forty tools with two indexes, by the hashing encoder, and golden queries for it."""

import json
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tasks.settings.sweep import Sweep, read_sweep
from tasks.sweep.measuring import Design, Result, design, measure_system

THINGS = ("invoice", "room", "taxi", "ticket", "parcel", "lamp", "garden", "recipe")
VERBS = {
    "book": "Reserves",
    "cancel": "Calls off",
    "list": "Shows every",
    "paint": "Colours",
    "send": "Posts",
}
INDEXES = """
[[indexes]]
name = "whole"  # every part
encoder = "hashing/48"
parts = ["name", "description", "arguments"]
shape = "single"

[[indexes]]
name = "names"
encoder = "hashing/48"
parts = ["name"]
shape = "single"
"""


def golden() -> list[dict[str, Any]]:
    """A query for each tool, in words of its description, and one for two tools of each thing."""
    single = [
        {"query": f"{text.lower()} my {thing}", "tools": [f"{verb}_{thing}"]}
        for thing in THINGS
        for verb, text in VERBS.items()
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
    release: str

    @property
    def config(self) -> Path:
        return self.folder / "pegboard.toml"

    @property
    def golden(self) -> Path:
        return self.folder / "golden.jsonl"

    def read(self, **parameters: Any) -> Sweep:
        defaults = {
            "golden": str(self.golden),
            "release": "live",
            "measures": ["Recall"],
            "k": "1..3",
        }
        return read_sweep(self.config, {**defaults, **parameters})

    def design(self, **parameters: Any) -> Design:
        return design(self.read(**parameters))

    def measure(self, **parameters: Any) -> tuple[Design, list[Result]]:
        made = self.design(**parameters)
        return made, [row for system in made.systems for row in measure_system(made, *system)]


@pytest.fixture(scope="session")
def shared_bench(tmp_path_factory, workshop_type) -> Bench:
    """Do not change it."""
    workshop = workshop_type(tmp_path_factory.mktemp("bench"))
    tools = [
        workshop.tool(f"{verb}_{thing}", f"{text} a {thing}.")
        for thing in THINGS
        for verb, text in VERBS.items()
    ]
    workshop.servers({"office": tools})
    workshop.write("golden.jsonl", "".join(json.dumps(row) + "\n" for row in golden()))
    release = workshop.run(workshop.configure(INDEXES)).release
    return Bench(workshop.folder, release.id)


@pytest.fixture
def bench(shared_bench, tmp_path) -> Bench:
    shutil.copytree(shared_bench.folder, tmp_path, dirs_exist_ok=True)
    return replace(shared_bench, folder=tmp_path)
