"""What the scores of an index mean: curves through requests that the board answers and requests
that it does not.

Where nobody knows requests without an answer, they are made by leaving out: the right tools of a
request are taken away, and what is best then is an example of a best tool that does not fit. Such
examples are harder than unrelated requests. `benchmarks/performance/abstention.py` measures how
well a calibration so made tells unrelated ones.

Golden requests should be written as people ask. Those that stand in the index themselves, as
questions of their tools, find themselves: on MetaTool, a hybrid threshold made from such to let 95
% through refused 58 % of new requests. `unseen` leaves them out."""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from pegboard.encoders import Encoder, encode_queries
from pegboard.errors import ConfigurationError
from pegboard.retrieval.calibration import Calibration, Curve, Threshold
from pegboard.retrieval.evidence import Measures, SearchEvidence
from pegboard.search.ranking import Ranked
from pegboard.search.text import tokenize
from tasks.logistic import fit_logistic

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LEAST = 30
"""Requests of either kind below which a calibration is chance: of 30, the worst two decide which
threshold lets 95 % through.
"""
DEPTH = 100
"""Tools of each ranking, as many as a hybrid search has at least; the right ones of those are left
out.
"""
BATCH = 256
ACCEPT = (90, 95, 99)
"""Percent of the requests with an answer that the thresholds let through."""
ROUNDS = 10
SHOWN = 5


class Searched(Protocol):
    """A searchable index, `MemoryIndex` or `LanceIndex`."""

    def both(
        self, query: "NDArray[np.float32]", tokens: Sequence[str], n: int
    ) -> tuple[list[Ranked], list[Ranked]]: ...


def calibrate_index(
    searched: Searched,
    encoder: Encoder,
    golden: Sequence[tuple[str, Collection[str]]],
    unanswerable: Sequence[str] = (),
    *,
    share: float = 0.5,
    name: str = "",
) -> Calibration:
    """What the scores of an index mean, by requests that are searched in it.

    Args:
        encoder: the one that made the index's vectors.
        golden: requests that the board answers, each with the ids of the right tools.
        unanswerable: requests that no tool of the board answers; made by leaving out where there
            are none.
        share: the share of all requests to come that is taken to have an answer; what a probability
            means depends on it.
        name: of the index, for messages.

    Raises:
        ConfigurationError: there are too few requests, one is blank, or one has no right tools.
    """
    _check(golden, unanswerable, share, name)
    found = search_evidence(searched, encoder, [query for query, _ in golden])
    if unanswerable:
        others = search_evidence(searched, encoder, unanswerable)
    else:
        others = [one.without(tools) for one, (_, tools) in zip(found, golden, strict=True)]
    return calibrate_evidence(found, others, left_out=not unanswerable, share=share)


def unseen(
    golden: Sequence[tuple[str, Collection[str]]], documents: Mapping[str, Sequence[str]]
) -> list[tuple[str, Collection[str]]]:
    """The golden requests that do not stand, word for word, in a document of one of their right
    tools.

    Args:
        documents: the texts of the index by the tool's id; those of the right tools are enough.
    """
    words = {
        tool: [f" {' '.join(tokenize(text))} " for text in texts]
        for tool, texts in documents.items()
    }

    def stands(query: str, tools: Collection[str]) -> bool:
        asked = f" {' '.join(tokenize(query))} "
        return any(asked in text for tool in tools for text in words.get(tool, ()))

    return [(query, tools) for query, tools in golden if not stands(query, tools)]


def search_evidence(
    searched: Searched, encoder: Encoder, queries: Sequence[str]
) -> list[SearchEvidence]:
    """What each query finds by its vector and by its words."""
    import numpy as np

    found: list[SearchEvidence] = []
    for start in range(0, len(queries), BATCH):
        batch = queries[start : start + BATCH]
        vectors = np.asarray(encode_queries(encoder, batch), np.float32)
        units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        for query, unit in zip(batch, units, strict=True):
            vector, text = searched.both(unit, tokenize(query), DEPTH)
            found.append(SearchEvidence.of(query, {"vector": vector, "text": text}))
    return found


def calibrate_evidence(
    answerable: Sequence[SearchEvidence],
    unanswerable: Sequence[SearchEvidence],
    *,
    left_out: bool,
    share: float = 0.5,
) -> Calibration:
    """The calibration by what requests with and without an answer found; a mode in which they do
    not differ has no curve.
    """
    curves: dict[str, Curve] = {}
    for mode in ("hybrid", "vector", "text"):
        sides = [
            [one.searched_by(mode).measures() for one in side]
            for side in (answerable, unanswerable)
        ]
        if curve := _curve(sides[0], sides[1], share):
            curves[mode] = curve
    return Calibration(curves, len(answerable), len(unanswerable), left_out, share)


def _curve(
    answerable: Sequence[Mapping[str, Measures]],
    unanswerable: Sequence[Mapping[str, Measures]],
    share: float,
) -> Curve | None:
    """A request counts by its best tool, and which that is depends on the weights: the two are
    found in turn.
    """
    import numpy as np

    requests = [*answerable, *unanswerable]
    labels = np.arange(len(requests)) < len(answerable)
    tools = [_rows(one) for one in requests]
    best = np.array([rows.max(axis=0) for rows in tools])
    bias, weights = fit_logistic(best, labels, share)
    for _ in range(ROUNDS):
        if not weights.any():
            return None
        chosen = np.array([rows[(rows @ weights).argmax()] for rows in tools])
        if np.array_equal(chosen, best):
            break
        best = chosen
        bias, weights = fit_logistic(best, labels, share)
    if not weights.any():
        return None
    curve = Curve(round(bias, 6), round(float(weights[0]), 6), round(float(weights[1]), 6), {})
    likely = [
        max((curve.probability(one) for one in each.values()), default=0.0) for each in requests
    ]
    return Curve(
        curve.bias,
        curve.cosine,
        curve.words,
        _thresholds(likely[: len(answerable)], likely[len(answerable) :]),
    )


def _rows(measures: Mapping[str, Measures]) -> "NDArray[np.float64]":
    """The measures of each tool, shape (tools, 2); those of an unrelated tool, where nothing was
    found.
    """
    import numpy as np

    return np.array([[one.cosine, one.words] for one in measures.values()] or [[0.0, 0.0]])


def _thresholds(answerable: Sequence[float], unanswerable: Sequence[float]) -> dict[str, Threshold]:
    import numpy as np

    thresholds: dict[str, Threshold] = {}
    for percent in ACCEPT:
        least = float(np.quantile(answerable, 1 - percent / 100, method="lower"))
        right, wrong = (
            float(np.mean(np.array(side) >= least)) for side in (answerable, unanswerable)
        )
        thresholds[f"accept_{percent}"] = Threshold(least, round(right, 4), round(wrong, 4))
    return thresholds


def _check(
    golden: Sequence[tuple[str, Collection[str]]],
    unanswerable: Sequence[str],
    share: float,
    name: str,
) -> None:
    problems: list[str] = []
    if len(golden) < LEAST:
        problems.append(f"{len(golden)} golden requests; expected {LEAST} or more")
    if 0 < len(unanswerable) < LEAST:
        problems.append(
            f"{len(unanswerable)} unanswerable requests; expected {LEAST} or more, or none: then "
            f"they are made from the golden ones"
        )
    if blank := [at for at, (query, _) in enumerate(golden) if not query.strip()]:
        problems.append(f"golden requests {blank[:SHOWN]} are blank ({len(blank)})")
    if blank := [at for at, query in enumerate(unanswerable) if not query.strip()]:
        problems.append(f"unanswerable requests {blank[:SHOWN]} are blank ({len(blank)})")
    if bare := [at for at, (_, tools) in enumerate(golden) if not tools]:
        problems.append(f"golden requests {bare[:SHOWN]} have no right tool ({len(bare)})")
    if not 0 < share < 1:
        problems.append(
            f"the share of requests with an answer is {share}; expected more than 0 and less than 1"
        )
    if problems:
        raise ConfigurationError(
            f"The scores of index '{name}' cannot be calibrated: {'; '.join(problems)}. Add "
            f"requests to the files of [golden], "
            "mend them, or leave [golden] out."
        )
