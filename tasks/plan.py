"""Step 2: what a run will do: new, changed, removed and unchanged tools, and the texts that no
encoder has seen yet.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pegboard.encoders import Encoder
from pegboard.errors import BoardNotFound, SourceError
from pegboard.store.database import open_table
from pegboard.store.releases import Channel, Release, ReleaseStore
from tasks.compose import compose_index
from tasks.compose_agents import compose_agents_of
from tasks.edges import compose_edges
from tasks.encoders import encoder_for
from tasks.lake.files import Lake
from tasks.lake.row_sets import read_rows
from tasks.lake.snapshot_rows import snapshot_rows
from tasks.lake.vector_files import known_texts
from tasks.settings.configuration import Configuration, IndexSettings
from tasks.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run will do, against the release that its channel names now.

    `texts` counts, for each index, the texts and those of them that must be encoded; with an LLM
    that is not known before its replies are, and it is empty. `generation` is the channel's at
    this moment: the promotion at the end of the run succeeds only if it is still the same.
    `withdrawn` are the releases from which it was rolled back. `edges` counts the dependencies
    between the tools by their origin."""

    channel: str
    live: str | None
    generation: int
    new: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    unchanged: int
    texts: Mapping[str, tuple[int, int]]
    withdrawn: tuple[str, ...] = ()
    edges: Mapping[str, int] = field(default_factory=dict[str, int])

    def refuse_loss(self, snapshots: Sequence[Snapshot]) -> None:
        """Raises SourceError if this plan would publish the failure of a source: nothing at all, or
        the loss of tools.

        That happens when a source fails and has no last good snapshot, on a new board or after its
        lake was lost."""
        if not any(one.tools for one in snapshots) and any(one.failed for one in snapshots):
            raise SourceError(
                "No source could be read, so nothing is published.\n" + _problems(snapshots)
            )
        missing = {
            one.catalog if agent == "*" else agent
            for one in snapshots
            for agent in one.failed
            if agent not in one.kept
        }
        lost = [
            tool for tool in self.removed if any(tool.startswith(f"{owner}/") for owner in missing)
        ]
        if lost:
            raise SourceError(
                f"{len(lost)} published tools would be lost, because their sources failed and no "
                f"earlier snapshot of them "
                f"is in the lake: {', '.join(lost[:5])}{' ...' if len(lost) > 5 else ''}. Nothing "
                f"is published. Mend the "
                f"sources and run again, or take them out of the "
                f"configuration.\n{_problems(snapshots)}"
            )

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON values."""
        return {
            "channel": self.channel,
            "live": self.live,
            "new": list(self.new),
            "changed": list(self.changed),
            "removed": list(self.removed),
            "unchanged": self.unchanged,
            "withdrawn": list(self.withdrawn),
            "texts": {
                index: {"documents": all_, "to_encode": new}
                for index, (all_, new) in self.texts.items()
            },
            "edges": dict(self.edges),
        }


def make_plan(
    configuration: Configuration,
    snapshots: Mapping[str, str],
    channel: str,
    encoder: Encoder | None = None,
) -> Plan:
    """Compare the snapshots (catalog -> digest) with the release that the channel names.

    Args:
        encoder: stands in for those that are configured.
    """
    now, live = _live_release(configuration.uri, channel)
    published = _published_digests(configuration.uri, live)
    wanted = _digests(configuration.uri, snapshots)
    return Plan(
        channel=channel,
        live=live.id if live else None,
        generation=now.generation if now else 0,
        new=tuple(sorted(wanted.keys() - published.keys())),
        changed=tuple(
            sorted(one for one in wanted.keys() & published.keys() if wanted[one] != published[one])
        ),
        removed=tuple(sorted(published.keys() - wanted.keys())),
        unchanged=sum(wanted[one] == published[one] for one in wanted.keys() & published.keys()),
        texts={}
        if configuration.enrich is not None
        else {
            index.name: _texts(configuration.uri, index, snapshots, encoder or encoder_for(index))
            for index in configuration.indexes
        },
        withdrawn=now.withdrawn if now else (),
        edges=compose_edges(configuration, snapshots).origins,
    )


def _live_release(uri: str, channel: str) -> tuple[Channel | None, Release | None]:
    """The channel and the release that it names; (None, None) for a board that does not exist
    yet.
    """
    store = ReleaseStore(uri)
    try:
        now = store.channel(channel)
    except BoardNotFound:
        return None, None
    return now, store.get(now.release) if now else None


def _published_digests(uri: str, release: Release | None) -> dict[str, str]:
    """The digests of what catalogs said of a release's tools, by id."""
    if release is None:
        return {}
    pin = release.tables["tools"]
    table = open_table(ReleaseStore(uri).database, pin.table, uri, pin.version)
    rows = table.search().select(["id", "tool_digest"]).to_arrow()
    columns = (rows.column(name).to_pylist() for name in ("id", "tool_digest"))
    return dict(zip(*columns, strict=True))


def _digests(uri: str, snapshots: Mapping[str, str]) -> dict[str, str]:
    return dict(snapshot_rows(Lake(uri), snapshots, "tools", ["id", "digest"]).rows())


def _problems(snapshots: Sequence[Snapshot]) -> str:
    return "\n".join(f"  - {problem}" for one in snapshots for problem in one.problems)


def _texts(
    uri: str, index: IndexSettings, snapshots: Mapping[str, str], encoder: Encoder
) -> tuple[int, int]:
    """How many texts the documents of an index and of its agents have, and how many of them no run
    has encoded yet.
    """
    import polars as pl

    lake = Lake(uri)
    documents = [compose(uri, index, snapshots) for compose in (compose_index, compose_agents_of)]
    texts = pl.concat(
        read_rows(lake, one.path, ["text_digests"]).explode("text_digests") for one in documents
    )
    new = texts.unique().join(
        known_texts(lake, encoder.fingerprint),
        left_on="text_digests",
        right_on="text_digest",
        how="anti",
    )
    return texts.height, new.height
