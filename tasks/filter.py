"""Step 3b: of what an LLM wrote, keep the questions that find their tool, and the descriptions that
do not hide theirs.

A generated question is kept if its tool, without it, is among the first k of all tools: a tenth of
them, unless `keep_within` says otherwise.
That is lenient on purpose: a question that finds its tool at once teaches an index little. The
catalog's own requests are never dropped. A regenerated description is taken back if the catalog's
own requests find their tool less well by it than by the original.

What was dropped stays in the lake with its rank and the tool that was found instead:
filtered/<digest>.parquet. The digest is over everything that decides the result, and
filtered/<digest>.json is written last, so a run in which nothing changed does not count again."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from typing import TYPE_CHECKING

from pegboard.canonical import digest
from pegboard.encoders import Encoder
from pegboard.records import Agent, Enrichment, Tool
from pegboard.redaction import redact_credentials
from pegboard.search.cosine import OwnerRanks, paired_cosines, rank_owners
from tasks.embed import encoder_for
from tasks.enrichment.bought import Writings, read_writings, write_writings
from tasks.enrichment.consistency import leave_one_out, rank_progress
from tasks.enrichment.filtered import Filtered, TakenBack, Unfound
from tasks.enrichment.neighbours import head_text
from tasks.enrichment.vectors import vectors_of
from tasks.lake.files import Lake
from tasks.lake.snapshot_rows import load_snapshot
from tasks.settings.configuration import Configuration

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

FILTER_VERSION = 1
"""Changes when the same writings would be filtered otherwise."""
MIN_PLACES = 3
"""The least k: in a small catalog, a tenth of the tools is no place at all."""
EQUAL = 1e-9
"""Mean reciprocal ranks that differ by less are the same."""


def filter_writings(
    configuration: Configuration,
    snapshots: Mapping[str, str],
    bought: Writings,
    encoder: Encoder | None = None,
) -> Filtered:
    """Keep what helps of what was bought for the tools of these snapshots (catalog -> digest), or
    find it done before.

    Args:
        encoder: stands in for that of the default index.
    """
    settings = configuration.enrich
    assert settings is not None, "nothing is bought without [enrich]"
    encoder = encoder or encoder_for(configuration.index(configuration.default))
    requests = max(settings.questions, *(index.questions for index in configuration.indexes))
    limits = [requests, settings.keep_within, settings.collision]
    name = digest([FILTER_VERSION, dict(snapshots), bought.path, encoder.fingerprint, limits])
    lake = Lake(configuration.uri)
    if done := lake.read_json(f"filtered/{name}.json"):
        return Filtered.from_dict(done)

    written, agents = read_writings(lake, bought.path)
    shelf = _shelf(lake, snapshots, written, requests)
    k = max(MIN_PLACES, ceil(settings.keep_within * len(shelf.tools)))
    vectors = vectors_of(lake, encoder, shelf.texts, step="filter")
    judged = _judge(shelf, vectors, k)
    taken_back = _taken_back(shelf, vectors)
    left = _left(shelf, judged, {one.tool for one in taken_back})
    filtered = Filtered(
        writings=write_writings(lake, "enriched", left, agents),
        path=f"filtered/{name}.parquet",
        k=k,
        questions=len(judged),
        kept=sum(one.kept for one in judged),
        descriptions=sum(bool(one.description) for one in shelf.written),
        unfound=_unfound(shelf, vectors, judged, settings.collision),
        taken_back=taken_back,
    )
    lake.write(filtered.path, _frame(shelf, judged, k))
    lake.write_json(f"filtered/{name}.json", filtered.to_dict())
    return filtered


@dataclass(slots=True)
class _Shelf:
    """The tools and their texts, tool by tool: its head, the catalog's requests, the generated
    questions, each text once.

    `starts` has the row of each tool's head; `requests` and `questions` the rows of those of each
    tool; `new_heads` the rows, after all others, of the heads with a regenerated description.
    """

    tools: list[Tool] = field(default_factory=list[Tool])
    written: list[Enrichment] = field(default_factory=list[Enrichment])
    texts: list[str] = field(default_factory=list[str])
    starts: list[int] = field(default_factory=list[int])
    requests: list[list[int]] = field(default_factory=list[list[int]])
    questions: list[list[int]] = field(default_factory=list[list[int]])
    new_heads: dict[int, int] = field(default_factory=dict[int, int])
    end: int = 0

    def put(self, tool: Tool, agent: Agent, written: Enrichment, requests: int) -> None:
        start = len(self.texts)
        rows = {head_text(tool, agent): start}
        rows_of = [
            [rows.setdefault(redact_credentials(text), start + len(rows)) for text in texts]
            for texts in (tool.examples[:requests], written.questions)
        ]
        self.tools.append(tool)
        self.written.append(written)
        self.texts += rows
        self.starts.append(start)
        self.requests.append(rows_of[0])
        self.questions.append(rows_of[1])


@dataclass(frozen=True, slots=True)
class _Judged:
    """A question, by the places of its tool and its own, its rank, and if it is dropped, why, and
    which tool was found instead.
    """

    tool: int
    number: int
    rank: int
    reason: str
    winner: int | None

    @property
    def kept(self) -> bool:
        return not self.reason


def _shelf(
    lake: Lake, snapshots: Mapping[str, str], written: Mapping[str, Enrichment], requests: int
) -> _Shelf:
    shelf, agents, nothing = _Shelf(), dict[str, Agent](), Enrichment()
    for catalog, identity in sorted(snapshots.items()):
        listing = load_snapshot(lake, catalog, identity)
        agents |= {agent.id: agent for agent in listing.agents}
        for tool in listing.tools:
            shelf.put(tool, agents[tool.agent], written.get(tool.id, nothing), requests)
    shelf.end = len(shelf.texts)
    for at, (tool, enrichment) in enumerate(zip(shelf.tools, shelf.written, strict=True)):
        if enrichment.description:
            shelf.new_heads[at] = len(shelf.texts)
            shelf.texts.append(
                head_text(replace(tool, description=enrichment.description), agents[tool.agent])
            )
    return shelf


def _judge(shelf: _Shelf, vectors: "NDArray[np.float32]", k: int) -> list[_Judged]:
    """Every generated question, in the order of the tools and of their questions."""
    import numpy as np

    places = [
        (at, number) for at, rows in enumerate(shelf.questions) for number in range(len(rows))
    ]
    if not places:
        return []
    rows = np.array([shelf.questions[at][number] for at, number in places], np.int64)
    owners = np.array([at for at, _ in places], np.int64)
    found = leave_one_out(vectors[: shelf.end], np.array(shelf.starts, np.int64), rows, owners)
    return list(_verdicts(shelf, places, found, k))


def _verdicts(
    shelf: _Shelf, places: Sequence[tuple[int, int]], found: OwnerRanks, k: int
) -> Iterator[_Judged]:
    ranks, winners = found.ranks.tolist(), found.winners.tolist()
    for (at, number), rank, winner in zip(places, ranks, winners, strict=True):
        rows = shelf.questions[at]
        repeated = rows[number] in rows[:number] or rows[number] in shelf.requests[at]
        reason = "repeated" if repeated else "not-found" if rank > k else ""
        yield _Judged(at, number, rank, reason, winner if reason == "not-found" else None)


def _taken_back(shelf: _Shelf, vectors: "NDArray[np.float32]") -> tuple[TakenBack, ...]:
    """The tools whose requests find them less well by the new description; a tool without requests
    cannot be checked.
    """
    import numpy as np

    checked = [
        (at, list(dict.fromkeys(shelf.requests[at])))
        for at in shelf.new_heads
        if shelf.requests[at]
    ]
    if not checked:
        return ()
    owners = np.array([at for at, requests in checked for _ in requests], np.int64)
    rows = np.array([row for _, requests in checked for row in requests], np.int64)
    counts = np.array([len(requests) for _, requests in checked])
    heads = vectors[shelf.starts]
    new_heads = vectors[[shelf.new_heads[at] for at in owners.tolist()]]
    means: list[list[float]] = []
    for own in (heads[owners], new_heads):
        cosines = paired_cosines(vectors[rows], own)
        found = rank_owners(vectors, rows, owners, cosines, heads, progress=rank_progress())
        ranks = found.ranks
        means.append((np.add.reduceat(1 / ranks, counts.cumsum() - counts) / counts).tolist())
    return tuple(
        TakenBack(shelf.tools[at].id, len(requests), round(original, 5), round(regenerated, 5))
        for (at, requests), original, regenerated in zip(checked, *means, strict=True)
        if regenerated < original - EQUAL
    )


def _left(shelf: _Shelf, judged: Sequence[_Judged], taken_back: set[str]) -> dict[str, Enrichment]:
    kept: dict[int, list[str]] = {}
    for one in judged:
        if one.kept:
            kept.setdefault(one.tool, []).append(shelf.written[one.tool].questions[one.number])
    left: dict[str, Enrichment] = {}
    for at, (tool, written) in enumerate(zip(shelf.tools, shelf.written, strict=True)):
        written = replace(written, questions=tuple(kept.get(at, ())))
        left[tool.id] = (
            replace(written, description="", avoid="") if tool.id in taken_back else written
        )
    return left


def _unfound(
    shelf: _Shelf, vectors: "NDArray[np.float32]", judged: Sequence[_Judged], collision: float
) -> tuple[Unfound, ...]:
    """The tools more than half of whose questions, and at least two, do not find them; the worst
    first.
    """
    winners: dict[int, list[int]] = {}
    for one in judged:
        if one.winner is not None:
            winners.setdefault(one.tool, []).append(one.winner)
    counts = Counter(one.tool for one in judged if one.reason != "repeated")
    found: list[Unfound] = []
    for at, lost in winners.items():
        if len(lost) >= 2 and 2 * len(lost) > counts[at]:
            rival, times = min(Counter(lost).items(), key=lambda item: (-item[1], item[0]))
            alike = float(vectors[shelf.starts[at]] @ vectors[shelf.starts[rival]]) >= collision
            ids = shelf.tools[at].id, shelf.tools[rival].id
            found.append(Unfound(ids[0], len(lost), counts[at], ids[1], times, alike))
    return tuple(
        sorted(found, key=lambda one: (-one.dropped / one.questions, -one.dropped, one.tool))
    )


def _frame(shelf: _Shelf, judged: Sequence[_Judged], k: int) -> "pl.DataFrame":
    import polars as pl

    ids = [tool.id for tool in shelf.tools]
    texts = (shelf.texts[shelf.questions[one.tool][one.number]] for one in judged)
    return pl.DataFrame(
        {
            "tool": [ids[one.tool] for one in judged],
            "number": [one.number for one in judged],
            "question": list(texts),
            "rank": [one.rank for one in judged],
            "k": [k] * len(judged),
            "kept": [one.kept for one in judged],
            "reason": [one.reason for one in judged],
            "winner": ["" if one.winner is None else ids[one.winner] for one in judged],
        },
        schema={
            "tool": pl.String,
            "number": pl.Int64,
            "question": pl.String,
            "rank": pl.Int64,
            "k": pl.Int64,
            "kept": pl.Boolean,
            "reason": pl.String,
            "winner": pl.String,
        },
    )
