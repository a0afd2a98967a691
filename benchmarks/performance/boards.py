"""A published board of synthetic tools, its indexes as a run creates them."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import lancedb
import numpy as np
import pyarrow as pa

from pegboard.ranker.model import default_ranker
from pegboard.store.contract import CHECKSUM, CONTRACT, column_names, row_checksums, table_schema
from pegboard.store.releases import Pin, Release, ReleaseStore
from tasks.steps.maintain import fit_indices, partitions_for, search_settings

DIMENSIONS = 384
WORDS = 40
"""Words of a tool, frequent and rare ones."""
NAME_WORDS = 3
VOCABULARY = 20_000
ACTIONS = ("list", "get", "create", "update", "delete", "")
AGENTS = 100
SCHEMA = '{"type": "object", "properties": {"one": {"type": "string"}}}'

Columns = dict[str, Any]


def synthetic_board(folder: Path, rows: int, encoder: tuple[str, str]) -> str:
    """Publish a board with one release; returns its URI.

    Args:
        rows: tools.
        encoder: the name and the fingerprint in the manifest.
    """
    tools = _tools(rows)
    agents = sorted(set(tools["agent"]))
    tables = {
        "tools": _table("tools", rows, tools),
        "agents": _table("agents", len(agents), _agents(agents)),
        "emb_full": _table("emb_full", rows, tools),
    }
    links = _edges(tools["id"])
    tables["edges"] = _table("edges", len(links["key"]), links)
    documents = _agent_documents(agents, tools)
    tables["agents_full"] = _table("agents_full", len(agents), documents)
    uri = str(folder / f"board-{rows}")
    store = ReleaseStore(uri)
    store.create()
    database = lancedb.connect(f"{uri}/tables")
    opened = {name: database.create_table(name, data) for name, data in tables.items()}
    fit_indices(opened["emb_full"], rows, changed=True)
    index = {
        "encoder": encoder[0],
        "fingerprint": encoder[1],
        "dimensions": DIMENSIONS,
        **{"shape": "single", "parts": ["name"], "questions": 0, "options": {}},
        "ranker": default_ranker().to_dict(),
    }
    changes = dict.fromkeys(("new", "changed", "removed", "unchanged"), 0)
    manifest = {
        **{"default_index": "full", "indexes": {"full": index}, "changes": changes},
        **{"catalogs": {}, "counts": {"tools": rows, "agents": 0}},
    }
    pins = {name: _pin(name, table, rows) for name, table in opened.items()}
    release = f"{rows:012x}"
    store.add(Release(release, f"{rows:064x}", CONTRACT, datetime.now(UTC), pins, manifest))
    store.promote(release)
    return uri


def _tools(rows: int) -> Columns:
    numbers = np.random.default_rng(0)
    topics = numbers.normal(size=(max(rows // 100, 1), DIMENSIONS))
    vectors = topics[np.arange(rows) % len(topics)] + numbers.normal(size=(rows, DIMENSIONS))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    words = (VOCABULARY * numbers.random((rows, WORDS)) ** 3).astype(int)
    agents = [f"c/a{number % AGENTS}" for number in range(rows)]
    names = [f"{agent}/t{number:07}" for number, agent in enumerate(agents)]
    return {
        "id": names,
        "tool": names,
        "key": [f"{name}#document#0" for name in names],
        "part": ["document"] * rows,
        "catalog": ["c"] * rows,
        "agent": agents,
        "kind": ["library"] * rows,
        "tokens": [" ".join(f"w{word}" for word in line) for line in words],
        "tags": pa.array([[f"t{number % 5}"] for number in range(rows)]),
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIMENSIONS),
        "name_tokens": [" ".join(f"w{word}" for word in line[:NAME_WORDS]) for line in words],
        "actions": [ACTIONS[number % len(ACTIONS)] for number in range(rows)],
        "summary_vector": pa.FixedSizeListArray.from_arrays(
            pa.array(np.roll(vectors, 1, axis=1).ravel()), DIMENSIONS
        ),
        "input_schema": [SCHEMA] * rows,
        "annotations": ["{}"] * rows,
        "dependencies": ["[]"] * rows,
    }


def _agents(agents: list[str]) -> Columns:
    count = len(agents)
    return {"id": agents, "name": agents, "catalog": ["c"] * count, "kind": ["library"] * count}


def _agent_documents(agents: list[str], tools: Columns) -> Columns:
    names = ("part", "catalog", "kind", "vector", "tokens")
    first = {name: tools[name][: len(agents)] for name in names}
    return {"key": agents, "agent": agents, **first}


def _edges(tools: list[str]) -> Columns:
    """One dependency of each tool."""
    count = len(tools)
    targets = [tools[(source * 7 + 13) % count] for source in range(count)]
    return {
        "key": [f"{source}#{target}##" for source, target in zip(tools, targets, strict=True)],
        "source": tools,
        "target": targets,
        "type": ["tool-directly-depends-on"] * count,
        "origin": ["declared"] * count,
        "confidence": [1.0] * count,
        "place": [0] * count,
    }


def _table(name: str, count: int, columns: Columns) -> pa.Table:
    """A table of that schema with its rows' checksums; columns without values get empty ones."""
    dimensions = DIMENSIONS if name in ("emb_full", "agents_full") else 0
    schema = table_schema(name, dimensions)

    def column(field: pa.Field) -> Any:
        if field.name in columns:
            return columns[field.name]
        if pa.types.is_list(field.type):
            return [[]] * count
        return [None if field.nullable else "text"] * count

    table = pa.table({field.name: column(field) for field in schema}, schema=schema)
    place = schema.get_field_index(CHECKSUM)
    return table.set_column(place, schema.field(place), [row_checksums(table)])


def _pin(name: str, table: Any, rows: int) -> Pin:
    partitions = partitions_for(rows) if name == "emb_full" else None
    search = search_settings(partitions, column_names(name)) if partitions else None
    return Pin(name, table.version, table.count_rows(), "", "", search)
