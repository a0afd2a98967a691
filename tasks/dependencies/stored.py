"""The evidence of dependencies between all tools, in the lake: after a change it is looked for only
where the change can matter. Of more than `WIDE` tools each agent's are looked at by themselves.

edges/links-<digest>       each tool's `Links`
edges/evidence-<digest>    the evidence; both are named by the digest of the tools

The evidence of an agent's tools follows from these tools, and from the tools of other agents that
provide what they ask. So it stays as long as no tool of the agent changed, and no tool that changed
gives, or gave, what they ask."""

from collections.abc import Collection, Iterator, Mapping
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from catalogs.shared.tool_row import tool_of
from pegboard.canonical import digest
from pegboard.store.contract import edge_key
from tasks import workers
from tasks.dependencies.evidence import Evidence
from tasks.dependencies.infer import INFERENCE_VERSION, evidence_of
from tasks.dependencies.links import CONTEXT, EXACT, NOUN, links_of
from tasks.lake.files import Lake
from tasks.lake.incremental import row_inputs, update_rows
from tasks.lake.row_sets import find_rows, latest_rows, point_to, read_rows, readable, write_frame
from tasks.lake.snapshot_rows import snapshot_rows, tools_of

if TYPE_CHECKING:
    import polars as pl

POINTER = f"edges/latest-evidence-{INFERENCE_VERSION}"
WIDE = 100_000
"""Tools among which those of other agents, too, are taken for providers: they are in memory
together, about 8 kB each."""
AT_ONCE = 20_000
"""Findings that are Python objects at once, where agents are looked at by themselves."""
TOOLS_AT_ONCE = 2_000
"""Tools among which a worker looks at once, of more than one agent."""
COLUMNS = ("source", "target", "type", "parameter", "kind", "what")


def evidence_between(lake: Lake, snapshots: Mapping[str, str]) -> Iterator[list[Evidence]]:
    """Yield the result of `evidence_of` for all tools of snapshots (catalog -> digest), in parts
    between which there is none.
    """
    inputs = row_inputs(lake, snapshots, None).select("tool", "tool_digest")
    alone = inputs.height > WIDE
    name = digest(INFERENCE_VERSION, alone, inputs.sort("tool").rows())
    path = f"edges/evidence-{name}"
    if find_rows(lake, path) is None:
        _look_again(lake, snapshots, name, inputs, alone=alone)
    rows = read_rows(lake, path, ["agent", *COLUMNS, "share"])
    for part in _by_agents(rows, AT_ONCE) if alone else [rows]:
        yield [Evidence(**row) for row in part.drop("agent").iter_rows(named=True)]


def _by_agents(rows: "pl.DataFrame", size: int) -> "Iterator[pl.DataFrame]":
    """Yield rows that are sorted by agent, `size` or more of several agents together."""
    start = end = 0
    for _, count in rows.group_by("agent", maintain_order=True).len().iter_rows():
        end += count
        if end - start >= size or end == rows.height:
            yield rows[start:end]
            start = end


def _look_again(
    lake: Lake, snapshots: Mapping[str, str], name: str, inputs: "pl.DataFrame", *, alone: bool
) -> None:
    import polars as pl

    pointer = f"{POINTER}-alone" if alone else POINTER
    base = latest_rows(lake, pointer)
    stored = readable(lake, base, ["key", "agent", *COLUMNS, "share", "digest"]) if base else None
    earlier = _stored_links(lake, base.path.replace("evidence-", "links-")) if base else None
    links = _links(lake, snapshots, name, inputs)
    agents = set(links.get_column("agent"))
    if stored is not None and earlier is not None:
        agents &= _touched(links, earlier, alone=alone)
    find = _evidence_alone if alone else _evidence
    owners = links.select("agent", source="tool")
    rows = pl.concat([_frame(part, owners) for part in find(lake, snapshots, links, agents)])
    if stored is not None and earlier is not None:
        present = stored.join(owners, on="source", how="semi").filter(
            ~pl.col("agent").is_in(sorted(agents))
        )
        rows = pl.concat([present.select(rows.columns), rows])
    path = f"edges/evidence-{name}"
    point_to(lake, pointer, write_frame(lake, path, "key", rows, base, ["digest"]).path)


def _evidence(
    lake: Lake, snapshots: Mapping[str, str], links: "pl.DataFrame", agents: Collection[str]
) -> Iterator[list[Evidence]]:
    ids = _concerned(links, agents) if agents else []
    yield evidence_of(tools_of(lake, snapshots, ids), agents)


def _evidence_alone(
    lake: Lake, snapshots: Mapping[str, str], links: "pl.DataFrame", agents: Collection[str]
) -> Iterator[list[Evidence]]:
    """Yield the evidence between the tools of each agent."""
    import polars as pl

    own = links.filter(pl.col("agent").is_in(sorted(agents)))
    rows = snapshot_rows(lake, snapshots, "tools", ids=own.get_column("tool"))
    parts = [*_by_agents(rows, TOOLS_AT_ONCE)] or [rows]
    yield from workers.each(partial(_evidence_of_rows, part) for part in parts)


def _evidence_of_rows(tools: "pl.DataFrame") -> list[Evidence]:
    """Return the evidence between the tools of each agent; each agent's are one after the other."""
    by_agent = groupby(tools.iter_rows(named=True), itemgetter("agent"))
    return [
        finding
        for agent, several in by_agent
        for finding in evidence_of([tool_of(row) for row in several], {agent})
    ]


def _links(
    lake: Lake, snapshots: Mapping[str, str], name: str, inputs: "pl.DataFrame"
) -> "pl.DataFrame":
    path = f"edges/links-{name}"
    if find_rows(lake, path) is None:
        update_rows(
            lake,
            path,
            f"edges/latest-links-{INFERENCE_VERSION}",
            snapshots,
            key="tool",
            tool="tool",
            inputs=inputs,
            make=_link_rows,
        )
    return read_rows(lake, path, ["tool", "agent", "tool_digest", "gives", "asks"])


def _stored_links(lake: Lake, path: str) -> "pl.DataFrame | None":
    row_set = find_rows(lake, path)
    return row_set and readable(lake, row_set, ["tool", "agent", "tool_digest", "gives", "asks"])


def _link_rows(tools: "pl.DataFrame") -> "pl.DataFrame":
    import polars as pl

    rows: list[dict[str, Any]] = []
    for tool in map(tool_of, tools.iter_rows(named=True)):
        links = links_of(tool)
        own = {"tool": tool.id, "agent": tool.agent}
        rows.append({**own, "gives": list(links.gives), "asks": list(links.asks)})
    words = pl.List(pl.String)
    schema = {"tool": pl.String, "agent": pl.String, "gives": words, "asks": words}
    return pl.DataFrame(rows, schema=schema)


def _touched(links: "pl.DataFrame", earlier: "pl.DataFrame", *, alone: bool) -> set[str]:
    """The agents with other tools than earlier, or that ask what such tools give or gave."""
    import polars as pl

    by = ["tool", "tool_digest"]
    changed = pl.concat(
        [links.join(earlier, on=by, how="anti"), earlier.join(links, on=by, how="anti")]
    )
    if alone:
        return set(changed.get_column("agent"))
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


def _frame(evidence: Collection[Evidence], owners: "pl.DataFrame") -> "pl.DataFrame":
    """The rows of findings. `owners`: the agent of each source."""
    import polars as pl

    rows: list[dict[str, Any]] = []
    for one in evidence:
        values = {name: getattr(one, name) for name in (*COLUMNS, "share")}
        key = edge_key(one.source, one.target, one.type, one.parameter)
        rows.append({"key": key, **values, "digest": digest([*values.values()])})
    names = ("key", *COLUMNS, "digest")
    frame = pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String) | {"share": pl.Float64})
    return frame.join(owners, on="source", how="left")
