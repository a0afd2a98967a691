"""What the tests of steps share: `snapshots` lists catalogs, `written` stores enrichments,
`scripted_llm` starts an LLM as a process of its own, with `thousand_tools` to write about."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tasks import maintain
from tasks.enrichment.enrichment_sets import write_enrichments
from tasks.snapshot import take_snapshot
from tests.children import end_child, start_child

SERVER = Path(__file__).parents[1] / "scripted_llm.py"
VERBS = (
    "archive", "open", "close", "approve", "print",
    "send", "check", "cancel", "copy", "sort",
)  # fmt: skip
THINGS = (
    "invoice", "contract", "order", "ticket", "report",
    "permit", "receipt", "letter", "claim", "quote",
)  # fmt: skip
PLACES = (
    "bakery", "harbour", "museum", "school", "garage",
    "clinic", "theatre", "library", "brewery", "station",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ScriptedLlm:
    """A running server: its address, and the log of what it decided."""

    url: str
    log: Path

    def events(self) -> list[dict[str, Any]]:
        """The log; a line that is being written at this moment is left out."""
        lines = self.log.read_text("utf-8").split("\n")[:-1]
        return [json.loads(line) for line in lines]

    def paid(self) -> list[tuple[str, str, str]]:
        """(product, subject, outcome) of every reply that was sent whole."""
        return [
            (event["product"], event["subject"], event["outcome"])
            for event in self.events()
            if event.get("paid")
        ]


@pytest.fixture
def scripted_llm(tmp_path: Path) -> Iterator[Callable[..., ScriptedLlm]]:
    """Start a server with the options of scripted_llm.py; it ends with the test."""
    with ExitStack() as stack:

        def start(*options: str) -> ScriptedLlm:
            log = tmp_path / "llm.log"
            command = [sys.executable, str(SERVER), str(log), *options]
            process = start_child(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            stack.enter_context(process)
            stack.callback(end_child, process)
            port = process.stdout.readline().strip()
            return ScriptedLlm(f"http://127.0.0.1:{port}/v1", log)

        yield start


@pytest.fixture
def thousand_tools() -> list[dict[str, Any]]:
    """A thousand tools with names that differ in words."""
    return [
        {
            "name": f"{verb}_{place}_{thing}",
            "description": f"Lets you {verb} a {thing} of the {place}.",
            "inputSchema": {"type": "object", "properties": {"reference": {"type": "string"}}},
        }
        for verb in VERBS
        for thing in THINGS
        for place in PLACES
    ]


@pytest.fixture
def large_from(monkeypatch):
    """A function that sets the rows from which a table has a vector index, and the rows of one of
    its partitions.
    """

    def large_from(rows, partition):
        monkeypatch.setattr(maintain, "IN_MEMORY_ROWS", rows)
        monkeypatch.setattr(maintain, "PARTITION_ROWS", partition)

    return large_from


@pytest.fixture
def snapshots(workshop):
    """A function that lists all catalogs of a configuration: catalog -> digest."""

    def take(configuration=None):
        configuration = configuration or workshop.configure()
        return {
            catalog: take_snapshot(configuration, catalog).digest
            for catalog in configuration.catalogs
        }

    return take


@pytest.fixture
def written(workshop):
    """A function that stores what an LLM wrote about tools and agents, and returns the folder."""

    def write(tools=None, agents=None):
        return write_enrichments(workshop.lake, tools or {}, agents or {})

    return write
