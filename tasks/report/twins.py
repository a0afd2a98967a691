"""Tools of different agents that do the same thing, by their names and their vectors.

The score of two tools is the geometric mean of two similarities:

- *Names*: the words that both names share, over all their words. A word counts less the more agents
  use it (`get`, `search`), and less the more tools of its own agent have it (`browser_` in every
  name of a browser's tools), so names of such words alone are not alike.
- *Vectors*: the cosine after a share of the mean vector of each agent's tools was subtracted, so
  that what all tools of one API repeat does not make them alike.

The constants are calibrated on the tools of two browser servers; docs/results.md has the figures.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pegboard.search.loaded import LoadedRelease
from pegboard.search.text import singular_words
from tasks.report.excerpts import excerpt
from tasks.report.vectors import ToolVectors, read_tools, unit

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_TWINS = 100
MAX_TOOLS = 10_000
"""Tools of a release that are compared with each other, which takes about 9 s on one core."""
LEAST_SCORE = 0.5
LEAST_COSINE = 0.4
"""Of the vectors as they are: equal names of unlike tools are no twins."""
SMOOTHING = 0.7
"""Added to the weight of all words of two names."""
HALF_SIZE = 8
"""An agent with so many tools has half of its mean subtracted, a larger one more."""
NEAREST = 10
"""Tools of other agents that each tool is compared with."""
BLOCK = 1_000
DESCRIPTION = 300

Twin = tuple[float, float, int, int]
"""Score, cosine, and the places of both tools."""


def twins_data(
    loaded: LoadedRelease, vectors: ToolVectors, max_tools: int = MAX_TOOLS
) -> dict[str, Any]:
    """Return the pairs of tools of different agents that do the same, highest score first."""
    if len(vectors.ids) > max_tools:
        return {
            "missing": f"Not compared: the release has {len(vectors.ids):,} tools, and a report "
            f"compares {max_tools:,} at most."
        }
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
    for first, second in _candidates(distinct, ranges):
        cosine = float(vectors.matrix[first] @ vectors.matrix[second])
        likeness = max(0.0, float(distinct[first] @ distinct[second]))
        score = math.sqrt(likeness * _name_similarity(weights[first], weights[second]))
        if score >= LEAST_SCORE and cosine >= LEAST_COSINE:
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
) -> list[tuple[int, int]]:
    """Each tool with the nearest tools of other agents, each pair once."""
    import numpy as np

    pairs: set[tuple[int, int]] = set()
    for low, high in ranges:
        count = min(NEAREST, len(distinct) - (high - low))
        for start in range(low, high, BLOCK):
            cosines = distinct[start : min(start + BLOCK, high)] @ distinct.T
            cosines[:, low:high] = -np.inf
            nearest = np.argpartition(-cosines, count - 1, axis=1)[:, :count]
            for row, others in enumerate(nearest.tolist(), start):
                pairs.update((min(row, other), max(row, other)) for other in others)
    return sorted(pairs)
