"""lancedb: hybrid search with its default reranker (reciprocal rank fusion) and full-text index,
over "name: description"."""

import tempfile

import lancedb
from lancedb.rerankers import RRFReranker

PACKAGE = "lancedb"


def rank(tools, queries, k, encode):
    """Rank by vectors and words."""
    texts = [f"{tool['name']}: {tool['description']}" for tool in tools]
    rows = [
        {"id": tool["id"], "text": text, "vector": vector}
        for tool, text, vector in zip(tools, texts, encode(texts), strict=True)
    ]
    with tempfile.TemporaryDirectory() as folder:
        table = lancedb.connect(folder).create_table("tools", rows)
        table.create_fts_index("text")
        reranker = RRFReranker()
        return [_search(table, query, k, encode, reranker) for query in queries]


def _search(table, query, k, encode, reranker):
    search = table.search(query_type="hybrid", vector_column_name="vector")
    words = query.replace('"', " ")  # in quotes is a phrase, which its default index cannot find
    search = search.vector(encode([query])[0]).text(words).metric("cosine")
    return [row["id"] for row in search.rerank(reranker).limit(k).to_list()]
