"""Features of the candidates of a hybrid search: what the ranker weighs.

All are of one request and one tool, and lie in about 0..1:

    document              cosine of the request and the tool's document; its best row's
    summary               cosine of the request and the tool's name with its first sentence
    words                 BM25 of the tool's document, divided by 20
    request_in_document   share of the request's words that the document has, weighed by idf
    request_in_name       share of the request's words that the tool's name has, weighed by idf
    name_in_request       share of the name's words that the request has, weighed by idf
    action                1 if the request may want an action of the tool, see `actions`
    other_action          1 if both are known and they have none in common
    unasked_delete        1 if the tool only deletes, and the request does not ask for that

idf is that of BM25, ln(1 + (N - n + 0.5) / (n + 0.5)), over the documents of the index.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pegboard.search.ranking import Ranked

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FEATURES = (
    "document",
    "summary",
    "words",
    "request_in_document",
    "request_in_name",
    "name_in_request",
    "action",
    "other_action",
    "unasked_delete",
)
WORDS_SCALE = 20.0
_DELETE = frozenset({"delete"})


@dataclass(frozen=True, slots=True)
class Candidates:
    """What a search found, and the measures of its candidates: all that `vector` or `text` found.

    Arrays have the shape (candidates,).

    Attributes:
        vector: the ranking by cosine, best first.
        text: the ranking by BM25, best first.
        tools: the ids of the candidates.
        request_idf: the sum of idf over the request's different words.
        in_document: the sum of idf over those of them that the document has.
        in_name: the sum of idf over those of them that the name has.
        name_idf: the sum of idf over the name's different words.
        actions: of each tool.
    """

    vector: Sequence[Ranked]
    text: Sequence[Ranked]
    tools: Sequence[str]
    document: "NDArray[np.float64]"
    summary: "NDArray[np.float64]"
    bm25: "NDArray[np.float64]"
    request_idf: float
    in_document: "NDArray[np.float64]"
    in_name: "NDArray[np.float64]"
    name_idf: "NDArray[np.float64]"
    actions: Sequence[frozenset[str]]


def feature_matrix(found: Candidates, wanted: Collection[str]) -> "NDArray[np.float64]":
    """Return the features of the candidates, shape (candidates, features).

    Args:
        wanted: the actions that the request may want.
    """
    import numpy as np

    request = found.request_idf or 1.0
    agrees = np.zeros((3, len(found.tools)))
    for place, actions in enumerate(found.actions):
        if wanted and actions:
            agrees[0 if not actions.isdisjoint(wanted) else 1, place] = 1.0
        if actions == _DELETE and "delete" not in wanted:
            agrees[2, place] = 1.0
    return np.column_stack(
        [
            found.document,
            found.summary,
            found.bm25 / WORDS_SCALE,
            found.in_document / request,
            found.in_name / request,
            found.in_name / np.where(found.name_idf > 0, found.name_idf, 1.0),
            *agrees,
        ]
    )
