"""Find tools of different agents that do the same thing, by their names and their vectors.

The score of two tools is the geometric mean of two similarities:

- *Names*: the weight of the common words, divided by the weight of all words. The more agents use a
  word (`get`, `search`), and the more tools of one agent have it (`browser_` in every name of a
  browser's tools), the lower its weight, so that such words alone do not make names similar.
- *Vectors*: the cosine after a share of the mean vector of each agent's tools was subtracted, so
  that text which all tools of an API repeat does not make them similar.

The constants are calibrated on the tools of two browser servers, whose figures are in
docs/results/real.md.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any

from pegboard.records import Tool
from pegboard.search.loaded import LoadedRelease
from pegboard.search.memory import MemoryIndex
from pegboard.text.words import singular_words
from tasks.report.excerpts import excerpt

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_TWINS = 100
"""Largest number of pairs in a report, which has the count of all."""
LEAST_SCORE = 0.5
"""Smallest score of twins."""
LEAST_COSINE = 0.4
"""Smallest cosine of the original vectors of twins: different tools may have equal names."""
SMOOTHING = 0.7
"""Weight that is added to that of all words of two names."""
HALF_SIZE = 8
"""Number of tools of an agent for which half of the mean vector is subtracted; more for a larger
agent."""
NEAREST = 30
"""Largest number of tools of other agents with which each tool is compared."""
BLOCK = 200
"""Number of tools whose cosines with all others are in memory at once, 4 bytes for each pair."""
DESCRIPTION = 300
"""Largest number of characters of a tool's description."""
MAX_TOOLS = 10_000
"""Largest number of tools that are compared with each other, which takes two seconds of one core.
"""
READ_AT_ONCE = 1_000
"""Number of tools that are read in one call, whose filter has all their ids."""

Twin = tuple[float, float, int, int]
"""Score, cosine, and the positions of both tools."""


@dataclass(frozen=True)
class ToolVectors:
    """The tools of a release with a unit vector for each: the mean of its vectors in the default
    index.

    Attributes:
        ids: sorted ids, so that the tools of an agent are consecutive.
        matrix: the vectors, of shape (tools, dimensions).
    """

    ids: Sequence[str]
    matrix: "NDArray[np.float32]"

    @classmethod
    def of(cls, loaded: LoadedRelease) -> "ToolVectors":
        """Read the vectors of the default index, from memory or from its table."""
        import numpy as np

        index = loaded.index(loaded.index_name(None))
        in_memory = isinstance(index, MemoryIndex)
        rows = index.rows if in_memory else index.table.read(["tool", "vector"])
        tools = np.array(rows.column("tool").to_pylist(), dtype=np.str_)
        column = rows.column("vector").combine_chunks()
        flat = column.flatten().to_numpy(zero_copy_only=False)
        matrix = flat.reshape(rows.num_rows, column.type.list_size).astype(np.float32, copy=False)
        order = np.argsort(tools, kind="stable")
        ids, starts = np.unique(tools[order], return_index=True)
        means = unit(np.add.reduceat(matrix[order], starts, axis=0)) if len(ids) else matrix
        return cls(ids.tolist(), means)

    @cached_property
    def agents(self) -> dict[str, tuple[int, int]]:
        """For each agent the position of its first tool, and the position after its last."""
        counts = [(agent, len(list(group))) for agent, group in groupby(self.ids, agent_of)]
        ends = [0]
        for _, count in counts:
            ends.append(ends[-1] + count)
        return {agent: span for (agent, _), span in zip(counts, pairwise(ends), strict=True)}


def agent_of(tool: str) -> str:
    """Return the id of a tool's agent."""
    return tool.rpartition("/")[0]


def read_tools(loaded: LoadedRelease, ids: Sequence[str]) -> dict[str, Tool]:
    """Return tools by id, read in chunks."""
    tools: dict[str, Tool] = {}
    for start in range(0, len(ids), READ_AT_ONCE):
        tools |= loaded.tools(ids[start : start + READ_AT_ONCE])
    return tools


def unit(vectors: "NDArray[np.float32]") -> "NDArray[np.float32]":
    """Return the vectors scaled to length 1; zero vectors are unchanged."""
    import numpy as np

    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def twins_data(loaded: LoadedRelease) -> dict[str, Any]:
    """Return the pairs of tools of different agents that do the same thing, highest score first."""
    if (total := loaded.release.tables["tools"].rows) > MAX_TOOLS:
        return {
            "missing": f"Not compared: the release has {total:,} tools, and a report "
            f"compares {MAX_TOOLS:,} at most."
        }
    vectors = ToolVectors.of(loaded)
    names = {tool: name for tool, name, _ in loaded.tool_names()}
    pairs = find_twins(vectors, [names[tool] for tool in vectors.ids])
    shown = pairs[:MAX_TWINS]
    positions = {position for *_, left, right in shown for position in (left, right)}
    tools = read_tools(loaded, sorted(vectors.ids[position] for position in positions))

    def tool_data(position: int) -> dict[str, str]:
        tool = tools[vectors.ids[position]]
        description = excerpt(tool.description, DESCRIPTION)
        return {"id": tool.id, "name": tool.name, "description": description}

    return {
        "least": LEAST_SCORE,
        "total": len(pairs),
        "shown": [
            {
                "score": round(score, 4),
                "cosine": round(cosine, 4),
                "first": tool_data(first),
                "second": tool_data(second),
            }
            for score, cosine, first, second in shown
        ],
    }


def find_twins(vectors: ToolVectors, names: Sequence[str]) -> list[Twin]:
    """Return the twins among tools, highest score first.

    Args:
        names: the names of the tools, in the order of `vectors`.
    """
    ranges = list(vectors.agents.values())
    if len(ranges) < 2:
        return []
    weights = _word_weights(names, ranges)
    distinct = _without_agent_means(vectors.matrix, ranges)
    twins: list[Twin] = []
    for (first, second), similarity in _candidates(distinct, ranges).items():
        score = math.sqrt(similarity * _name_similarity(weights[first], weights[second]))
        if score < LEAST_SCORE:
            continue
        cosine = float(vectors.matrix[first] @ vectors.matrix[second])
        if cosine >= LEAST_COSINE:
            twins.append((score, cosine, first, second))
    return sorted(twins, key=lambda twin: (-twin[0], *twin[2:]))


def _word_weights(
    names: Sequence[str], ranges: Sequence[tuple[int, int]]
) -> list[dict[str, float]]:
    """Return for each name the weights of its words.

    Args:
        ranges: for each agent the positions of its names, the end exclusive.
    """
    words_by_name = [set(singular_words(name)) for name in names]
    counts_by_agent = [
        Counter(word for words in words_by_name[start:end] for word in words)
        for start, end in ranges
    ]
    agents = Counter(word for counts in counts_by_agent for word in counts)
    rarity = {word: math.log(1 + len(ranges) / count) for word, count in agents.items()}
    weights: list[dict[str, float]] = []
    for counts, (start, end) in zip(counts_by_agent, ranges, strict=True):
        share = {word: (count - 1) / (end - start) for word, count in counts.items()}
        weights += [
            {word: rarity[word] * (1 - share[word]) for word in words}
            for words in words_by_name[start:end]
        ]
    return weights


def _name_similarity(first: Mapping[str, float], second: Mapping[str, float]) -> float:
    common_words = first.keys() & second.keys()
    common_weight = sum(min(first[word], second[word]) for word in common_words)
    other_weight = sum(
        weight for word, weight in (*first.items(), *second.items()) if word not in common_words
    )
    return common_weight / (common_weight + other_weight + SMOOTHING)


def _without_agent_means(
    matrix: "NDArray[np.float32]", ranges: Sequence[tuple[int, int]]
) -> "NDArray[np.float32]":
    import numpy as np

    distinct = np.empty_like(matrix)
    for start, end in ranges:
        share = (end - start) / (end - start + HALF_SIZE)
        distinct[start:end] = matrix[start:end] - share * matrix[start:end].mean(axis=0)
    return unit(distinct)


def _candidates(
    distinct: "NDArray[np.float32]", ranges: Sequence[tuple[int, int]]
) -> dict[tuple[int, int], float]:
    """Return the positions of each tool and its nearest tools of other agents, each pair once, with
    the cosine of their distinct vectors. Pairs that cannot reach the smallest score are left out.
    """
    import numpy as np

    agent_ranges = [span for span in ranges for _ in range(*span)]
    pairs: dict[tuple[int, int], float] = {}
    for start in range(0, len(distinct), BLOCK):
        cosines = distinct[start : start + BLOCK] @ distinct.T
        for position, row in enumerate(cosines, start):
            row[slice(*agent_ranges[position])] = -1
            # The similarity of names is at most 1.
            near = np.flatnonzero(row >= LEAST_SCORE**2)
            if len(near) > NEAREST:
                near = near[row[near] >= np.partition(row[near], -NEAREST)[-NEAREST]]
            for other, cosine in zip(near.tolist(), row[near].tolist(), strict=True):
                pairs[min(position, other), max(position, other)] = cosine
    return pairs
