"""The ranker's features of the candidates of a hybrid search.

`FEATURES` declares them: weights, manifests and explanations follow it. Each is of one request and
one tool, and lies in about 0..1; docs/reference/table-contract.md has them for readers in other
languages, and CONTRIBUTING.md how to add one. idf is that of BM25, ln(1 + (N - n + 0.5) / (n +
0.5)), over the documents of the index.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pegboard.ranking import ScoredTool

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

WORDS_SCALE = 20.0
_DELETE = frozenset({"delete"})


@dataclass(frozen=True, slots=True)
class Measures:
    """What a search found, and the measures of its candidates: all that `vector` or `text` found.

    Arrays have the shape (candidates,).

    Attributes:
        vector: the ranking by cosine, best first.
        text: the ranking by BM25, best first.
        tools: the ids of the candidates.
        document: cosine of the request and the tool's document; its best row's.
        summary: cosine of the request and the tool's name with its first sentence.
        bm25: of the tool's document; its best row's.
        request_idf: the sum of idf over the request's different words.
        in_document: the sum of idf over those of them that the document has.
        in_name: the sum of idf over those of them that the name has.
        name_idf: the sum of idf over the name's different words.
        abbreviated: the share of the request's short forms that abbreviate the name.
        named_agent: 1 where the request has a word of the name of the tool's agent.
        actions: of each tool.
    """

    vector: Sequence[ScoredTool]
    text: Sequence[ScoredTool]
    tools: Sequence[str]
    document: "Floats"
    summary: "Floats"
    bm25: "Floats"
    request_idf: float
    in_document: "Floats"
    in_name: "Floats"
    name_idf: "Floats"
    abbreviated: "Floats"
    named_agent: "Floats"
    actions: Sequence[frozenset[str]]


FEATURES: dict[str, "Callable[[Measures, Collection[str]], Floats]"] = {
    "document": lambda found, _: found.document,
    "summary": lambda found, _: found.summary,
    "words": lambda found, _: found.bm25 / WORDS_SCALE,
    "request_in_document": lambda found, _: found.in_document / (found.request_idf or 1.0),
    "request_in_name": lambda found, _: found.in_name / (found.request_idf or 1.0),
    # A name without words has the share 0 of 0 words.
    "name_in_request": lambda found, _: found.in_name / (found.name_idf + (found.name_idf <= 0)),
    "abbreviation": lambda found, _: found.abbreviated,
    "named_agent": lambda found, _: found.named_agent,
    # The request may want an action of the tool; both are known and have none in common; the tool
    # only deletes, and the request does not ask for that.
    "action": lambda found, wanted: _where(found, lambda own: not own.isdisjoint(wanted)),
    "other_action": lambda found, wanted: _where(
        found, lambda own: bool(wanted and own and own.isdisjoint(wanted))
    ),
    "unasked_delete": lambda found, wanted: _where(
        found, lambda own: own == _DELETE and "delete" not in wanted
    ),
}
"""Each feature of all candidates, from their measures and the actions that the request may want."""


def feature_matrix(found: Measures, wanted: Collection[str]) -> "Floats":
    """Return the features of the candidates, shape (candidates, features).

    Args:
        wanted: the actions that the request may want.
    """
    import numpy as np

    return np.column_stack([feature(found, wanted) for feature in FEATURES.values()])


def _where(found: Measures, holds: Callable[[frozenset[str]], bool]) -> "Floats":
    """Return 1 for each candidate whose actions pass the test, which runs once per distinct set."""
    import numpy as np

    values = {own: float(holds(own)) for own in set(found.actions)}
    return np.fromiter(map(values.__getitem__, found.actions), float, len(found.actions))
