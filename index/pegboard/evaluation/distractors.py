"""Distractors for each right tool of a query: drawn at random, or the nearest to it."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal
from zlib import crc32

from pegboard.errors import ConfigurationError
from pegboard.evaluation.tool_vectors import tool_vectors
from pegboard.search.cosine import cosines_with_group
from pegboard.search.loaded import LoadedRelease
from pegboard.search.memory import COSINE_DIGITS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BEYOND = 100
"""Near tools that are remembered beyond those asked for, since some may be right tools of the same
query.
"""

Kind = Literal["none", "random", "nearest", "all"]


@dataclass(frozen=True, slots=True)
class Noise:
    """How many distractors each right tool gets, and which; `none` and `all` have no number."""

    kind: Kind
    count: int = 0

    def __str__(self) -> str:
        return self.kind if self.kind in ("none", "all") else f"{self.count} {self.kind}"


NONE = Noise("none")
"""Nothing but the right tools."""
ALL = Noise("all")
"""All other tools of the release."""


def noises(counts: Iterable[int], *, whole: bool = False) -> list[Noise]:
    """Every noise of these counts, random ones and then the nearest; the least first.

    `whole` adds all other tools. Raises ConfigurationError for no noise, or a negative count.
    """
    levels = sorted(set(counts))
    if not (levels or whole) or any(count < 0 for count in levels):
        raise ConfigurationError(
            f"The noise is {levels}; expected numbers of distractors for each right tool, 0 or "
            f"more."
        )
    some = [Noise(kind, count) for kind in ("random", "nearest") for count in levels if count]
    return [*([NONE] if 0 in levels else []), *some, *([ALL] if whole else [])]


class Distractors:
    """The distractors of one release. Larger noise contains the smaller.

    Args:
        index: whose vectors decide which tools are near; of several vectors of two tools the
            closest count.
        most: the most distractors for each right tool.
        seed: of the random ones; besides it only the query's id and the release's tools decide.
    """

    def __init__(self, loaded: LoadedRelease, index: str, most: int, seed: int = 0) -> None:
        self._loaded, self._index, self._most, self._seed = loaded, index, most, seed
        self._near: dict[str, list[str]] = {}

    def candidates(self, noise: Noise, query: str, right: Collection[str]) -> frozenset[str]:
        """The ids of the right tools and of their distractors.

        Args:
            query: the query's id.
            right: the ids of its right tools; any number of distractors for each of them, as far as
                there are other tools.
        """
        if noise.kind == "all":
            return frozenset(self._ids)
        if noise.kind == "random":
            drawn = self._drawn(query, frozenset(right))
            return frozenset((*right, *drawn[: noise.count * len(right)]))
        if noise.kind == "nearest":
            near = (self._nearest(tool, frozenset(right))[: noise.count] for tool in right)
            return frozenset(right).union(*near)
        return frozenset(right)

    def _drawn(self, query: str, right: frozenset[str]) -> list[str]:
        import numpy as np

        dice = np.random.default_rng([self._seed, crc32(query.encode())])
        order = dice.permutation(len(self._ids))[: (self._most + 1) * len(right)]
        drawn = [self._ids[at] for at in order.tolist()]
        return [tool for tool in drawn if tool not in right]

    def _nearest(self, tool: str, right: frozenset[str]) -> list[str]:
        import numpy as np

        if tool not in self._near:
            ids, starts, matrix = self._vectors
            at = self._places.get(tool)
            if at is None:
                return []
            cosines = cosines_with_group(matrix, starts, at).astype(np.float64)
            # Equals by their ids.
            order = np.argsort(-np.round(cosines, COSINE_DIGITS), kind="stable")
            nearest = order[: self._most + BEYOND].tolist()
            self._near[tool] = [ids[other] for other in nearest if other != at]
        # A query's other right tools are no distractors, however near they are.
        return [near for near in self._near[tool] if near not in right]

    @cached_property
    def _vectors(self) -> "tuple[list[str], NDArray[np.int64], NDArray[np.float32]]":
        return tool_vectors(self._loaded, self._index)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {tool: at for at, tool in enumerate(self._vectors[0])}

    @cached_property
    def _ids(self) -> list[str]:
        return sorted(identity for identity, _, _ in self._loaded.tool_names())
