"""Which tools golden queries are written about: a drawing that is the same for the same seed and
release, and that never repeats itself.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from pegboard.canonical import digest
from pegboard.errors import ConfigurationError
from pegboard.evaluation.distractors import Distractors, Noise
from pegboard.search.loaded import LoadedRelease

Kind = Literal["single", "parallel", "sequential"]

FORMS = (
    "a question",
    "a command",
    "a few search words, without a verb",
    "one or two sentences with the reason behind it",
    "the goal or the problem only, which leaves it to the reader to see what is needed",
    "a short and careless message, as to a colleague",
)
"""How people put requests; each query has one of them."""
ROUNDS = 8
"""How often every tool comes at most."""
NEAR = 30
"""Tools near to one of which a request for several is more likely one that somebody has."""
MOST = 5


@dataclass(frozen=True, slots=True)
class Sample:
    """The tools, by their ids, that one request is to need, how it needs them, and in which form it
    is put.

    Attributes:
        round: how often its first tool came before in requests for so many tools.
    """

    tools: tuple[str, ...]
    kind: Kind
    form: str
    round: int


def draw_samples(
    loaded: LoadedRelease, sizes: Sequence[int], seed: int = 0, index: str | None = None
) -> Iterator[Sample]:
    """Samples of these numbers of tools in turn; every tool comes once before any comes again.

    Args:
        index: whose vectors say which tools are near; the release's default if None.

    The others of several tools are every other time of the same agent, if it has so many, else near
    tools of other agents. Raises ConfigurationError for a number of tools that cannot be.
    """
    drawing = _Drawing(loaded, seed, loaded.index_name(index))
    wanted = list(dict.fromkeys(sizes))
    most = min(MOST, len(drawing.ids))
    if not wanted or any(not 1 <= size <= most for size in wanted):
        raise ConfigurationError(
            f"The numbers of tools in a query are {wanted}; expected numbers from 1 to {most}, as "
            f"in 1,2."
        )
    return drawing.samples(wanted)


@dataclass(frozen=True)
class _Drawing:
    loaded: LoadedRelease
    seed: int
    index: str

    @cached_property
    def ids(self) -> list[str]:
        return sorted(one for one, _, _ in self.loaded.tool_names())

    def samples(self, sizes: Sequence[int]) -> Iterator[Sample]:
        seen: set[frozenset[str]] = set()
        for count in range(ROUNDS):
            for place, tool in enumerate(self._shuffled(self.ids, count)):
                size = sizes[(place + count) % len(sizes)]
                others = self._others(
                    tool, size - 1, count, same_agent=(place // len(sizes)) % 2 == 0
                )
                tools = (tool, *others)
                if len(tools) < size or (size > 1 and frozenset(tools) in seen):
                    continue
                seen.add(frozenset(tools))
                chance = int(digest(self.seed, count, tools)[:8], 16)
                several: tuple[Kind, Kind] = ("parallel", "sequential")
                kind: Kind = "single" if size == 1 else several[chance % 2]
                yield Sample(tools, kind, FORMS[(chance // 2) % len(FORMS)], count)

    def _others(self, tool: str, count: int, round_: int, *, same_agent: bool) -> list[str]:
        if not count:
            return []
        agent = tool.rpartition("/")[0]
        own = [one for one in self.ids if one != tool and one.startswith(f"{agent}/")]
        near = self._near.candidates(Noise("nearest", NEAR), tool, [tool]) - {tool}
        apart = sorted(near - set(own)) or sorted(set(self.ids) - {tool})
        pool = own if same_agent and len(own) >= count else apart
        return self._shuffled(pool, round_, tool)[:count]

    @cached_property
    def _near(self) -> Distractors:
        return Distractors(self.loaded, self.index, NEAR, self.seed)

    def _shuffled(self, ids: Sequence[str], *what: object) -> list[str]:
        return sorted(ids, key=lambda one: digest(self.seed, *what, one))
