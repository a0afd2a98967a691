"""Plan a run: which tools are new, changed or removed, and how many texts have to be encoded."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from pegboard.encoders import runs_here
from pegboard.errors import BoardNotFound, SourceError
from pegboard.formatting import count_text, limited_lines
from pegboard.store.contract import CONTRACT, check_contract
from pegboard.store.diff import FieldChange, field_changes, tools_with_kinds
from pegboard.store.releases import Channel, Release, ReleaseStore
from pegboard.tokens import BYTES_PER_TOKEN
from tasks.lake.files import Lake
from tasks.lake.row_sets import read_rows
from tasks.lake.snapshot_rows import snapshot_rows, tool_of
from tasks.lake.vectors import known_texts
from tasks.settings.configuration import Configuration, IndexSettings
from tasks.settings.encoders import encoder_for
from tasks.steps.compose import compose_agents, compose_index
from tasks.steps.snapshot import Snapshot

MAX_NAMED = 5
"""Largest number of tools named in an error, which has the count of all."""
MAX_COMPARED = 1_000
"""Largest number of changed tools whose fields are compared."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The changes of a run against the current release of its channel.

    Attributes:
        live: the release of the channel; None for an empty board.
        generation: the channel's current generation, with which the run promotes its release by
            compare-and-set.
        new, changed, removed: ids of tools.
        unchanged: number of unchanged tools.
        texts: for each index, the number of all texts and of those to encode. Empty with an LLM,
            since its replies decide.
        withdrawn: the releases from which the channel was rolled back.
        tokens: estimated tokens of the texts to encode, for each index with a hosted encoder.
        changes: the differing fields of the first `MAX_COMPARED` changed tools, old and new.
    """

    channel: str
    live: str | None
    generation: int
    new: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    unchanged: int
    texts: Mapping[str, tuple[int, int]]
    withdrawn: tuple[str, ...] = ()
    tokens: Mapping[str, int] = field(default_factory=dict[str, int])
    changes: Mapping[str, Mapping[str, FieldChange]] = field(
        default_factory=dict[str, Mapping[str, FieldChange]]
    )

    def refuse_loss(self, snapshots: Sequence[Snapshot], *, allow_missing: bool = False) -> None:
        """Check that a failed source is not published as a removal of its tools.

        A source that fails without a last good snapshot, on a new board or after its lake was
        deleted, would otherwise empty the board.

        Args:
            allow_missing: accept a first release without the catalogs that could not be listed.

        Raises:
            SourceError: no source could be read, a first release would have no tools or lack a
                whole catalog, or published tools of a failed source would be lost.
        """
        problems = "".join(
            f"\n  - {snapshot.catalog}: {problem}"
            for snapshot in snapshots
            for problem in snapshot.problems
        )
        if not any(snapshot.tools for snapshot in snapshots) and any(
            snapshot.failed for snapshot in snapshots
        ):
            raise SourceError(f"No source could be read, so nothing is published.{problems}")
        if self.live is None and not self.new:
            rejected = [row for snapshot in snapshots for row in snapshot.rejected]
            reasons = [f"  - {row.catalog}, {row.where}: {row.why}" for row in rejected]
            raise SourceError(
                f"No source lists a usable tool ({count_text(len(rejected), 'record')} rejected), "
                f"so there is no first release. Correct the records or the sources' settings."
                + "\n".join([problems, *limited_lines(reasons, MAX_NAMED, "  ")])
            )
        lost_catalogs = [snapshot.catalog for snapshot in snapshots if snapshot.is_lost]
        if self.live is None and lost_catalogs and not allow_missing:
            raise SourceError(
                f"The first release would lack {len(lost_catalogs)} of {len(snapshots)} catalogs, "
                f"whose sources failed: {', '.join(lost_catalogs)}. Nothing is published. Repair "
                f"the sources and run again, or run once with --allow-missing (allow_missing in a "
                f"flow) to publish the others.{problems}"
            )
        missing = {
            snapshot.catalog if agent == "*" else agent
            for snapshot in snapshots
            for agent in snapshot.failed
            if agent not in snapshot.kept
        }
        prefixes = tuple(f"{owner}/" for owner in missing)
        if lost_tools := [tool for tool in self.removed if tool.startswith(prefixes)]:
            more = " ..." if len(lost_tools) > MAX_NAMED else ""
            raise SourceError(
                f"{len(lost_tools)} published tools would be lost, because their sources failed "
                f"and have no earlier snapshot in the lake: "
                f"{', '.join(lost_tools[:MAX_NAMED])}{more}. Nothing is published. Repair the "
                f"sources and run again, or take them out of the configuration.{problems}"
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON values."""
        return {
            "channel": self.channel,
            "live": self.live,
            "new": list(self.new),
            "changed": list(self.changed),
            "removed": list(self.removed),
            "unchanged": self.unchanged,
            "withdrawn": list(self.withdrawn),
            "texts": {
                index: {
                    "documents": total,
                    "to_encode": missing,
                    **({"tokens": self.tokens[index]} if index in self.tokens else {}),
                }
                for index, (total, missing) in self.texts.items()
            },
            "changes": {
                tool: {name: asdict(change) for name, change in fields.items()}
                for tool, fields in self.changes.items()
            },
        }


def make_plan(
    configuration: Configuration,
    snapshots: Mapping[str, str],
    channel: str,
) -> Plan:
    """Compare the snapshots with the release of the channel.

    Args:
        snapshots: catalog -> digest.

    Raises:
        ContractMismatch: a newer version of Pegboard published the release of the channel; its
            readers would not read what this version publishes.
    """
    uri = configuration.uri
    store = ReleaseStore(uri)
    state, live = live_release(store, channel)
    if live is not None and live.contract > CONTRACT:
        check_contract(live.contract, live.id)
    published = _published_digests(store, live)
    listed = dict(snapshot_rows(Lake(uri), snapshots, "tools", ["id", "digest"]).rows())
    common = published.keys() & listed.keys()
    changed = sorted(tool for tool in common if published[tool] != listed[tool])
    texts: dict[str, tuple[int, int]] = {}
    tokens: dict[str, int] = {}
    for index in configuration.indexes if configuration.enrich is None else ():
        is_hosted = not runs_here(index.encoder)
        total, missing, size = _texts(uri, index, snapshots, sizes=is_hosted)
        texts[index.name] = (total, missing)
        if is_hosted:
            tokens[index.name] = round(size / BYTES_PER_TOKEN)
    return Plan(
        channel=channel,
        live=live.id if live else None,
        generation=state.generation if state else 0,
        new=tuple(sorted(listed.keys() - published.keys())),
        changed=tuple(changed),
        removed=tuple(sorted(published.keys() - listed.keys())),
        unchanged=len(common) - len(changed),
        texts=texts,
        withdrawn=state.withdrawn if state else (),
        tokens=tokens,
        changes=_changes(store, live, snapshots, changed[:MAX_COMPARED]),
    )


def live_release(store: ReleaseStore, channel: str) -> tuple[Channel | None, Release | None]:
    """Return the channel and its release; (None, None) for a board that does not exist yet."""
    try:
        damaged = store.remove_damaged("releases")
        state = store.channel(channel)
    except BoardNotFound:
        return None, None
    if state is None:
        return None, None
    try:
        return state, store.get(state.release)
    except BoardNotFound:
        if not damaged:
            raise
    return state, None  # Its row was damaged; this run records it again.


def _published_digests(store: ReleaseStore, release: Release | None) -> dict[str, str]:
    """Return the digests of a release's tools as their catalogs listed them, by id."""
    if release is None:
        return {}
    pin = release.tables["tools"]
    rows = store.read_rows(pin, ["id", "tool_digest"])
    columns = (rows.column(name).to_pylist() for name in ("id", "tool_digest"))
    return dict(zip(*columns, strict=True))


def _changes(
    store: ReleaseStore, live: Release | None, snapshots: Mapping[str, str], ids: Sequence[str]
) -> dict[str, dict[str, FieldChange]]:
    """Return the listed fields of tools that differ from the live release, by tool."""
    if live is None or not ids:
        return {}
    live_tools = tools_with_kinds(store, live, ids)
    changes: dict[str, dict[str, FieldChange]] = {}
    for row in snapshot_rows(Lake(store.uri), snapshots, "tools", ids=ids).iter_rows(named=True):
        live_tool, live_kind = live_tools[row["id"]]
        tool = replace(tool_of(row), enrichment=live_tool.enrichment, flags=live_tool.flags)
        changes[tool.id] = field_changes((live_tool, live_kind), (tool, row["kind"]))
    return dict(sorted(changes.items()))


def _texts(
    uri: str, index: IndexSettings, snapshots: Mapping[str, str], *, sizes: bool
) -> tuple[int, int, int]:
    """Return the number of texts of an index's tools and agents, the number of those that are not
    encoded yet, and the bytes of the latter.

    Args:
        sizes: count the bytes, for which the texts are read; otherwise 0.
    """
    import polars as pl

    lake = Lake(uri)
    documents = [compose(uri, index, snapshots) for compose in (compose_index, compose_agents)]
    columns = ["text_digests", "texts"] if sizes else ["text_digests"]
    rows = pl.concat(read_rows(lake, table.path, columns).explode(*columns) for table in documents)
    encoded = known_texts(lake, encoder_for(index).fingerprint)
    missing = rows.unique("text_digests").join(
        encoded, left_on="text_digests", right_on="text_digest", how="anti"
    )
    size = missing.get_column("texts").str.len_bytes().sum() if sizes else 0
    return rows.height, missing.height, int(size)
