"""What the tests share: small boards, published by the project's own run, without Prefect, on the
hashing encoder.

Helpers are reached through fixtures, since test modules cannot import each other. `workshop` is an
empty folder for boards of one's own; `board_uri` is a published board that nobody changes;
`own_board_uri` is a copy of it that a test may spoil."""

import contextlib
import gc
import json
import os
import re
import shutil
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, settings

from flows.build import BuildOptions
from flows.reindex import reindex
from flows.runner import DirectRunner
from pegboard.encoders import Encoder, load_encoder
from pegboard.store.releases import Pin, Release, ReleaseStore
from tasks.lake.files import Lake
from tasks.settings.configuration import Configuration, load_configuration
from tasks.steps.compose import Documents
from tasks.steps.edges import Edges
from tasks.steps.plan import Plan
from tasks.steps.release_spec import ReleaseSpec
from tasks.steps.snapshot import Snapshot
from tests.browser import chromium as chromium
from tests.local_llm import local_llm as serve_local_llm
from tests.prefect_server import PrefectServer
from tests.step_events import StepEvents

# LiteLLM reads its prices from its package, not from the web.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

SERVICES = {"prefect_server", "chromium", "local_llm"}
"""Fixtures that start a service for the whole session."""
# However busy the machine is: no example has a deadline, and none is too slow to make.
settings.register_profile(
    "pegboard", max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("pegboard")

STUB = "hashing/256"
# A run that stops after a phase stops before the first of these steps.
STOPS = {
    "snapshot": {"make_plan"},
    "plan": {"enrich_tools", "compose_index"},
    "compose": {"embed_shard", "stage_tables"},
    "embed": {"stage_tables"},
    "stage": {"gate_release", "publish_release"},
    "publish": {"prune_board", "report_release"},
}


def tool(name: str, description: str = "", /, **properties: str) -> dict[str, Any]:
    """A tool as an MCP server lists it; the properties are its arguments and what they mean."""
    schema = {
        "type": "object",
        "properties": {key: {"description": text} for key, text in properties.items()},
    }
    return {"name": name, "description": description, "inputSchema": schema}


SERVERS = {
    "git": [
        tool(
            "create_issue",
            "Opens an issue in a repository.",
            title="its headline",
            body="what is wrong",
        ),
        tool("list_commits", "Lists the commits of a branch.", branch="the branch's name"),
        tool("merge_branch", "Merges a branch into another.", source="from", target="into"),
        tool("delete_repository", "Deletes a repository for good."),
    ],
    "weather": [
        tool("get_forecast", "The weather forecast of a city.", city="the city", days="how many"),
        tool("getTides_v2", "High and low tide at a harbour.", harbour="its name"),
    ],
    "o'brien's": [tool("order_lunch", "Orders lunch for the office.", dish="what to eat")],
    "天気": [tool("天気予報", "東京の天気予報を教えます。", 都市="都市の名前")],
}
MONEY = {"properties": {"amount": {"type": "number"}, "to": {"type": "string"}}}
FUNCTIONS = [
    {"name": name, "description": text, "parameters": {"type": "object", **properties}}
    for name, text, properties in [
        ("convert_currency", "Converts an amount of money from one currency to another.", MONEY),
        ("list_rates", "Lists the exchange rates of today.", {}),
        ("close_ledger", "Closes the books of a month.", {}),
    ]
]
REQUESTS = [
    {"name": name, "description": text, "examples": examples}
    for name, text, *examples in [
        ("book_room", "Books a meeting room.", "where can ten people meet?", "room"),
        ("call_taxi", "Calls a taxi.", "I need a ride to the airport"),
        ("water_plants", "Waters the plants.", "the ferns look thirsty"),
    ]
]
CATALOGS = """
[catalogs.kit]
type = "mcp-dump"
path = "servers.json"

[catalogs.finance]
type = "functions"
path = "functions.json"
tags = ["money", "office"]

[catalogs.desk]
type = "records"
path = "requests.json"
agent = "desk"
agent_kind = "agent"
tags = ["office"]

[catalogs.desk.columns]
examples = "examples"
"""
INDEXES = """
[[indexes]]
name = "full"

[[indexes]]
name = "fine"
shape = "multi"
"""


@dataclass(frozen=True, slots=True)
class Run:
    """What the steps of a run returned; None from the step on before which it stopped."""

    snapshots: list[Snapshot]
    plan: Plan | None = None
    documents: list[Documents] = field(default_factory=list)
    edges: Edges | None = None
    spec: ReleaseSpec | None = None
    encoded: int = 0
    pins: dict[str, Pin] | None = None
    release: Release | None = None


class Stopped(Exception):
    """The run has come to the step before which it was to stop."""


class Recorder:
    """Keeps what each step returned by the name of the step, and stops before some steps.

    Args:
        until: the last phase.
    """

    def __init__(self, until: str) -> None:
        self.results: dict[str, list[Any]] = {}
        self._stops = STOPS[until]

    def __call__(self, event: str, results: Sequence[Any]) -> None:
        when, step = event.split()
        if when == "begin" and step in self._stops:
            raise Stopped
        if when == "end":
            self.results.setdefault(step, []).extend(results)

    def last(self, step: str) -> Any:
        return self.results[step][-1] if step in self.results else None


def on_stub(text: str) -> str:
    """The text of a configuration whose indexes name no encoder, on the hashing encoder."""
    tables = re.split(r"(?m)^(?=\[)", text)
    if not any(table.startswith("[[indexes]]") for table in tables):
        return f'{text}\n[[indexes]]\nencoder = "{STUB}"\n'
    named = re.compile(r"(?m)^encoder\s*=")
    return "".join(
        table.replace("[[indexes]]", f'[[indexes]]\nencoder = "{STUB}"', 1)
        if table.startswith("[[indexes]]") and not named.search(table)
        else table
        for table in tables
    )


class Workshop:
    """A folder with catalog files and a pegboard.toml, and the steps of a run as plain calls."""

    tool = staticmethod(tool)

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.uri = str(folder / "board")

    @property
    def store(self) -> ReleaseStore:
        return ReleaseStore(self.uri)

    @property
    def lake(self) -> Lake:
        return Lake(self.uri)

    def write(self, file: str, value: Any) -> Path:
        path = self.folder / file
        path.write_text(
            value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), "utf-8"
        )
        return path

    def servers(self, servers: Mapping[str, Sequence[Any]], file: str = "servers.json") -> None:
        """Write the saved answers of MCP servers, which the catalog `kit` lists."""
        self.write(file, {name: {"tools": list(tools)} for name, tools in servers.items()})

    def named(self, *names: str) -> dict[str, list[dict[str, Any]]]:
        """Return the server `git` with a tool for each name."""
        return {"git": [tool(name, f"Does {name}.") for name in names]}

    def configure(
        self, indexes: str = "", catalogs: str | None = None, board: str = ""
    ) -> Configuration:
        """Write a pegboard.toml with the catalog `kit`, or with the given ones, and read it.

        Indexes that name no encoder have the hashing encoder. Neither reports nor public tables are
        written unless `board` asks for them."""
        catalogs = catalogs or '[catalogs.kit]\ntype = "mcp-dump"\npath = "servers.json"\n'
        report = "".join(
            f"{name} = false\n"
            for name in ("report", "public_lake")
            if not re.search(rf"(?m)^{name}\s*=", board)
        )
        text = f'[board]\nuri = "board"\n{report}{board}\n{catalogs}\n{indexes}'
        return load_configuration(self.write("pegboard.toml", on_stub(text)))

    def full(self) -> Configuration:
        """Write three catalogs of every kind of agent and two indexes, and read their
        configuration.
        """
        self.servers(SERVERS)
        self.write("functions.json", FUNCTIONS)
        self.write("requests.json", REQUESTS)
        return self.configure(INDEXES, CATALOGS)

    def publish(self, servers: Mapping[str, Sequence[Any]], **how: Any) -> Run:
        """Write the servers, and do a whole run with the default configuration."""
        self.servers(servers)
        return self.run(self.configure(), **how)

    def run(
        self,
        configuration: Configuration,
        until: str = "publish",
        *,
        channel: str = "live",
        allow_removal: bool = False,
        encoder: Encoder | None = None,
        enrichments: str | None = None,
    ) -> Run:
        """The project's own run, as far as the phase `until`.

        `encoder` stands in for the configured ones, by its name; `enrichments` is the folder of the
        lake with what was written about tools."""
        changes: dict[str, Any] = {
            "board": configuration.board.model_copy(update={"channel": channel})
        }
        if encoder is not None:
            changes["indexes"] = tuple(
                index.model_copy(update={"encoder": encoder.name})
                for index in configuration.indexes
            )
        recorder = Recorder(until)
        written: Any = contextlib.nullcontext()
        if enrichments is not None:
            written = mock.patch("flows.reindex.Build._enrichments", return_value=enrichments)
        with contextlib.suppress(Stopped), written:
            options = BuildOptions(allow_removal=allow_removal)
            runner = StepEvents(DirectRunner(), recorder)
            reindex(configuration.model_copy(update=changes), options, runner)
        composed = [recorder.results.get(f"compose_{of}", []) for of in ("index", "agents")]
        return Run(
            snapshots=recorder.results["take_snapshot"],
            plan=recorder.last("make_plan"),
            documents=list(chain.from_iterable(zip(*composed, strict=True))),
            edges=recorder.last("compose_edges"),
            spec=recorder.last("make_release_spec"),
            encoded=sum(shard.texts for shard in recorder.results.get("embed_shard", [])),
            pins=recorder.last("stage_tables"),
            release=recorder.last("publish_release"),
        )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give tests that share a service one worker of pytest-xdist, so that the service is started
    once (`--dist loadgroup`).
    """
    for item in items:
        for name in SERVICES.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.xdist_group(name))


def pytest_collection_finish() -> None:
    """Take what all tests import out of the work of the garbage collector."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _page_cache_is_durable() -> Generator[None]:
    """Let fsync wait for no disk: tests kill processes, not machines, and what a process wrote
    survives it.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)


@pytest.fixture(scope="session")
def workshop_type() -> type[Workshop]:
    """For tests that need several folders."""
    return Workshop


@pytest.fixture(scope="session")
def encoder() -> Encoder:
    """The encoder of the tests' boards: hashing, without weights."""
    return load_encoder(STUB)


@pytest.fixture(scope="session")
def hashing() -> Callable[[int], Encoder]:
    """The hashing encoder with any number of dimensions."""
    return lambda dimensions=16: load_encoder(f"hashing/{dimensions}")


@pytest.fixture(scope="session")
def board_uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A board of 14 tools, three catalogs and the indexes `full` (centroid) and `fine` (multi). Do
    not change it.
    """
    workshop = Workshop(tmp_path_factory.mktemp("shared"))
    workshop.run(workshop.full())
    return workshop.uri


@pytest.fixture
def own_board_uri(board_uri: str, tmp_path: Path) -> str:
    return str(shutil.copytree(board_uri, tmp_path / "own"))


@pytest.fixture(scope="session")
def local_llm() -> Generator[str]:
    """The address of a real but very small model; mark tests that use it with `slow`."""
    with serve_local_llm() as address:
        yield address


@pytest.fixture(scope="session")
def prefect_server(tmp_path_factory: pytest.TempPathFactory) -> Generator[PrefectServer]:
    """The Prefect server of the test session; mark tests that use it with `prefect`. It is started
    when first used.
    """
    server = PrefectServer(tmp_path_factory.mktemp("prefect-server"))
    try:
        server.start()
        yield server
    finally:
        server.stop()
