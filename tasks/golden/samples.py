"""Samples of tools that golden queries are written about: reproducible, without repetition."""

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
"""How often every tool is sampled, at most."""
NEIGHBOURS = 30
"""Tools near to one: a request for several of them is more likely one that somebody has."""
MAX_TOOLS = 5


@dataclass(frozen=True, slots=True)
class Sample:
    """What one request is to need.

    Attributes:
        tools: ids.
        kind: how it needs them.
        form: the form of the request, one of `FORMS`.
        round: how often its first tool was sampled before.
    """

    tools: tuple[str, ...]
    kind: Kind
    form: str
    round: int


def draw_samples(
    loaded: LoadedRelease, sizes: Sequence[int], seed: int = 0, index: str | None = None
) -> Iterator[Sample]:
    """Yield samples of these numbers of tools in turn; no tool comes twice in a round.

    Further tools of a sample are every other time of the same agent, if it has so many, else near
    tools of other agents.

    Args:
        index: whose vectors say which tools are near; by default the release's default.

    Raises:
        ConfigurationError: a number of tools that is impossible.
    """
    sampler = _Sampler(loaded, seed, loaded.index_name(index))
    distinct = list(dict.fromkeys(sizes))
    most = min(MAX_TOOLS, len(sampler.ids))
    if not distinct or any(not 1 <= size <= most for size in distinct):
        raise ConfigurationError(
            f"The numbers of tools in a query are {distinct}; expected numbers from 1 to {most}, "
            "as in 1,2."
        )
    return sampler.samples(distinct)


@dataclass(frozen=True)
class _Sampler:
    loaded: LoadedRelease
    seed: int
    index: str

    @cached_property
    def ids(self) -> list[str]:
        return sorted(tool for tool, _, _ in self.loaded.tool_names())

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
        own = [other for other in self.ids if other != tool and other.startswith(f"{agent}/")]
        near = self._neighbours.candidates(Noise("nearest", NEIGHBOURS), tool, [tool]) - {tool}
        apart = sorted(near - set(own)) or sorted(set(self.ids) - {tool})
        pool = own if same_agent and len(own) >= count else apart
        return self._shuffled(pool, round_, tool)[:count]

    @cached_property
    def _neighbours(self) -> Distractors:
        return Distractors(self.loaded, self.index, NEIGHBOURS, self.seed)

    def _shuffled(self, ids: Sequence[str], *salt: object) -> list[str]:
        return sorted(ids, key=lambda tool: digest(self.seed, *salt, tool))
