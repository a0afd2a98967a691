"""The strategies that come with the library, by name."""

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from pegboard.errors import QueryError
from pegboard.retrieval.strategy import Strategy
from pegboard.search.ranking import MODES, Mode

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DEFAULT_PLAN = "clauses"
"""What a release is asked by that names no strategy of its own."""

CLAUSES: dict[str, Any] = {
    "transforms": ["clauses"],
    "within": {"part": "weighted", "normalise": "none"},
    "across": "best-score",
}
"""A tool scores the best of the whole request and of the means of the request and each clause.
Recall at 5 on development halves, against
the whole request alone and a round robin of clauses: Seal-Tools .946, .847, .909; MetaTool with two
tools .764, .730, .739. """
STRATEGIES: dict[str, tuple[str, dict[str, Any]]] = {
    "search": (
        "one search for the whole request: the baseline, and retrieval without decomposition",
        {},
    ),
    "clauses": (
        "the clauses of the request, each with the whole behind it, and the whole; the best score "
        "counts; needs no LLM",
        CLAUSES,
    ),
    "dependencies": (
        "the best three tools, and behind each what it depends on: Graph RAG-Tool Fusion; needs "
        "no LLM",
        {"refine": ["dependencies"]},
    ),
    "rag-tool-fusion": (
        "Advanced RAG-Tool Fusion (Toolshed): an LLM rewrites, decomposes, varies, orders, grades "
        "and looks for what is missing",
        {
            "transforms": ["rewrite", "decompose", "expand"],
            "within": "reciprocal-rank",
            "each": ["listwise-rerank"],
            "across": "round-robin",
            "refine": ["listwise-rerank", "grade", "reflect"],
        },
    ),
    "step-back": (
        "the request and, beside it, what an LLM says is the more general question behind it "
        "(step-back prompting)",
        {"transforms": ["step-back-prompting"]},
    ),
    "plan-select": (
        "Retrieval-Plan-Select: an LLM strategies with the ten best tools in sight and chooses "
        "for each step, the union by recall",
        {"transforms": ["context-decompose"], "across": "round-robin", "refine": ["step-loop"]},
    ),
    "plan-select-precise": (
        "the same, and a last choice out of the union, which buys precision with recall",
        {
            "transforms": ["context-decompose"],
            "across": "round-robin",
            "refine": ["step-loop", "post-selection"],
        },
    ),
    "dummy-steps": (
        "Retrieval-Plan-Select's baseline: the request cut into equal parts",
        {"transforms": ["dummy-steps"], "across": "round-robin"},
    ),
    "tool-rag": (
        "every tool whose cosine is at least .5, as in Armory's Tool RAG; often none",
        {"modes": ["vector"], "refine": ["at-least"]},
    ),
    "confident": (
        "every tool that is as likely to fit as those of 95 % of the requests that have an "
        "answer; needs a calibrated index",
        {"refine": [{"part": "at-least", "probability": "accept_95"}]},
    ),
}
"""For each name what it is, and the strategy as JSON values."""


@cache
def named_strategy(name: str) -> Strategy:
    """The strategy of that name. Raises QueryError that names those there are."""
    if name not in STRATEGIES:
        raise QueryError(
            f"There is no strategy '{name}'. Expected one of: {', '.join(STRATEGIES)}; or a "
            f"strategy of your own."
        )
    return Strategy.from_dict({"name": name, **STRATEGIES[name][1]})


def composed_strategy(
    query: "str | Sequence[float] | NDArray[np.floating]",
    vector: object,
    mode: Mode,
    decompose: bool = False,
    expand: str | None = None,
    threshold: float | None = None,
) -> Strategy:
    """The strategy of the options of `Board.search`. Raises QueryError for options that do not go
    together.
    """
    if not isinstance(query, str) or vector is not None:
        raise QueryError(
            "A vector is searched as it is; decompose, expand and threshold need the request as "
            "text."
        )
    if mode not in MODES:
        raise QueryError(f"There is no mode '{mode}'. Expected one of: {', '.join(MODES)}.")
    if expand not in (None, "dependencies"):
        raise QueryError(f"There is no expansion '{expand}'. Expected: dependencies.")
    refine: list[dict[str, Any]] = []
    if threshold is not None:
        refine.append({"part": "at-least", "score": threshold})
    if expand:
        refine.append({"part": "dependencies"})
    clauses = CLAUSES if decompose else {"depth": 1}
    if (
        decompose and mode == "text"
    ):  # BM25 grows with the request, so the whole would beat every clause
        clauses = {**CLAUSES, "across": "round-robin"}
    return Strategy.from_dict({"name": "search", "modes": [mode], "refine": refine, **clauses})
