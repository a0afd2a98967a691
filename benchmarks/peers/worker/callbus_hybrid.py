"""callbus: `--scorer dense --hybrid`, its dense scorer and BM25 (with stems) fused by reciprocal
rank, without its heads, which fit another encoder."""

import numpy as np
from callbus.adapters.bm25 import BM25Scorer
from callbus.adapters.dense import DenseScorer
from callbus.adapters.hybrid import HybridScorer
from callbus.domain import Query, Tool
from callbus.ingest.text import tool_text

PACKAGE = "callbus"


class Encoder:
    """The benchmark's encoder."""

    name = "benchmark"

    def __init__(self, encode):
        self._encode = encode

    def encode(self, texts, *, kind="document"):
        """The vectors of texts."""
        return np.array(self._encode(texts), np.float32)


def rank(tools, queries, k, encode):
    """Rank by words and vectors."""
    scorer = HybridScorer(DenseScorer(Encoder(encode)), BM25Scorer())
    scorer.index([_tool(tool) for tool in tools])
    asked = [Query(str(at), query, {}) for at, query in enumerate(queries)]
    return [ranked.tool_ids for ranked in scorer.rank(asked, k)]


def _tool(tool):
    doc = {"name": tool["name"], "description": tool["description"]}
    doc["inputSchema"] = tool["parameters"]
    text = tool_text(tool["agent"], tool["name"], tool["description"], tool["parameters"])
    return Tool(tool["id"], doc, text, tool["agent"])
