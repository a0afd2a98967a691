"""Make the spec of a release: the rows of `tools` and `agents`, every table as a row set of the
lake, and the digests by which tables and releases are compared.
"""

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from catalogs.shared.tool_row import tool_of
from pegboard.canonical import canonical_json, digest
from pegboard.ranker.model import HALF, Ranker, default_ranker
from pegboard.records import Enrichment
from pegboard.store.contract import CHECKSUM, CONTRACT, EDGES, VECTOR_OPTIONS, column_names
from pegboard.store.releases import Pin, Release
from pegboard.text.languages import IndexLanguages
from tasks.enrichment.enrichment_sets import read_agent_descriptions, read_tool_enrichments
from tasks.gate.spec import read_gate
from tasks.golden.few_shots import few_shots
from tasks.golden.sequences import learned_sequences
from tasks.lake.files import Lake
from tasks.lake.incremental import row_inputs, update_rows
from tasks.lake.row_sets import find_rows, read_rows, store_latest
from tasks.lake.snapshot_rows import snapshot_rows
from tasks.safety.untrusted import flags_of
from tasks.settings.configuration import Configuration, IndexSettings
from tasks.settings.encoders import encoder_for
from tasks.settings.release import default_strategy, published_prompts
from tasks.steps.compose import Documents
from tasks.steps.edges import Edges
from tasks.steps.plan import Plan
from tasks.steps.snapshot import Snapshot

if TYPE_CHECKING:
    import polars as pl

RECORDS_VERSION = 3
"""Raise this when the same snapshots and enrichments give other rows of `tools` or `agents`."""
MAX_SUSPICIOUS = 200
"""Largest number of suspicious tools in a manifest, which every reader loads."""
DIGESTED = 50_000
"""Number of rows of a table whose digests are serialised at once."""
RELEASE_ID_DIGITS = 12
"""Number of hexadecimal digits of a release's digest in its id; enough for 2^24 releases without a
collision.
"""


@dataclass(frozen=True, slots=True)
class Records:
    """The rows of a release's `tools` and `agents`, as paths of row sets.

    Attributes:
        enriched: number of tools with an enrichment.
        flagged: number of tools with suspicious text.
        questioned: share of the tools that have written questions.
    """

    tools_path: str
    agents_path: str
    enriched: int
    flagged: int
    questioned: float = 0.0


@dataclass(frozen=True, slots=True)
class TableSpec:
    """The rows of one table, as a row set of the lake. `fingerprint`, `dimensions` and `encoder`
    are those of an embedding table's encoder.
    """

    name: str
    key: str
    path: str
    rows: int
    digest: str
    fingerprint: str | None = None
    dimensions: int | None = None
    encoder: str = ""


@dataclass(frozen=True, slots=True)
class ReleaseSpec:
    """A release before it is staged: its id and digest, its tables, and counts of their rows.

    Attributes:
        queries: the digest of the gate's golden queries; None without a gate.
        understood: for each index, the share of its texts in languages that its encoder may know.
        advice: what to change if an index does not fit the languages of its texts.
        rankers: the ranker of each index, which depends on whether its encoder can read most texts.
        sequences: tool -> next tool -> share of the clients that called it next.
        few_shots: the queries with their tools that request-time prompts show.
    """

    release: str
    digest: str
    tables: tuple[TableSpec, ...]
    counts: Mapping[str, int]
    queries: str | None = None
    understood: Mapping[str, float] = field(default_factory=dict[str, float])
    advice: tuple[str, ...] = ()
    rankers: Mapping[str, Ranker] = field(default_factory=dict[str, Ranker])
    sequences: Mapping[str, Mapping[str, float]] = field(
        default_factory=dict[str, Mapping[str, float]]
    )
    few_shots: tuple[Mapping[str, Any], ...] = ()


def compose_records(
    uri: str, snapshots: Mapping[str, str], enrichment_set: str | None = None
) -> Records:
    """Compose the rows of `tools` and `agents`, or find them composed before.

    Args:
        snapshots: catalog -> digest.
        enrichment_set: the folder of the lake with the enrichments; None without an LLM.
    """
    lake = Lake(uri)
    recipe = [RECORDS_VERSION, CONTRACT]
    folder = f"records/{digest(*recipe, dict(snapshots), enrichment_set)}"
    tools_path = f"{folder}/tools"
    agents_path = f"{folder}/agents"
    if not find_rows(lake, tools_path, _stored_columns("tools")):
        update_rows(
            lake,
            tools_path,
            f"records/latest-tools-{digest(recipe)}",
            snapshots,
            key="id",
            tool="id",
            inputs=row_inputs(lake, snapshots, enrichment_set).drop("agent_name"),
            make=partial(_tool_rows, uri, enrichment_set),
        )
    if not find_rows(lake, agents_path, _stored_columns("agents")):
        store_latest(
            lake,
            agents_path,
            f"records/latest-agents-{digest(recipe)}",
            "id",
            _agent_rows(lake, snapshots, enrichment_set),
            ["digest", "source"],
        )
    rows = read_rows(lake, tools_path, ["flags", "written", "enrichment"])
    flagged = int((rows.get_column("flags").list.len() > 0).sum())
    written = rows.get_column("written")
    enrichments = rows.get_column("enrichment")
    with_questions = int(enrichments.str.contains('"questions":', literal=True).sum())
    return Records(
        tools_path, agents_path, written.count(), flagged, with_questions / max(1, rows.height)
    )


def make_release_spec(
    configuration: Configuration,
    documents: Sequence[Documents],
    records: Records,
    edges: Edges,
) -> ReleaseSpec:
    """Return the spec of the release with these records, edges and documents.

    Its digest covers the contract, rows, index configurations, encoders, rankers, glossary,
    strategy, prompts with their context and examples, learned sequences, and the queries of the
    gate. It does not cover the gate's rules: a held release is judged again when they change.

    Args:
        documents: the documents of the tools and of the agents of every index.
    """
    uri = configuration.uri
    tables = [
        _table(uri, TableSpec("tools", "id", records.tools_path, 0, "")),
        _table(uri, TableSpec("agents", "id", records.agents_path, 0, "")),
        _table(uri, TableSpec(EDGES, "key", edges.path, 0, "")),
    ]
    for table in documents:
        index = configuration.index(table.index)
        encoder = encoder_for(index)
        made_by = (encoder.fingerprint, encoder.dimensions, index.encoder)
        spec = TableSpec(table.table, "key", table.path, 0, "", *made_by)
        tables.append(_table(uri, spec))
    recipes = [
        [
            *(index.name, index.encoder, index.parts, index.shape, index.questions),
            *(index.language, *index.written_recipe),
        ]
        for index in configuration.indexes
    ]
    contents = [[table.name, table.digest, table.fingerprint] for table in tables]
    retrieval: list[Any] = [
        default_strategy(configuration.find.strategy),
        configuration.glossary_of_release,
    ]
    gate = read_gate(configuration)
    if gate is not None and configuration.gate is not None:
        retrieval.append(gate.digest)
    if prompts := published_prompts(configuration.base):
        retrieval.append(prompts)
    if sequences := learned_sequences(configuration, records.tools_path):
        retrieval.append(sequences)
    examples = few_shots(configuration, records.tools_path, records.agents_path)
    if examples or configuration.find.context:
        retrieval.append({"context": configuration.find.context, "few_shots": examples})
    rankers = [
        _ranker(index, share, records.questioned).to_dict()
        for index in configuration.indexes
        for share in (1.0, 0.0)
    ]
    release_digest = digest(CONTRACT, recipes, configuration.default, contents, retrieval, rankers)
    counts = {"enriched": records.enriched, "flagged": records.flagged, "edges": edges.rows}
    paths = {table.table: table.path for table in documents}
    languages = [
        (index, _languages(Lake(uri), paths[index.table])) for index in configuration.indexes
    ]
    advice = [
        text
        for index, index_languages in languages
        for text in index_languages.advice(index.name, index.encoder, index.language)
    ]
    return ReleaseSpec(
        release=release_digest[:RELEASE_ID_DIGITS],
        digest=release_digest,
        tables=tuple(tables),
        counts=counts,
        queries=gate.digest if gate else None,
        understood={
            index.name: index_languages.understood(index.encoder)
            for index, index_languages in languages
        },
        advice=tuple(advice),
        rankers={
            index.name: _ranker(index, index_languages.legible(index.encoder), records.questioned)
            for index, index_languages in languages
        },
        sequences=sequences,
        few_shots=tuple(examples),
    )


def _ranker(index: IndexSettings, legible: float, questioned: float) -> Ranker:
    """Return the ranker of an index.

    Args:
        legible: the share of its texts that its encoder can read.
        questioned: the share of the tools that have written questions.
    """
    ranker = default_ranker(index.encoder, legible)
    asks = "questions" in index.written and "questions" in index.parts and index.questions > 0
    return ranker.with_written_questions() if asks and questioned >= HALF else ranker


def _languages(lake: Lake, documents: str) -> IndexLanguages:
    documents_by_catalog = read_rows(lake, documents, ["catalog", "text"]).group_by(
        "catalog", maintain_order=True
    )
    texts: dict[str, Any] = {
        str(catalog): rows.get_column("text") for (catalog,), rows in documents_by_catalog
    }
    return IndexLanguages.of(texts)


def staged_release(
    configuration: Configuration,
    plan: Plan,
    snapshots: list[Snapshot],
    spec: ReleaseSpec,
    pins: Mapping[str, Pin],
    suspicious: Mapping[str, Any] = MappingProxyType({}),
) -> Release:
    """Return the release of the staged tables, before it is recorded.

    Args:
        suspicious: the result of `find_suspicious`.
    """
    strategy = default_strategy(configuration.find.strategy)
    prompts = published_prompts(configuration.base)
    context = configuration.find.context
    glossary = configuration.glossary_of_release
    manifest = {
        "pegboard": version("pegboard"),
        **({"strategy": strategy} if strategy else {}),
        **({"prompts": prompts} if prompts else {}),
        **({"context": context} if context else {}),
        **({"few_shots": list(spec.few_shots)} if spec.few_shots else {}),
        **({"sequences": spec.sequences} if spec.sequences else {}),
        **({"glossary": glossary} if glossary else {}),
        "default_index": configuration.default,
        "indexes": {
            index.name: _index_entry(
                index,
                spec.understood[index.name],
                spec.rankers[index.name],
            )
            for index in configuration.indexes
        },
        "catalogs": {snapshot.catalog: _catalog_entry(snapshot) for snapshot in snapshots},
        "counts": {"tools": pins["tools"].rows, "agents": pins["agents"].rows, **spec.counts},
        "changes": {
            "against": plan.live,
            "new": len(plan.new),
            "changed": len(plan.changed),
            "removed": len(plan.removed),
            "unchanged": plan.unchanged,
        },
        **({"suspicious": dict(islice(suspicious.items(), MAX_SUSPICIOUS))} if suspicious else {}),
    }
    return Release(spec.release, spec.digest, CONTRACT, datetime.now(UTC), pins, manifest)


def table_rows(
    uri: str,
    table: TableSpec,
    columns: list[str] | None = None,
    keys: Collection[str] | None = None,
) -> "pl.DataFrame":
    """Return the rows of a table, sorted by key. The digest of a row with a vector covers the
    encoder's fingerprint.

    Args:
        keys: return only the rows with these keys, and do not read layers without them.
    """
    import polars as pl

    rows = read_rows(Lake(uri), table.path, columns, keys)
    if table.fingerprint is None or "digest" not in rows.columns:
        return rows
    suffix = f":{digest(table.fingerprint)[:16]}"
    return rows.with_columns(pl.col("digest") + pl.lit(suffix))


def table_digest(rows: "pl.DataFrame") -> str:
    """Return the digest of a table from its rows (key, digest), in any order.

    Equal to `canonical.digest` of the sorted list, and faster: rows of texts are in canonical form
    already, so `DIGESTED` rows are serialised by one call.
    """
    sha256 = hashlib.sha256(b"[[")
    separator = b""
    for chunk in rows.sort(rows.columns[0]).iter_slices(DIGESTED):
        text = json.dumps(chunk.rows(), ensure_ascii=False, separators=(",", ":"))
        sha256.update(separator + text[1:-1].encode())
        separator = b","
    sha256.update(b"]]")
    return sha256.hexdigest()


def _index_entry(index: IndexSettings, understood: float, ranker: Ranker) -> dict[str, Any]:
    encoder = encoder_for(index)
    return {
        "encoder": index.encoder,
        "options": {name: index.options[name] for name in VECTOR_OPTIONS if name in index.options},
        "fingerprint": encoder.fingerprint,
        "dimensions": encoder.dimensions,
        "parts": list(index.parts),
        "shape": index.shape,
        "questions": index.questions,
        **({"written": list(index.written)} if index.written_recipe else {}),
        "language": index.language,
        "understood": understood,
        "ranker": ranker.to_dict(),
    }


def _catalog_entry(snapshot: Snapshot) -> dict[str, Any]:
    return {
        "snapshot": snapshot.digest,
        "tools": snapshot.tools,
        "agents": snapshot.agents,
        "rejected": len(snapshot.rejected),
        "kept": list(snapshot.kept),
    }


def _table(uri: str, table: TableSpec) -> TableSpec:
    rows = table_rows(uri, table, [table.key, "digest"])
    return replace(table, rows=rows.height, digest=table_digest(rows))


def _tool_rows(uri: str, enrichment_set: str | None, tools: "pl.DataFrame") -> "pl.DataFrame":
    """Return the rows of these tools."""
    import polars as pl

    ids = tools.get_column("id")
    flags = [list(flags_of(tool_of(row))) for row in tools.iter_rows(named=True)]
    enrichments = read_tool_enrichments(Lake(uri), enrichment_set, ids) if enrichment_set else {}
    rows = tools.with_columns(pl.Series("flags", flags, pl.List(pl.String)))
    rows = rows.join(_enrichment_rows(enrichments), on="id", how="left")
    rows = _with_digests(rows, ["tool_digest", "flags", "enrichment"])
    return rows.select(_stored_columns("tools"))


def _agent_rows(
    lake: Lake, snapshots: Mapping[str, str], enrichment_set: str | None
) -> "pl.DataFrame":
    descriptions = read_agent_descriptions(lake, enrichment_set) if enrichment_set else {}
    enrichments = {agent: Enrichment(description=text) for agent, text in descriptions.items()}
    rows = snapshot_rows(lake, snapshots, "agents")
    rows = rows.join(_enrichment_rows(enrichments), on="id", how="left")
    rows = _with_digests(rows, ["digest", "enrichment"])
    return rows.select(_stored_columns("agents"))


def _stored_columns(table: str) -> list[str]:
    """Return the columns of a table that its rows in the lake have, too."""
    return [name for name in column_names(table) if name != CHECKSUM]


def _enrichment_rows(enrichments: Mapping[str, Enrichment]) -> "pl.DataFrame":
    import polars as pl

    texts = {
        identity: canonical_json(enrichment.to_dict())
        for identity, enrichment in enrichments.items()
        if enrichment != Enrichment()
    }
    columns = {"id": list(texts), "enrichment": list(texts.values())}
    return pl.DataFrame(columns, schema={"id": pl.String, "enrichment": pl.String})


def _with_digests(rows: "pl.DataFrame", columns: Sequence[str]) -> "pl.DataFrame":
    """Return the rows with a digest of these columns, which determine the other columns."""
    import polars as pl

    digests = [digest(*row) for row in rows.select(columns).iter_rows()]
    return rows.with_columns(pl.Series("digest", digests, pl.String))
