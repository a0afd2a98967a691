"""toolhunch: its BM25 and dense retrievers fused by reciprocal rank, without a decision model."""

import asyncio

from toolhunch import BM25Retriever, DenseRetriever, HybridRetriever, ToolCard, ToolCatalog
from toolhunch.retrieval.embedders import EmbeddingBatch

PACKAGE = "toolhunch"


class Embedder:
    """The benchmark's encoder."""

    model_id = "benchmark"

    def __init__(self, encode):
        self._encode = encode

    async def embed(self, texts, /, *, kind):
        """The vectors of texts."""
        return EmbeddingBatch(tuple(map(tuple, self._encode(texts))), 0)


def rank(tools, queries, k, encode):
    """Rank by words and vectors."""
    cards = ToolCatalog(
        ToolCard(
            id=tool["id"],
            name=tool["name"],
            description=tool["description"],
            parameters=tool["parameters"],
            source=tool["agent"],
        )
        for tool in tools
    )
    retriever = HybridRetriever([BM25Retriever(), DenseRetriever(Embedder(encode))])

    async def search():
        found = [await retriever.retrieve([query], cards, k=k) for query in queries]
        return [[match.card.id for match in one.matches] for one in found]

    return asyncio.run(search())
