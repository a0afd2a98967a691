"""The ranker's features of the candidates of a hybrid search.

`FEATURES` declares them; weights, manifests and explanations follow its order. A feature describes
one request and one tool, and lies roughly in 0..1. docs/reference/table-contract.md specifies them
for readers in other languages, and CONTRIBUTING.md says how to add one. idf is that of BM25,
ln(1 + (N - n + 0.5) / (n + 0.5)), over the documents of the index.
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
"""The BM25 score that becomes 1 in the feature `words`."""
_DELETE = frozenset({"delete"})


@dataclass(frozen=True, slots=True)
class Measures:
    """The rankings of a hybrid search, and measures of its candidates: the tools of both rankings.

    Arrays have the shape (candidates,).

    Attributes:
        vector: the ranking by cosine, best first.
        text: the ranking by BM25, best first.
        tools: the ids of the candidates.
        document: cosine of the request and the tool's document, for the tool's best row.
        summary: cosine of the request and the tool's name with its first sentence.
        bm25: BM25 of the tool's document, for the tool's best row.
        request_idf: the sum of idf over the request's different words.
        in_document: the sum of idf over those of the request's words that the document contains.
        in_name: the sum of idf over those of the request's words that the name contains.
        name_idf: the sum of idf over the name's different words.
        abbreviated: the share of the request's possible abbreviations that abbreviate the name.
        named_agent: 1 if the request has a word of the name of the tool's agent, else 0.
        actions: the actions of each tool.
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
    "document": lambda measures, _: measures.document,
    "summary": lambda measures, _: measures.summary,
    "words": lambda measures, _: measures.bm25 / WORDS_SCALE,
    "request_in_document": lambda measures, _: measures.in_document / (measures.request_idf or 1.0),
    "request_in_name": lambda measures, _: measures.in_name / (measures.request_idf or 1.0),
    "name_in_request": lambda measures, _: _name_in_request(measures),
    "abbreviation": lambda measures, _: measures.abbreviated,
    "named_agent": lambda measures, _: measures.named_agent,
    # The tool has an action that the request may ask for.
    "action": lambda measures, requested: _by_actions(
        measures, lambda actions: not actions.isdisjoint(requested)
    ),
    # The actions of both are known, and they have none in common.
    "other_action": lambda measures, requested: _by_actions(
        measures, lambda actions: bool(requested and actions and actions.isdisjoint(requested))
    ),
    # The tool only deletes, and the request does not ask for that.
    "unasked_delete": lambda measures, requested: _by_actions(
        measures, lambda actions: actions == _DELETE and "delete" not in requested
    ),
}
"""The function that computes each feature of all candidates, from their measures and the actions
that the request may ask for.
"""


def feature_matrix(measures: Measures, requested: Collection[str]) -> "Floats":
    """Return the features of the candidates, shape (candidates, features).

    Args:
        requested: the actions that the request may ask for.
    """
    import numpy as np

    return np.column_stack([feature(measures, requested) for feature in FEATURES.values()])


def _name_in_request(measures: Measures) -> "Floats":
    import numpy as np

    # The share is 0 for a name without words.
    return measures.in_name / np.where(measures.name_idf > 0, measures.name_idf, 1.0)


def _by_actions(measures: Measures, passes: Callable[[frozenset[str]], bool]) -> "Floats":
    """Return 1 for each candidate whose actions pass a test, else 0. The test runs once per
    different set of actions.
    """
    import numpy as np

    values = {actions: float(passes(actions)) for actions in set(measures.actions)}
    return np.fromiter(map(values.__getitem__, measures.actions), float, len(measures.actions))
