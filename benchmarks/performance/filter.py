"""`python -m benchmarks.performance.filter`: what the filter of generated questions is worth, and
what it costs on a large catalog.

worth   MetaTool's 199 tools with ten questions each, taken as generated ones, a share of them
replaced by another tool's: the recall of an
        index of centroids on MetaTool's requests with one tool, with and without the filter
cost    random vectors: 6,000 tools with ten questions each, or 60,000 with --whole, which is a
hundred times the work"""

import json
import os
import platform
import resource
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from pegboard.encoders import Encoder, load_encoder
from pegboard.records import Enrichment
from tasks.enrichment.consistency import leave_one_out
from tasks.enrichment.enrichment_sets import read_enrichments, write_enrichments
from tasks.enrichment.neighbours import head_text
from tasks.enrichment.vectors import vectors_of
from tasks.filter import filter_enrichments
from tasks.lake.files import Lake
from tasks.lake.snapshot_rows import load_snapshot
from tasks.settings.configuration import DEFAULT_ENCODER, load_configuration
from tasks.snapshot import take_snapshot

METATOOL = Path(__file__).parents[3] / "shared" / "benchmarks" / "metatool"
SEEDS = (0, 1, 2)
CONFIGURATION = """
[board]
uri = "board"
[catalogs.metatool]
type = "functions"
path = "tools.json"
[enrich]
model = "openai/none"
"""


def spoiled(questions: Sequence[tuple[str, str]], share: float, seed: int) -> dict[str, list[str]]:
    """The questions of each tool, a share of them replaced by any other tool's."""
    random = np.random.default_rng(seed)
    left: dict[str, list[str]] = {}
    for tool, text in questions:
        if random.random() < share:
            others = [other for other, _ in questions if other != tool]
            stranger = others[random.integers(len(others))]
            theirs = [one for other, one in questions if other == stranger]
            text = theirs[random.integers(len(theirs))]
        left.setdefault(tool, []).append(text)
    return left


class MetaTool:
    """MetaTool's tools as a catalog, and the recall of an index of centroids over them."""

    def __init__(self, folder: Path, encoder: Encoder) -> None:
        described = json.loads((METATOOL / "plugin_des.json").read_text("utf-8"))
        functions = [
            {"name": name, "description": text, "parameters": {}}
            for name, text in sorted(described.items())
        ]
        (folder / "tools.json").write_text(json.dumps(functions), "utf-8")
        (folder / "pegboard.toml").write_text(CONFIGURATION, "utf-8")
        self.configuration = load_configuration(folder / "pegboard.toml")
        self.lake, self.encoder = Lake(self.configuration.uri), encoder
        self.snapshot = take_snapshot(self.configuration, "metatool").digest
        listing = load_snapshot(self.lake, "metatool", self.snapshot)
        self.tools = {tool.name: tool for tool in listing.tools}
        self.heads = [head_text(tool, listing.agents[0]) for tool in listing.tools]
        self.examples = _pairs("example_queries.jsonl")
        self.requests = _pairs("single_tool_queries.jsonl")
        texts = list(
            dict.fromkeys([*self.heads, *(text for _, text in self.examples + self.requests)])
        )
        self.vectors = dict(zip(texts, vectors_of(self.lake, encoder, texts), strict=True))

    def filter(self, questions: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
        """The questions of each tool that the filter keeps."""
        written = {
            self.tools[name].id: Enrichment(questions=tuple(texts))
            for name, texts in questions.items()
        }
        bought = write_enrichments(self.lake, "generated", written, {})
        filtered = filter_enrichments(
            self.configuration, {"metatool": self.snapshot}, bought, self.encoder
        )
        kept, _ = read_enrichments(self.lake, filtered.enrichments.path)
        return {
            name: list(kept[tool.id].questions)
            for name, tool in self.tools.items()
            if tool.id in kept
        }

    def recall(self, questions: Mapping[str, Sequence[str]], kind: str) -> list[float]:
        """Recall@5 and Recall@10 of an index of that kind."""
        rows: list[np.ndarray] = []
        for name, head in zip(self.tools, self.heads, strict=True):
            asked = np.array(
                [self.vectors[text] for text in questions.get(name, ())] or [self.vectors[head]]
            ).sum(axis=0)
            if kind == "sum":
                rows.append(self.vectors[head] + asked)
            else:
                rows.append(0.3 * self.vectors[head] + asked / np.linalg.norm(asked))
        index = np.array(rows) / np.linalg.norm(rows, axis=1, keepdims=True)
        scores = np.array([self.vectors[text] for _, text in self.requests]) @ index.T
        answers = np.array([list(self.tools).index(name) for name, _ in self.requests])
        own = scores[np.arange(len(scores)), answers]
        ranks = (np.round(scores, 5) > np.round(own, 5)[:, None]).sum(axis=1)
        return [float((ranks < k).mean()) for k in (5, 10)]


def bench_worth(metatool: MetaTool) -> None:
    print(
        "| replaced | index | R@5 / R@10 without the filter | with it | good dropped | bad "
        "dropped |"
    )
    print("|---|---|---|---|---|---|")
    for share in (0.0, 0.3, 0.6):
        mixed = [
            spoiled(metatool.examples, share, seed) for seed in (SEEDS if share else SEEDS[:1])
        ]
        kept = [metatool.filter(questions) for questions in mixed]
        lost = np.mean([_lost(metatool, *pair) for pair in zip(mixed, kept, strict=True)], axis=0)
        for kind in ("sum", "centroid + 0.3 description"):
            before, after = (
                np.mean([metatool.recall(one, kind) for one in some], axis=0)
                for some in (mixed, kept)
            )
            figures = [f"{one[0]:.3f} / {one[1]:.3f}" for one in (before, after)]
            print(
                f"| {share:.0%} | {kind} | {' | '.join(figures)} | {lost[0]:.1%} | {lost[1]:.1%} |"
            )


def _lost(
    metatool: MetaTool, mixed: Mapping[str, Sequence[str]], kept: Mapping[str, Sequence[str]]
) -> list[float]:
    """The shares of the tools' own and of strange questions that were dropped; NaN where there were
    none.
    """
    own = set(metatool.examples)
    pairs = {(name, text) for name, texts in mixed.items() for text in texts}
    left = {(name, text) for name, texts in kept.items() for text in texts}
    return [
        1 - len(some & left) / len(some) if some else float("nan")
        for some in (pairs & own, pairs - own)
    ]


def bench_cost(tools: int, questions: int) -> None:
    random = np.random.default_rng(0)
    each = questions + 1
    vectors = np.empty((tools * each, 384), np.float32)
    for start in range(0, len(vectors), 10_000):
        piece = random.standard_normal((min(10_000, len(vectors) - start), 384), dtype=np.float32)
        vectors[start : start + len(piece)] = piece / np.linalg.norm(piece, axis=1, keepdims=True)
    rows = np.flatnonzero(np.arange(len(vectors)) % each)
    held = _peak_mb()
    begin = time.perf_counter()
    leave_one_out(vectors, np.arange(0, len(vectors), each), rows, rows // each)
    seconds = time.perf_counter() - begin
    print(
        f"{tools:,} tools x {questions} questions: {seconds:.0f} s, {_peak_mb() - held:,.0f} MB "
        f"beside the vectors' {vectors.nbytes / 1e6:,.0f} MB"
    )


def _pairs(file: str) -> list[tuple[str, str]]:
    lines = (METATOOL / file).read_text("utf-8").splitlines()
    return [(one["tool"], one["query"].strip()) for one in map(json.loads, lines)]


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    print(f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores")
    bench_cost(60_000 if "--whole" in sys.argv else 6_000, 10)
    with tempfile.TemporaryDirectory() as folder:
        bench_worth(MetaTool(Path(folder), load_encoder(DEFAULT_ENCODER)))


if __name__ == "__main__":
    main()
