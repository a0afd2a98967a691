"""The map of a release: its tools in the plane, by the vectors of an index, coloured by group.

The projection is t-SNE (van der Maaten and Hinton, 2008), started from the principal components, so
that equal vectors give equal maps. Its time grows faster than the number of points, so that of a
larger board it shows tools chosen evenly over the agents.

A group is an agent. Where one agent has most of the tools, these are grouped by their first tag, or
by the first part of their names."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pegboard.records import Tool
from pegboard.search.loaded import LoadedRelease
from tasks.report.excerpts import excerpt
from tasks.report.vectors import ToolVectors, agent_of, choose_evenly, read_tools

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_POINTS = 1_000
"""Points that t-SNE lays out: 3.5 s on one core, and twice as many take 7 s."""
FEW = 10
"""Fewer points are shown by their two principal components, which take no time."""
COMPONENTS = 50
PERPLEXITY = 30
ROUNDS = 500
DESCRIPTION = 160
DIGITS = 4
MAX_GROUPS = 12
"""Colours of groups; the tools of all further groups are grey."""
DOMINANT = 0.5
"""An agent with a larger share of the tools is divided into groups."""
OTHERS = "others"
NEAR = 0.06
"""Of the width of the map, around the label of a group."""
NAME_PART = re.compile(r"[/._:-]|(?<=[a-z])(?=[A-Z])")


def map_data(
    loaded: LoadedRelease, vectors: ToolVectors, shown: int = MAX_POINTS
) -> dict[str, Any]:
    """Return the map as JSON values; coordinates are from 0 to 1.

    Args:
        shown: the most tools on the map.
    """
    sample = sorted(choose_evenly(vectors.ids, shown))
    ids = [vectors.ids[at] for at in sample]
    tools = read_tools(loaded, ids)
    places = _fitted(project(vectors.matrix[sample]))
    agents = {agent: loaded.agents[agent].name for agent in {agent_of(tool) for tool in ids}}
    labels = group_labels([tools[tool] for tool in ids], agents)
    groups = _groups(labels, places)
    group_numbers = {group["name"]: number for number, group in enumerate(groups)}
    return {
        "index": vectors.index,
        "method": "t-SNE" if len(ids) >= FEW else "PCA",
        "of": vectors.total,
        "shown": len(ids),
        "groups": groups,
        "tools": [
            {
                "id": tool,
                "group": group_numbers[label],
                "name": tools[tool].name,
                "description": excerpt(tools[tool].description, DESCRIPTION),
                "x": round(float(x), DIGITS),
                "y": round(float(y), DIGITS),
            }
            for tool, label, (x, y) in zip(ids, labels, places, strict=True)
        ],
    }


def group_labels(tools: Sequence[Tool], agents: Mapping[str, str]) -> list[str]:
    """Return the group of each tool: its agent's name, or a part of an agent that has most tools.

    Args:
        agents: the name of each agent by id.
    """
    counts = Counter(tool.agent for tool in tools)
    labels = [agents[tool.agent] for tool in tools]
    if counts and counts.most_common(1)[0][1] > DOMINANT * len(tools):
        dominant = counts.most_common(1)[0][0]
        parts = [_part(tool) if tool.agent == dominant else None for tool in tools]
        if len({part for part in parts if part is not None}) > 1:
            labels = [part or label for part, label in zip(parts, labels, strict=True)]
    largest = {label for label, _ in Counter(labels).most_common(MAX_GROUPS)}
    return [label if label in largest else OTHERS for label in labels]


def _part(tool: Tool) -> str:
    return tool.tags[0] if tool.tags else NAME_PART.split(tool.name, maxsplit=1)[0] or tool.name


def _groups(labels: Sequence[str], places: "NDArray[np.float64]") -> list[dict[str, Any]]:
    """The groups, largest first, each with its densest place; the others last."""
    import numpy as np

    counts = Counter(labels)
    names = sorted(counts, key=lambda name: (name == OTHERS, -counts[name], name))
    column = np.array(labels)
    groups: list[dict[str, Any]] = []
    for name in names:
        x, y = _densest(places[column == name])
        place = {"x": round(float(x), DIGITS), "y": round(float(y), DIGITS)}
        groups.append({"name": name, "tools": counts[name], **place})
    return groups


def project(vectors: "NDArray[np.float32]") -> "NDArray[np.float64]":
    """Return points of shape (points, 2) for unit vectors of shape (points, dimensions).

    Equal vectors give equal points, in every run.
    """
    import numpy as np
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    if len(vectors) < 2 or np.ptp(vectors, axis=0).max() < 1e-6:
        return np.zeros((len(vectors), 2))
    count, few = min(COMPONENTS, *vectors.shape), len(vectors) < vectors.shape[1]
    # Its threads wait for each other several times in each round: beside other work, two took ten
    # times as long as one.
    with threadpool_limits(1):
        pca = PCA(count, svd_solver="full" if few else "covariance_eigh", random_state=0)
        reduced = pca.fit_transform(vectors.astype(np.float64))
        if len(vectors) < FEW or count < 2:
            return np.pad(reduced, ((0, 0), (0, 2)))[:, :2]
        start: Any = _start(reduced)
        perplexity = min(PERPLEXITY, (len(vectors) - 1) / 3)
        layout = TSNE(2, perplexity=perplexity, max_iter=ROUNDS, init=start, random_state=0)
        return layout.fit_transform(reduced).astype(np.float64)


def _start(reduced: "NDArray[np.float64]") -> "NDArray[np.float32]":
    """The first two components at the small scale of Kobak and Berens (2019)."""
    import numpy as np

    return (reduced[:, :2] / max(float(np.std(reduced[:, 0])), 1e-12) * 1e-4).astype(np.float32)


def _fitted(plane: "NDArray[np.float64]") -> "NDArray[np.float64]":
    """The points scaled to the unit square; its middle, where all have one place."""
    import numpy as np

    if not len(plane):
        return plane
    low, span = plane.min(axis=0), np.ptp(plane, axis=0)
    return np.where(span > 0, (plane - low) / np.where(span > 0, span, 1), 0.5)


def _densest(places: "NDArray[np.float64]") -> "NDArray[np.float64]":
    """The place with the most others near it; of equals the first."""
    import numpy as np

    some = places[:: 1 + len(places) // 1_000]
    gaps = np.abs(some[:, None] - some[None]).max(axis=2)
    return some[int((gaps < NEAR).sum(axis=1).argmax())]
