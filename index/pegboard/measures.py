"""Measures of retrieval, for one request: what was found, best first, against the set of what is needed. Average them over requests."""

from collections.abc import Collection, Sequence
from math import log2

__all__ = ["average_precision", "ndcg", "recall"]


def recall(found: Sequence[str], needed: Collection[str], k: int) -> float:
    """recall@k: the share of what is needed that is among the first k. 0 if nothing is needed."""
    return len(set(found[:k]) & set(needed)) / len(set(needed)) if needed else 0.0


def average_precision(found: Sequence[str], needed: Collection[str], k: int) -> float:
    """AP@k: the precision at the rank of each hit among the first k, summed and divided by min(number needed, k). Its mean is mAP@k.

    Lumer et al., "Graph RAG-Tool Fusion", 2025, report mAP without giving a formula; this is the usual one of truncated rankings.
    """
    hits, total, wanted = 0, 0.0, set(needed)
    for rank, one in enumerate(found[:k], start=1):
        if one in wanted:
            hits += 1
            total += hits / rank
    return total / min(len(wanted), k) if wanted else 0.0


def ndcg(found: Sequence[str], needed: Collection[str], k: int) -> float:
    """nDCG@k with a gain of 1 for what is needed: the discounted gain of the first k over that of the best possible order."""
    wanted = set(needed)
    gained = sum(1 / log2(rank + 1) for rank, one in enumerate(found[:k], start=1) if one in wanted)
    best = sum(1 / log2(rank + 1) for rank in range(1, min(len(wanted), k) + 1))
    return gained / best if best else 0.0
