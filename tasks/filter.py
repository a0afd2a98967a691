"""Step 3b: keep generated questions that find their tool, and descriptions that do not hide theirs.

A generated question is kept if its tool, without it, is among the first k of all tools: a tenth of
them, unless `keep_within` says otherwise. That is lenient on purpose: a question that finds its
tool at once teaches an index little. The catalog's own requests are never dropped. A regenerated
description is reverted if the catalog's own requests find their tool less well by it than by the
original. (Round-trip consistency, as in Promptagator and InPars.)

What was dropped stays in the lake with its rank and the tool that was found instead:
filtered/<digest>.parquet. The digest is over everything that decides the result, and
filtered/<digest>.json is written last, so a run in which nothing changed does not compute again."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import ceil
from typing import TYPE_CHECKING, Any

from pegboard.canonical import digest
from pegboard.encoders import Encoder
from pegboard.errors import CompletionError
from pegboard.records import Agent, Enrichment, Tool
from pegboard.redaction import redact_credentials
from pegboard.search.cosine import BLOCK_SCORES, TIE, OwnerRanks, paired_cosines, rank_owners
from tasks import progress
from tasks.embed import encoder_for
from tasks.enrichment.enrichment_sets import EnrichmentSet, read_enrichments, write_enrichments
from tasks.enrichment.figures import MIN_JUDGED
from tasks.enrichment.neighbours import head_text
from tasks.enrichment.vectors import vectors_of
from tasks.lake.files import Lake
from tasks.lake.snapshot_rows import load_snapshot
from tasks.settings.configuration import Configuration

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

FILTER_VERSION = 4
"""Changes when the same enrichments would be filtered or reported otherwise."""
MIN_K = 3
"""Minimum rank that passes, for small catalogs."""
PIECE = 10_000
"""Texts that are held in float64 at once."""
EQUAL = 1e-9
"""Mean reciprocal ranks that differ by less are the same."""


@dataclass(frozen=True, slots=True)
class RevertedDescription:
    """A regenerated description that was reverted, with the mean reciprocal ranks by both."""

    tool: str
    requests: int
    original: float
    regenerated: float

    def __str__(self) -> str:
        return (
            f"{self.tool}: the catalog's description stays, since the catalog's own requests "
            f"({self.requests}) find the tool less well by the new one (mean reciprocal rank "
            f"{self.regenerated:.3f} instead of {self.original:.3f})."
        )


@dataclass(frozen=True, slots=True)
class Filtered:
    """The result of the filter, and its counts.

    Attributes:
        enrichments: what is left.
        path: the file of the lake with every generated question, its rank, and why it was dropped.
        k: a question is kept if its tool is among the first k.
        questions: how many were judged, of which so many were `kept`.
        descriptions: how many were judged; those in `reverted` are out.
    """

    enrichments: EnrichmentSet
    path: str
    k: int
    questions: int
    kept: int
    descriptions: int
    reverted: tuple[RevertedDescription, ...] = ()

    @property
    def problem(self) -> str:
        """A warning if most questions were dropped; else empty."""
        if self.questions < MIN_JUDGED or 2 * self.kept >= self.questions:
            return ""
        return (
            f"Most generated questions do not find their tool, or repeat others: "
            f"{self.questions - self.kept} of {self.questions} were dropped."
        )

    @property
    def reports(self) -> tuple[str, ...]:
        """Messages for the build's output."""
        return tuple(map(str, self.reverted))

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return {**asdict(self), "reports": list(self.reports)}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> "Filtered":
        """Restore from the values of `to_dict`."""
        values = {name: value[name] for name in value if name != "reports"}
        values["enrichments"] = EnrichmentSet(**value["enrichments"])
        values["reverted"] = tuple(RevertedDescription(**one) for one in value["reverted"])
        return cls(**values)


def filter_enrichments(
    configuration: Configuration,
    snapshots: Mapping[str, str],
    generated: EnrichmentSet,
) -> Filtered:
    """Filter the generated texts of these snapshots (catalog -> digest).

    Raises:
        CompletionError: most questions were dropped, and `incomplete` is `stop`.
    """
    settings = configuration.enrich
    assert settings is not None, "nothing is generated without [enrich]"
    encoder = encoder_for(configuration.index(configuration.default))
    limits = [_requests_of(configuration), settings.keep_within]
    name = digest([FILTER_VERSION, dict(snapshots), generated.path, encoder.fingerprint, limits])
    lake = Lake(configuration.uri)
    done = lake.read_json(f"filtered/{name}.json")
    filtered = (
        Filtered.from_dict(done)
        if done
        else _filter(lake, name, configuration, snapshots, generated, encoder)
    )
    if filtered.problem and settings.incomplete == "stop":
        raise CompletionError(
            f"{filtered.problem} Nothing was published. {lake.uri}/{filtered.path} has each with "
            "the tool that it finds. Change the prompt or the model, or set incomplete = 'publish' "
            "under [enrich] to publish those that are left."
        )
    return filtered


def _filter(
    lake: Lake,
    name: str,
    configuration: Configuration,
    snapshots: Mapping[str, str],
    generated: EnrichmentSet,
    encoder: Encoder,
) -> Filtered:
    settings = configuration.enrich
    assert settings is not None
    requests = _requests_of(configuration)
    enrichments, agents = read_enrichments(lake, generated.path)
    texts = _read_texts(lake, snapshots, enrichments, requests)
    k = max(MIN_K, ceil(settings.keep_within * len(texts.tools)))
    vectors = vectors_of(lake, encoder, texts.texts, step="filter")
    questions = _judge_questions(texts, vectors, k)
    reverted = _reverted(texts, vectors)
    remaining = _remaining(texts, questions, {one.tool for one in reverted})
    filtered = Filtered(
        enrichments=write_enrichments(lake, "enriched", remaining, agents),
        path=f"filtered/{name}.parquet",
        k=k,
        questions=len(questions),
        kept=sum(question.kept for question in questions),
        descriptions=sum(bool(one.description) for one in texts.enrichments),
        reverted=reverted,
    )
    lake.write(filtered.path, _frame(texts, questions, k))
    lake.write_json(f"filtered/{name}.json", filtered.to_dict())
    return filtered


def _requests_of(configuration: Configuration) -> int:
    """Return how many of the catalog's requests are looked at of each tool."""
    assert configuration.enrich is not None
    indexed = [index.questions for index in configuration.indexes]
    return max(configuration.enrich.questions, *indexed)


@dataclass(slots=True)
class _Texts:
    """The tools and their texts, tool by tool.

    The texts of a tool are its head (name and description), the catalog's requests and the
    generated questions, each once.

    Attributes:
        starts: the row of each tool's head.
        requests, questions: the rows of those of each tool.
        new_heads: the rows, after all others, of heads with a regenerated description.
        end: the number of texts without those.
    """

    tools: list[Tool] = field(default_factory=list[Tool])
    enrichments: list[Enrichment] = field(default_factory=list[Enrichment])
    texts: list[str] = field(default_factory=list[str])
    starts: list[int] = field(default_factory=list[int])
    requests: list[list[int]] = field(default_factory=list[list[int]])
    questions: list[list[int]] = field(default_factory=list[list[int]])
    new_heads: dict[int, int] = field(default_factory=dict[int, int])
    end: int = 0

    def add(self, tool: Tool, agent: Agent, enrichment: Enrichment, requests: int) -> None:
        start = len(self.texts)
        rows = {head_text(tool, agent): start}

        def rows_of(texts: Sequence[str]) -> list[int]:
            clean = (redact_credentials(text) for text in texts)
            return [rows.setdefault(text, start + len(rows)) for text in clean]

        self.requests.append(rows_of(tool.examples[:requests]))
        self.questions.append(rows_of(enrichment.questions))
        self.tools.append(tool)
        self.enrichments.append(enrichment)
        self.texts += rows
        self.starts.append(start)


@dataclass(frozen=True, slots=True)
class _Question:
    """A judged question: its rank, why it is dropped, and the tool found instead."""

    tool: int
    number: int
    rank: int
    reason: str
    winner: int | None

    @property
    def kept(self) -> bool:
        return not self.reason


def _read_texts(
    lake: Lake, snapshots: Mapping[str, str], enrichments: Mapping[str, Enrichment], requests: int
) -> _Texts:
    texts, agents, nothing = _Texts(), dict[str, Agent](), Enrichment()
    for catalog, identity in sorted(snapshots.items()):
        listing = load_snapshot(lake, catalog, identity)
        agents |= {agent.id: agent for agent in listing.agents}
        for tool in listing.tools:
            texts.add(tool, agents[tool.agent], enrichments.get(tool.id, nothing), requests)
    texts.end = len(texts.texts)
    for at, (tool, enrichment) in enumerate(zip(texts.tools, texts.enrichments, strict=True)):
        if enrichment.description:
            described = replace(tool, description=enrichment.description)
            texts.new_heads[at] = len(texts.texts)
            texts.texts.append(head_text(described, agents[tool.agent]))
    return texts


def _judge_questions(texts: _Texts, vectors: "NDArray[np.float32]", k: int) -> list[_Question]:
    """Every generated question, in the order of the tools and of their questions."""
    import numpy as np

    places = [
        (at, number) for at, rows in enumerate(texts.questions) for number in range(len(rows))
    ]
    if not places:
        return []
    rows = np.array([texts.questions[at][number] for at, number in places], np.int64)
    owners = np.array([at for at, _ in places], np.int64)
    starts = np.array(texts.starts, np.int64)
    ranked = leave_one_out(vectors[: texts.end], starts, rows, owners)
    return [
        _judge_question(texts, at, number, rank, winner, k)
        for (at, number), rank, winner in zip(
            places, ranked.ranks.tolist(), ranked.winners.tolist(), strict=True
        )
    ]


def _judge_question(
    texts: _Texts, at: int, number: int, rank: int, winner: int, k: int
) -> _Question:
    rows = texts.questions[at]
    repeated = rows[number] in rows[:number] or rows[number] in texts.requests[at]
    reason = "repeated" if repeated else "not-found" if rank > k else ""
    return _Question(at, number, rank, reason, winner if reason == "not-found" else None)


def _reverted(texts: _Texts, vectors: "NDArray[np.float32]") -> tuple[RevertedDescription, ...]:
    """The tools whose requests find them less well by the new description.

    A tool without requests cannot be checked.
    """
    import numpy as np

    checked = [
        (at, list(dict.fromkeys(texts.requests[at])))
        for at in texts.new_heads
        if texts.requests[at]
    ]
    if not checked:
        return ()
    owners = np.array([at for at, requests in checked for _ in requests], np.int64)
    rows = np.array([row for _, requests in checked for row in requests], np.int64)
    counts = np.array([len(requests) for _, requests in checked])
    heads = vectors[texts.starts]
    new_heads = vectors[[texts.new_heads[at] for at in owners.tolist()]]

    def mean_reciprocal_ranks(own: "NDArray[np.float32]") -> list[float]:
        cosines = paired_cosines(vectors[rows], own)
        ranked = rank_owners(vectors, rows, owners, cosines, heads, progress=rank_progress())
        sums = np.add.reduceat(1 / ranked.ranks, counts.cumsum() - counts)
        return (sums / counts).tolist()

    means = mean_reciprocal_ranks(heads[owners]), mean_reciprocal_ranks(new_heads)
    return tuple(
        RevertedDescription(
            texts.tools[at].id, len(requests), round(original, 5), round(regenerated, 5)
        )
        for (at, requests), original, regenerated in zip(checked, *means, strict=True)
        if regenerated < original - EQUAL
    )


def _remaining(
    texts: _Texts, questions: Sequence[_Question], reverted: set[str]
) -> dict[str, Enrichment]:
    kept: dict[int, list[str]] = {}
    for question in questions:
        if question.kept:
            text = texts.enrichments[question.tool].questions[question.number]
            kept.setdefault(question.tool, []).append(text)
    remaining: dict[str, Enrichment] = {}
    for at, (tool, enrichment) in enumerate(zip(texts.tools, texts.enrichments, strict=True)):
        left = replace(enrichment, questions=tuple(kept.get(at, ())))
        remaining[tool.id] = (
            replace(left, description="", avoid="") if tool.id in reverted else left
        )
    return remaining


def _frame(texts: _Texts, questions: Sequence[_Question], k: int) -> "pl.DataFrame":
    import polars as pl

    ids = [tool.id for tool in texts.tools]
    rows = [
        {
            "tool": ids[question.tool],
            "number": question.number,
            "question": texts.texts[texts.questions[question.tool][question.number]],
            "rank": question.rank,
            "k": k,
            "kept": question.kept,
            "reason": question.reason,
            "winner": "" if question.winner is None else ids[question.winner],
        }
        for question in questions
    ]
    kinds: dict[str, Any] = dict.fromkeys(
        ("tool", "number", "question", "rank", "k", "kept", "reason", "winner"), pl.String
    )
    kinds |= dict.fromkeys(("number", "rank", "k"), pl.Int64) | {"kept": pl.Boolean}
    return pl.DataFrame(rows, schema=kinds)


def leave_one_out(
    vectors: "NDArray[np.float32]",
    starts: "NDArray[np.int64]",
    rows: "NDArray[np.int64]",
    owners: "NDArray[np.int64]",
    *,
    block_scores: int = BLOCK_SCORES,
) -> OwnerRanks:
    """Where texts rank the tool that they were written for, when that tool has to do without them.

    Its tool is the sum of the vectors of its other texts, every other tool is its whole sum.

    Args:
        vectors: unit vectors of all texts, tool by tool, shape (texts, dimensions).
        starts: the first text of each tool; every tool has at least one.
        rows: the texts to rank for.
        owners: the tool of each of those, as its place in `starts`.
        block_scores: how many scores are held at once, 4 bytes each.
    """
    import numpy as np

    sums = np.add.reduceat(vectors, starts, axis=0)
    own = np.empty(len(rows), np.float64)
    for start in range(0, len(rows), PIECE):
        piece = slice(start, start + PIECE)
        texts = vectors[rows[piece]]
        own[piece] = paired_cosines(texts, sums[owners[piece]] - texts)
    sums /= np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), TIE)
    return rank_owners(
        vectors, rows, owners, own, sums, block_scores=block_scores, progress=rank_progress()
    )


def rank_progress() -> Callable[[int, int], None]:
    """What shows a computation of ranks as a step of the run, once its first block is done."""
    shown = 0

    def show(done: int, total: int) -> None:
        nonlocal shown
        if not shown:
            progress.start("ranks", total)
        progress.advance("ranks", done - shown)
        shown = done

    return show
