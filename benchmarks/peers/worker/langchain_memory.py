"""langchain-core: its vector store in memory, over "name: description"."""

from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore

PACKAGE = "langchain-core"


class Encoder(Embeddings):
    """The benchmark's encoder."""

    def __init__(self, encode):
        self._encode = encode

    def embed_documents(self, texts):
        """The vectors of documents."""
        return self._encode(texts)

    def embed_query(self, text):
        """The vector of a query."""
        return self._encode([text])[0]


def rank(tools, queries, k, encode):
    """Rank by cosine."""
    store = InMemoryVectorStore(Encoder(encode))
    store.add_texts(
        [f"{tool['name']}: {tool['description']}" for tool in tools],
        ids=[tool["id"] for tool in tools],
    )
    return [[hit.id for hit in store.similarity_search(query, k=k)] for query in queries]
