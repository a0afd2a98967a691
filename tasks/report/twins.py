"""Tools of different agents that do the same thing, by their names and their vectors.

The score of two tools is the geometric mean of two similarities:

- *Names*: the words that both names share, over all their words. A word counts less the more agents
  use it (`get`, `search`), and less the more tools of its own agent have it (`browser_` in every
  name of a browser's tools), so names of such words alone are not alike.
- *Vectors*: the cosine after a share of the mean vector of each agent's tools was subtracted, so
  that what all tools of one API repeat does not make them alike.

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
LEAST_SCORE = 0.5
LEAST_COSINE = 0.4
"""Of the vectors as they are: equal names of unlike tools are no twins."""
SMOOTHING = 0.7
"""Added to the weight of all words of two names."""
HALF_SIZE = 8
"""Tools of an agent of whose mean half is subtracted; of a larger one more."""
NEAREST = 30
"""Tools of other agents that each tool is compared with."""
BLOCK = 200
"""Tools whose cosines are in memory at once, 4 bytes for each pair."""
DESCRIPTION = 300
MAX_TOOLS = 10_000
"""Tools of a release that are compared with each other: two seconds of one core."""
READ_AT_ONCE = 1_000
"""Tools that are read in one call, which names all their ids in one filter."""

Twin = tuple[float, float, int, int]
"""Score, cosine, and the places of both tools."""


@dataclass(frozen=True)
class ToolVectors:
    """The tools of a release and a unit vector of each: the mean of those in its default index.

    Attributes:
        ids: sorted, so that the tools of an agent follow each other.
        matrix: of shape (tools, dimensions).
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
        """For each agent the places of its first tool and after its last."""
        counts = [(agent, len(list(group))) for agent, group in groupby(self.ids, agent_of)]
        ends = [0]
        for _, count in counts:
            ends.append(ends[-1] + count)
        return {agent: place for (agent, _), place in zip(counts, pairwise(ends), strict=True)}


def agent_of(tool: str) -> str:
    """Return the id of a tool's agent."""
    return tool.rpartition("/")[0]


def read_tools(loaded: LoadedRelease, ids: Sequence[str]) -> dict[str, Tool]:
    """Return tools by id, read by the thousand."""
    tools: dict[str, Tool] = {}
    for start in range(0, len(ids), READ_AT_ONCE):
        tools |= loaded.tools(ids[start : start + READ_AT_ONCE])
    return tools


def unit(vectors: "NDArray[np.float32]") -> "NDArray[np.float32]":
    """Return vectors of length 1; zero vectors stay."""
    import numpy as np

    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def twins_data(loaded: LoadedRelease) -> dict[str, Any]:
    """Return the pairs of tools of different agents that do the same, highest score first."""
    if (total := loaded.release.tables["tools"].rows) > MAX_TOOLS:
        return {
            "missing": f"Not compared: the release has {total:,} tools, and a report "
            f"compares {MAX_TOOLS:,} at most."
        }
    vectors = ToolVectors.of(loaded)
    names = {tool: name for tool, name, _ in loaded.tool_names()}
    pairs = find_twins(vectors, [names[tool] for tool in vectors.ids])
    shown = pairs[:MAX_TWINS]
    tools = read_tools(loaded, sorted({vectors.ids[at] for *_, a, b in shown for at in (a, b)}))

    def tool_data(place: int) -> dict[str, str]:
        tool = tools[vectors.ids[place]]
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
        names: of the tools, in the order of `vectors`.
    """
    ranges = list(vectors.agents.values())
    if len(ranges) < 2:
        return []
    weights = _word_weights(names, ranges)
    distinct = _without_agent_means(vectors.matrix, ranges)
    twins: list[Twin] = []
    for (first, second), likeness in _candidates(distinct, ranges).items():
        score = math.sqrt(likeness * _name_similarity(weights[first], weights[second]))
        if score < LEAST_SCORE:
            continue
        cosine = float(vectors.matrix[first] @ vectors.matrix[second])
        if cosine >= LEAST_COSINE:
            twins.append((score, cosine, first, second))
    return sorted(twins, key=lambda twin: (-twin[0], *twin[2:]))


def _word_weights(
    names: Sequence[str], ranges: Sequence[tuple[int, int]]
) -> list[dict[str, float]]:
    """For each name the weight of each of its words."""
    split = [set(singular_words(name)) for name in names]
    by_agent = [Counter(word for own in split[low:high] for word in own) for low, high in ranges]
    agents = Counter(word for counts in by_agent for word in counts)
    rarity = {word: math.log(1 + len(ranges) / count) for word, count in agents.items()}
    weights: list[dict[str, float]] = []
    for counts, (low, high) in zip(by_agent, ranges, strict=True):
        own_share = {word: (count - 1) / (high - low) for word, count in counts.items()}
        weights += [
            {word: rarity[word] * (1 - own_share[word]) for word in words}
            for words in split[low:high]
        ]
    return weights


def _name_similarity(first: Mapping[str, float], second: Mapping[str, float]) -> float:
    both = first.keys() & second.keys()
    shared = sum(min(first[word], second[word]) for word in both)
    others = sum(weight for word, weight in (*first.items(), *second.items()) if word not in both)
    return shared / (shared + others + SMOOTHING)


def _without_agent_means(
    matrix: "NDArray[np.float32]", ranges: Sequence[tuple[int, int]]
) -> "NDArray[np.float32]":
    import numpy as np

    distinct = np.empty_like(matrix)
    for low, high in ranges:
        share = (high - low) / (high - low + HALF_SIZE)
        distinct[low:high] = matrix[low:high] - share * matrix[low:high].mean(axis=0)
    return unit(distinct)


def _candidates(
    distinct: "NDArray[np.float32]", ranges: Sequence[tuple[int, int]]
) -> dict[tuple[int, int], float]:
    """Each tool with the nearest of other agents that are near enough, each pair once, and the
    cosine of their distinct vectors.
    """
    import numpy as np

    own = [agent for agent in ranges for _ in range(*agent)]
    pairs: dict[tuple[int, int], float] = {}
    for start in range(0, len(distinct), BLOCK):
        cosines = distinct[start : start + BLOCK] @ distinct.T
        for place, row in enumerate(cosines, start):
            row[slice(*own[place])] = -1
            # The similarity of names is at most 1.
            near = np.flatnonzero(row >= LEAST_SCORE**2)
            if len(near) > NEAREST:
                near = near[row[near] >= np.partition(row[near], -NEAREST)[-NEAREST]]
            for other, cosine in zip(near.tolist(), row[near].tolist(), strict=True):
                pairs[min(place, other), max(place, other)] = cosine
    return pairs
