"""What the tests share: small boards, published through the plain functions of the tasks, without Prefect running.

Helpers are reached through fixtures, since test modules cannot import each other. `workshop` is an empty folder for boards of
one's own; `board_uri` is a published board that nobody changes; `own_board_uri` is a copy of it that a test may spoil.
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest

from pegboard.contract import CURRENT
from pegboard.encoders import Encoder, load_encoder
from pegboard.releases import Pin, Release, ReleaseStore
from pegboard.text import tokenize
from tasks.calibrate_release import calibrate_release
from tasks.compose import Documents, compose_index
from tasks.compose_agents import compose_agents_of
from tasks.configuration import Configuration, load_configuration
from tasks.edges import Edges, compose_edges
from tasks.embed import embed_shard, shards_of
from tasks.lake import Lake
from tasks.plan import Plan, make_plan
from tasks.publish import publish_release
from tasks.records import compose_records
from tasks.revise import revise_snapshots
from tasks.snapshot import Snapshot, take_snapshot
from tasks.stage import stage_tables
from tasks.wanted import Wanted, make_wanted

LOCAL = "local/all-MiniLM-L6-v2"
STEPS = ("snapshot", "plan", "compose", "embed", "stage", "publish")


def tool(name: str, description: str = "", /, **properties: str) -> dict[str, Any]:
    """A tool as an MCP server lists it; the properties are its arguments and what they mean."""
    schema = {"type": "object", "properties": {key: {"description": text} for key, text in properties.items()}}
    return {"name": name, "description": description, "inputSchema": schema}


SERVERS = {
    "git": [
        tool("create_issue", "Opens an issue in a repository.", title="its headline", body="what is wrong"),
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
FUNCTIONS = [
    {
        "name": "convert_currency",
        "description": "Converts an amount of money from one currency to another.",
        "parameters": {"type": "object", "properties": {"amount": {"type": "number"}, "to": {"type": "string"}}},
    },
    {"name": "list_rates", "description": "Lists the exchange rates of today.", "parameters": {"type": "object"}},
    {"name": "close_ledger", "description": "Closes the books of a month.", "parameters": {"type": "object"}},
]
REQUESTS = [
    {"name": "book_room", "description": "Books a meeting room.", "examples": ["where can ten people meet?", "room"]},
    {"name": "call_taxi", "description": "Calls a taxi.", "examples": ["I need a ride to the airport"]},
    {"name": "water_plants", "description": "Waters the plants.", "examples": ["the ferns look thirsty"]},
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
    """What the steps of a run returned; None from the step on before which it was abandoned."""

    snapshots: list[Snapshot]
    plan: Plan | None = None
    documents: list[Documents] | None = None
    edges: Edges | None = None
    wanted: Wanted | None = None
    encoded: int = 0
    pins: dict[str, Pin] | None = None
    release: Release | None = None


class HashingEncoder:
    """A stub by the Protocol: words are counted in the places to which they hash. Any number of dimensions, no weights."""

    def __init__(self, dimensions: int = 16) -> None:
        self.name = "stub/hashing"
        self.dimensions = dimensions
        self.fingerprint = f"hashing-{dimensions}"

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        vectors = np.full((len(texts), self.dimensions), 0.01, np.float32)
        for row, text in enumerate(texts):
            for word in tokenize(text):
                vectors[row, crc32(word.encode()) % self.dimensions] += 1
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


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
        path.write_text(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), "utf-8")
        return path

    def servers(self, servers: Mapping[str, Sequence[Any]], file: str = "servers.json") -> None:
        """Write the saved answers of MCP servers, which the catalog `kit` lists."""
        self.write(file, {name: {"tools": list(tools)} for name, tools in servers.items()})

    def configure(self, indexes: str = "", catalogs: str | None = None, board: str = "") -> Configuration:
        """Write a pegboard.toml with the catalog `kit`, or with the given ones, and read it."""
        catalogs = catalogs or '[catalogs.kit]\ntype = "mcp-dump"\npath = "servers.json"\n'
        text = f'[board]\nuri = "board"\n{board}\n{catalogs}\n{indexes}'
        return load_configuration(self.write("pegboard.toml", text))

    def full(self) -> Configuration:
        """Write three catalogs of every kind of agent and two indexes, and read their configuration."""
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
        allow_empty: bool = False,
        encoder: Encoder | None = None,
        writings: str | None = None,
    ) -> Run:
        """The steps of the reindex flow in their order, as far as `until`, but for those that ask an LLM.

        `encoder` stands in for the configured one; `writings` is the folder of the lake with what was written about tools.
        """
        wished = STEPS.index(until)
        snapshots = [take_snapshot(configuration, name, allow_empty=allow_empty) for name in configuration.catalogs]
        identities = {one.catalog: one.digest for one in snapshots}
        identities = revise_snapshots(configuration, identities).identities
        if wished < 1:
            return Run(snapshots)
        plan = make_plan(configuration, identities, channel, encoder)
        plan.refuse_loss(snapshots)
        if wished < 2:
            return Run(snapshots, plan)
        documents = [
            make(configuration.uri, index, identities, writings)
            for index in configuration.indexes
            for make in (compose_index, compose_agents_of)
        ]
        records = compose_records(configuration.uri, identities, writings)
        edges = compose_edges(configuration, identities, writings)
        wanted = make_wanted(configuration, documents, records, edges, encoder)
        if wished < 3 or wanted.release == plan.live:
            return Run(snapshots, plan, documents, edges, wanted)
        encoded = _encode(configuration, documents, encoder)
        if wished < 4:
            return Run(snapshots, plan, documents, edges, wanted, encoded)
        pins = stage_tables(configuration.uri, wanted)
        if wished < 5:
            return Run(snapshots, plan, documents, edges, wanted, encoded, pins)
        put = publish_release if encoder is None else publish_with(encoder)
        calibrated = calibrate_release(configuration, wanted, pins, encoder)
        release = put(configuration, plan, snapshots, wanted, pins, calibrated.indexes)
        return Run(snapshots, plan, documents, edges, wanted, encoded, pins, release)


def _encode(configuration: Configuration, documents: Sequence[Documents], encoder: Encoder | None) -> int:
    return sum(
        embed_shard(configuration.uri, shard, index, encoder).texts
        for one in documents
        for index in [configuration.index(one.index)]
        for shard in shards_of(configuration.uri, one, index, encoder)
    )


def publish_with(encoder: Encoder) -> Any:
    """`publish_release` for a board whose vectors are of an encoder that has no name to be loaded by."""

    def publish(
        configuration: Configuration,
        plan: Plan,
        snapshots: list[Snapshot],
        wanted: Wanted,
        pins: Mapping[str, Pin],
        calibrations: Mapping[str, Any],
    ) -> Release:
        indexes = {
            index.name: {
                "encoder": encoder.name,
                "options": {},
                "fingerprint": encoder.fingerprint,
                "dimensions": encoder.dimensions,
                "parts": list(index.parts),
                "shape": index.shape,
                "questions": index.questions,
                **({"calibration": calibrations[index.name]} if index.name in calibrations else {}),
            }
            for index in configuration.indexes
        }
        manifest = {
            "default_index": configuration.default,
            "indexes": indexes,
            "catalogs": {},
            "counts": {"tools": pins["tools"].rows, "agents": pins["agents"].rows, **wanted.counts},
            "changes": {"against": plan.live, "new": 0, "changed": 0, "removed": 0, "unchanged": 0},
        }
        store = ReleaseStore(configuration.uri)
        release = Release(wanted.release, wanted.digest, CURRENT.version, datetime.now(UTC), pins, manifest)
        store.add(release)
        store.promote(release.id, plan.channel, expected=plan.generation)
        return store.get(release.id)

    return publish


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)


@pytest.fixture(scope="session")
def workshop_type() -> type[Workshop]:
    """For tests that need several folders."""
    return Workshop


@pytest.fixture(scope="session")
def encoder() -> Encoder:
    """The embedded encoder, with its real weights."""
    return load_encoder(LOCAL)


@pytest.fixture(scope="session")
def hashing() -> type[HashingEncoder]:
    return HashingEncoder


@pytest.fixture(scope="session")
def board_uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A board of 14 tools, three catalogs and the indexes `full` (centroid) and `fine` (multi). Do not change it."""
    workshop = Workshop(tmp_path_factory.mktemp("shared"))
    workshop.run(workshop.full())
    return workshop.uri


@pytest.fixture
def own_board_uri(board_uri: str, tmp_path: Path) -> str:
    return str(shutil.copytree(board_uri, tmp_path / "own"))
