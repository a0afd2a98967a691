"""The evidence of dependencies between all tools, in the lake: after a change it is looked for only
where the change can matter.

edges/links-<digest>       each tool's `Links`
edges/evidence-<digest>    the evidence; both are named by the digest of the tools

The evidence of an agent's tools follows from these tools, and from the tools of other agents that
provide what they ask. So it stays as long as no tool of the agent changed, and no tool that changed
gives, or gave, what they ask."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from pegboard.canonical import digest
from pegboard.store.contract import edge_key
from tasks.dependencies.evidence import Evidence
from tasks.dependencies.infer import INFERENCE_VERSION, evidence_of
from tasks.dependencies.links import CONTEXT, EXACT, NOUN, links_of
from tasks.lake.files import Lake
from tasks.lake.incremental import row_inputs, update_rows
from tasks.lake.row_sets import find_rows, latest_rows, point_to, read_rows, readable, write_frame
from tasks.lake.snapshot_rows import tools_of

if TYPE_CHECKING:
    import polars as pl

POINTER = f"edges/latest-evidence-{INFERENCE_VERSION}"
COLUMNS = ("source", "target", "type", "parameter", "kind", "what")


def evidence_between(lake: Lake, snapshots: Mapping[str, str]) -> list[Evidence]:
    """Return the result of `evidence_of` for all tools of snapshots (catalog -> digest)."""
    inputs = row_inputs(lake, snapshots, None).select("tool", "tool_digest")
    name = digest(INFERENCE_VERSION, inputs.sort("tool").rows())
    path = f"edges/evidence-{name}"
    if find_rows(lake, path) is None:
        _look_again(lake, snapshots, name, inputs)
    columns = [*COLUMNS, "share"]
    return [Evidence(**row) for row in read_rows(lake, path, columns).iter_rows(named=True)]


def _look_again(
    lake: Lake, snapshots: Mapping[str, str], name: str, inputs: "pl.DataFrame"
) -> None:
    import polars as pl

    base = latest_rows(lake, POINTER)
    stored = readable(lake, base, ["key", "agent", *COLUMNS, "share", "digest"]) if base else None
    earlier = _stored_links(lake, base.path.replace("evidence-", "links-")) if base else None
    links = _links(lake, snapshots, name, inputs)
    agents = set(links.get_column("agent"))
    if stored is not None and earlier is not None:
        agents &= _touched(links, earlier)
    ids = _concerned(links, agents) if agents else []
    owners = dict(links.select("tool", "agent").rows())
    evidence = evidence_of(tools_of(lake, snapshots, ids), agents)
    rows = _frame(evidence, owners)
    if stored is not None and earlier is not None:
        present = pl.col("source").is_in(list(owners)) & ~pl.col("agent").is_in(sorted(agents))
        rows = pl.concat([stored.filter(present).select(rows.columns), rows])
    path = f"edges/evidence-{name}"
    point_to(lake, POINTER, write_frame(lake, path, "key", rows, base, ["digest"]).path)


def _links(
    lake: Lake, snapshots: Mapping[str, str], name: str, inputs: "pl.DataFrame"
) -> "pl.DataFrame":
    path = f"edges/links-{name}"
    if find_rows(lake, path) is None:
        update_rows(
            lake,
            path,
            f"edges/latest-links-{INFERENCE_VERSION}",
            key="tool",
            tool="tool",
            inputs=inputs,
            make=lambda ids: _link_rows(lake, snapshots, ids),
        )
    return read_rows(lake, path, ["tool", "agent", "tool_digest", "gives", "asks"])


def _stored_links(lake: Lake, path: str) -> "pl.DataFrame | None":
    row_set = find_rows(lake, path)
    return row_set and readable(lake, row_set, ["tool", "agent", "tool_digest", "gives", "asks"])


def _link_rows(lake: Lake, snapshots: Mapping[str, str], ids: Collection[str]) -> "pl.DataFrame":
    import polars as pl

    rows: list[dict[str, Any]] = []
    for tool in tools_of(lake, snapshots, ids):
        links = links_of(tool)
        own = {"tool": tool.id, "agent": tool.agent}
        rows.append({**own, "gives": list(links.gives), "asks": list(links.asks)})
    words = pl.List(pl.String)
    schema = {"tool": pl.String, "agent": pl.String, "gives": words, "asks": words}
    return pl.DataFrame(rows, schema=schema)


def _touched(links: "pl.DataFrame", earlier: "pl.DataFrame") -> set[str]:
    """The agents with other tools than earlier, or that ask what such tools give or gave."""
    import polars as pl

    by = ["tool", "tool_digest"]
    changed = pl.concat(
        [links.join(earlier, on=by, how="anti"), earlier.join(links, on=by, how="anti")]
    )
    # Of what is given exactly it matters only whether any tool gives it.
    exact = [
        _given(every).filter(pl.col("word").str.starts_with(EXACT)) for every in (links, earlier)
    ]
    given = pl.concat(
        [
            _given(changed).filter(~pl.col("word").str.starts_with(EXACT)),
            exact[0].join(exact[1], on="word", how="anti"),
            exact[1].join(exact[0], on="word", how="anti"),
        ]
    )
    asking = links.select("agent", word="asks").explode("word").join(given, on="word", how="semi")
    return {*changed.get_column("agent"), *asking.get_column("agent")}


def _given(links: "pl.DataFrame") -> "pl.DataFrame":
    return links.select(word="gives").explode("word").drop_nulls().unique()


def _concerned(links: "pl.DataFrame", agents: Collection[str]) -> list[str]:
    """The tools of some agents, and of others those that provide what these ask: one where it only
    matters whether any does.
    """
    import polars as pl

    own = pl.col("agent").is_in(sorted(agents))
    asked = links.filter(own).select(word="asks").explode("word").drop_nulls().unique()
    gives = links.select("tool", word="gives").explode("word").drop_nulls()
    first = gives.filter(pl.col("word").str.starts_with(EXACT)).unique("word", keep="first")
    gives = pl.concat([gives.filter(~pl.col("word").str.starts_with(EXACT)), first])
    # Where one tool gives a noun in a context, all that give it are compared.
    contexts = asked.filter(pl.col("word").str.starts_with(CONTEXT)).join(
        gives, on="word", how="semi"
    )
    nouns = contexts.select(pl.col("word").str.replace(CONTEXT, NOUN, literal=True))
    givers = gives.join(pl.concat([asked, nouns]), on="word", how="semi")
    return [*{*links.filter(own).get_column("tool"), *givers.get_column("tool")}]


def _frame(evidence: Collection[Evidence], owners: Mapping[str, str]) -> "pl.DataFrame":
    import polars as pl

    rows: list[dict[str, Any]] = []
    for one in evidence:
        values = {name: getattr(one, name) for name in (*COLUMNS, "share")}
        key = edge_key(one.source, one.target, one.type, one.parameter)
        own = {"key": key, "agent": owners[one.source]}
        rows.append({**own, **values, "digest": digest([*values.values()])})
    names = ("key", "agent", *COLUMNS, "digest")
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String) | {"share": pl.Float64})
