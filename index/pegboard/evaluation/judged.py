"""A release that answers golden queries: published, staged, or as if it had only some of its
tools.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pegboard.board import IN_MEMORY_ROWS
from pegboard.encoders import Encoder
from pegboard.errors import BoardNotFound
from pegboard.evaluation.golden import GoldenQuery, ToolNames
from pegboard.retrieval.finding import Asked, find, strategy_of
from pegboard.search.loaded import LoadedRelease
from pegboard.search.query_vectors import QueryVectors
from pegboard.store.database import public_uri
from pegboard.store.releases import Release, ReleaseStore

if TYPE_CHECKING:
    from pegboard.retrieval.found import Found
    from pegboard.retrieval.llm.asking import LlmCaller
    from pegboard.retrieval.strategy import Strategy

BATCH = 128
"""Queries that are asked at a time: the progress moves, and the memory stays flat."""
REMEMBERED = 100_000
"""Vectors of queries that are kept, 150 MB at 384 dimensions: several strategies ask the same
texts.
"""


class JudgedRelease:
    """What is asked: one release, with the encoders and the LLM that its strategies may use.

    Args:
        loaded: the release.
        vectors: the encoders of queries; shared between releases, a query is encoded once.
        caller: asks an LLM, where strategies may ask one.
    """

    def __init__(
        self,
        loaded: LoadedRelease,
        vectors: QueryVectors | None = None,
        caller: "LlmCaller | None" = None,
    ) -> None:
        self.loaded = loaded
        self.vectors = vectors or QueryVectors(None, None, REMEMBERED)
        self.caller = caller

    @classmethod
    def open(
        cls,
        uri: str,
        channel: str = "live",
        release: str | None = None,
        *,
        encoder: Encoder | None = None,
        encoder_options: Mapping[str, Any] | None = None,
        storage_options: Mapping[str, str] | None = None,
        llm: Any = None,
        llm_options: Mapping[str, Any] | None = None,
    ) -> "JudgedRelease":
        """A published release, by channel or by id; options as in `pegboard.open`. Raises
        BoardNotFound if there is none.
        """
        from pegboard.board import llm_caller

        store = ReleaseStore(uri, storage_options)
        if release is None:
            named = store.channel(channel)
            if named is None:
                raise BoardNotFound(
                    f"The board at {public_uri(uri)} has no channel '{channel}'. `pegboard "
                    f"releases list` shows what there is."
                )
            release = named.release
        caller = llm_caller(llm, llm_options)
        vectors = QueryVectors(encoder, encoder_options, REMEMBERED)
        return cls(LoadedRelease(store, store.get(release), IN_MEMORY_ROWS), vectors, caller)

    @property
    def release(self) -> Release:
        """The release itself."""
        return self.loaded.release

    @cached_property
    def names(self) -> ToolNames:
        """Its tools by what golden queries call them."""
        return ToolNames(self.loaded.tool_names())

    def encoder_of(self, index: str | None = None) -> str:
        """The name of the encoder of an index."""
        return str(self.loaded.index_manifest(self.loaded.index_name(index))["encoder"])

    def strategy(self, strategy: "Strategy | str | Mapping[str, Any] | None" = None) -> "Strategy":
        """The strategy that is meant; the release's own for None. Raises QueryError for one that
        cannot be used.
        """
        return strategy_of(strategy, self.loaded)

    def restricted(self, tools: Collection[str]) -> "JudgedRelease":
        """The same as if it had only the tools of those ids."""
        from pegboard.search.restricted import RestrictedRelease

        return JudgedRelease(RestrictedRelease(self.loaded, tools), self.vectors, self.caller)

    def ask(
        self,
        queries: Sequence[GoldenQuery],
        k: int,
        *,
        strategy: "Strategy | str | Mapping[str, Any] | None" = None,
        index: str | None = None,
        advance: Callable[[int], None] = lambda _: None,
    ) -> "list[Found]":
        """What is found for each query, at most `k` tools, best first.

        Args:
            advance: told how many more queries were answered.
        """
        found: list[Found | None] = [None] * len(queries)
        for places in _together(queries):
            for start in range(0, len(places), BATCH):
                batch = places[start : start + BATCH]
                texts, history = [queries[at].query for at in batch], queries[batch[0]].history
                asked = Asked(texts, k, strategy, index, history=history)
                for at, one in zip(
                    batch, find(self.loaded, asked, self.vectors, self.caller), strict=True
                ):
                    found[at] = one
                advance(len(batch))
        return [one for one in found if one is not None]


def _together(queries: Sequence[GoldenQuery]) -> list[list[int]]:
    """The places of the queries that can be asked together: those with the same history."""
    groups: dict[tuple[tuple[tuple[str, str], ...], ...], list[int]] = {}
    for at, query in enumerate(queries):
        key = tuple(tuple(sorted(message.items())) for message in query.history)
        groups.setdefault(key, []).append(at)
    return list(groups.values())
