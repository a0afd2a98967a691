"""The map of a release: its tools and agents in the plane, by the vectors of an index.

The projection is t-SNE (van der Maaten and Hinton, 2008), started from the principal components, so
that equal vectors give equal maps. Its time grows faster than the number of points: on a large
board it lays out landmarks, tools chosen evenly over the agents, and every other tool is placed
beside the landmarks nearest to it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from zlib import crc32

from pegboard.evaluation.collisions import tool_vectors
from pegboard.records import Tool
from pegboard.search.loaded import LoadedRelease
from tasks.report.excerpts import excerpt

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_TOOLS = 10_000
"""Tools on a map: 2 MB of names and beginnings of descriptions."""
LANDMARKS = 1_000
"""Points that t-SNE lays out: 3.5 s on one core, and twice as many take 7 s."""
FEW = 10
"""Below so many points the two principal components are shown as they are."""
COMPONENTS = 50
PERPLEXITY = 30
ROUNDS = 500
NEAREST = 3
"""Landmarks near another tool: it is placed midway between the closest two of the three."""
SCATTER = 0.004
"""Of the width of the map: tools with the same landmarks do not hide each other."""
DESCRIPTION = 160
DIGITS = 4


def map_data(
    loaded: LoadedRelease, shown: int = MAX_TOOLS, landmarks: int = LANDMARKS
) -> dict[str, Any]:
    """Return the map by the default index as JSON values; coordinates are from 0 to 1.

    Args:
        shown: the most tools on the map.
        landmarks: the most of these that t-SNE lays out; 3 or more.
    """
    index = loaded.index_name(None)
    all_ids, vectors = mean_vectors(loaded, index)
    sample = sorted(evenly(all_ids, [_agent_of(tool) for tool in all_ids], shown))
    ids, vectors = [all_ids[at] for at in sample], vectors[sample]
    owners = [_agent_of(tool) for tool in ids]
    marks = sorted(evenly(ids, owners, landmarks))
    places = _placed(vectors, marks, ids)
    tools, agents = _tools(loaded, ids), sorted(set(owners))
    numbers = {agent: number for number, agent in enumerate(agents)}
    return {
        "index": index,
        "method": "t-SNE" if len(marks) >= FEW else "PCA",
        "of": len(all_ids),
        "shown": len(ids),
        "landmarks": len(marks),
        "agents": _agents(loaded, agents, owners, vectors, places),
        "tools": [
            {
                "agent": numbers[owner],
                "name": tools[tool].name,
                "description": excerpt(tools[tool].description, DESCRIPTION),
                "x": round(float(x), DIGITS),
                "y": round(float(y), DIGITS),
            }
            for tool, owner, (x, y) in zip(ids, owners, places, strict=True)
        ],
    }


def mean_vectors(loaded: LoadedRelease, index: str) -> "tuple[list[str], NDArray[np.float32]]":
    """Return the ids of an index's tools, sorted, and the mean of each one's vectors.

    Returns:
        The ids, and unit vectors of shape (tools, dimensions).
    """
    import numpy as np

    ids, starts, matrix = tool_vectors(loaded, index)
    if not ids:
        return [], matrix
    return ids, _unit(np.add.reduceat(matrix, starts, axis=0))


def evenly(ids: Sequence[str], owners: Sequence[str], count: int) -> list[int]:
    """Return the places of `count` tools, equally many of each agent as far as they go round.

    Equal ids give equal places, in every run.
    """
    if len(ids) <= count:
        return list(range(len(ids)))
    turns: dict[str, int] = {}
    taken: list[tuple[int, str, int]] = []
    for at in sorted(range(len(ids)), key=lambda at: (crc32(ids[at].encode()), ids[at])):
        turn = turns[owners[at]] = turns.get(owners[at], 0) + 1
        taken.append((turn, owners[at], at))
    return [at for _, _, at in sorted(taken)[:count]]


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


def _placed(
    points: "NDArray[np.float32]", laid_out: list[int], names: list[str]
) -> "NDArray[np.float64]":
    """Coordinates of all points: landmarks by projection, others beside the nearest landmarks."""
    import numpy as np

    if not len(points):
        return np.zeros((0, 2))
    marks = points[laid_out]
    plane = _fitted(project(marks))
    if len(laid_out) == len(points):
        return plane
    places = np.zeros((len(points), 2))
    places[laid_out] = plane
    others = np.setdiff1d(np.arange(len(points)), laid_out)
    for start in range(0, len(others), 1_000):
        some = others[start : start + 1_000]
        nearest = np.argpartition(points[some] @ marks.T, -NEAREST, axis=1)[:, -NEAREST:]
        places[some] = _between(plane[nearest]) + [_scatter(names[at]) for at in some]
    return np.clip(places, 0, 1)


def _between(corners: "NDArray[np.float64]") -> "NDArray[np.float64]":
    """The middles of the shortest sides of triangles, of shape (triangles, 3, 2)."""
    import numpy as np

    middles = (corners + np.roll(corners, 1, axis=1)) / 2
    sides = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2)
    return middles[np.arange(len(corners)), sides.argmin(axis=1)]


def _scatter(name: str) -> tuple[float, float]:
    """A small step aside, always the same for a name."""
    number = crc32(name.encode())
    return SCATTER * ((number & 0xFFFF) / 0x8000 - 1), SCATTER * ((number >> 16) / 0x8000 - 1)


def _fitted(plane: "NDArray[np.float64]") -> "NDArray[np.float64]":
    """The points scaled to the unit square; its middle, where all have one place."""
    import numpy as np

    low, span = plane.min(axis=0), np.ptp(plane, axis=0)
    return np.where(span > 0, (plane - low) / np.where(span > 0, span, 1), 0.5)


def _tools(loaded: LoadedRelease, ids: Sequence[str]) -> dict[str, Tool]:
    """The tools by id, read by the thousand: each read names all its ids in one filter."""
    found: dict[str, Tool] = {}
    for start in range(0, len(ids), 1_000):
        found |= loaded.tools(ids[start : start + 1_000])
    return found


def _agents(
    loaded: LoadedRelease,
    agents: Sequence[str],
    owners: Sequence[str],
    vectors: "NDArray[np.float32]",
    places: "NDArray[np.float64]",
) -> list[dict[str, Any]]:
    """Each agent at the place of the tool nearest to the mean of its tools' vectors.

    At the vectors of their own descriptions they would lie in a heap: those are about being a
    server, and most like each other."""
    of_agent = dict[str, list[int]]()
    for at, owner in enumerate(owners):
        of_agent.setdefault(owner, []).append(at)
    rows: list[dict[str, Any]] = []
    for identity in agents:
        agent, own = loaded.agents[identity], vectors[of_agent[identity]]
        x, y = places[of_agent[identity][int((own @ own.mean(axis=0)).argmax())]]
        rows.append(
            {
                "id": identity,
                "name": agent.name,
                "catalog": agent.catalog,
                "description": excerpt(agent.description, DESCRIPTION),
                "tools": len(own),
                "x": round(float(x), DIGITS),
                "y": round(float(y), DIGITS),
            }
        )
    return rows


def _agent_of(tool: str) -> str:
    return tool.rpartition("/")[0]


def _unit(vectors: "NDArray[np.float32]") -> "NDArray[np.float32]":
    import numpy as np

    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
