"""The strategies that come with the library, by name."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from pegboard.errors import QueryError, did_you_mean
from pegboard.retrieval.strategy import Strategy

DEFAULT_STRATEGY = "clauses"
"""The strategy of a release that names none of its own."""

CLAUSES: dict[str, Any] = {
    "transforms": ["clauses"],
    "fuse_queries": {"part": "weighted", "normalise": "none"},
    "fuse_steps": {"part": "best-score", "normalise": "softmax"},
}
"""A tool scores the best of the whole request and of the means of the request and each clause.

Recall at 5 on development halves, of this and of the whole request alone: Seal-Tools .967 and .867;
MetaTool with two tools .898 and .891.
"""
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
    "hybrid-alpha": (
        "one search by .8 cosine and .2 BM25 instead of the ranker: the papers' hybrid baseline",
        {"alpha": 0.8},
    ),
    "dependencies": (
        "the best three tools, and behind each what it depends on: Graph RAG-Tool Fusion; needs "
        "no LLM",
        {"refine": ["dependencies"]},
    ),
    "graph-rag-tool-fusion": (
        "the same as in the paper's best row: an LLM orders the best three tools first, and only "
        "they and what they depend on are returned",
        {
            "refine": [
                {"part": "listwise-rerank", "depth": 3},
                {"part": "dependencies", "rest": False},
            ]
        },
    ),
    "rag-tool-fusion": (
        "Advanced RAG-Tool Fusion (Toolshed): an LLM rewrites, decomposes, varies, orders, grades "
        "and looks for what is missing",
        {
            "transforms": ["rewrite", "decompose", "expand"],
            "fuse_queries": "reciprocal-rank",
            "refine_step": ["listwise-rerank"],
            "fuse_steps": "round-robin",
            "refine": ["listwise-rerank", "grade", "reflect"],
        },
    ),
    "step-back": (
        "the request and, beside it, what an LLM says is the more general question behind it "
        "(step-back prompting)",
        {"transforms": ["step-back-prompting"]},
    ),
    "ask-as-agent": (
        "an LLM writes the query with which an agent would look for the tool, one for each "
        "operation that the request needs",
        {**CLAUSES, "transforms": ["agent-query"]},
    ),
    "look-at-fifteen": (
        "an LLM looks at the best fifteen tools of `clauses`, puts those that serve the request "
        "first, and says whether any does",
        {**CLAUSES, "refine": ["look"]},
    ),
    "ask-as-agent-and-look": (
        "both: an LLM writes the query of an agent, and looks at the best fifteen tools",
        {**CLAUSES, "transforms": ["agent-query"], "refine": ["look"]},
    ),
    "rag-only-select": (
        "Retrieval-Plan-Select without decomposition: an LLM chooses among the ten best tools",
        {"refine": [{"part": "step-loop", "rounds": 1}]},
    ),
    "rps-dummy": (
        "Retrieval-Plan-Select with the request cut into equal parts: an LLM chooses for each",
        {"transforms": ["dummy-steps"], "fuse_steps": "round-robin", "refine": ["step-loop"]},
    ),
    "plan-select": (
        "Retrieval-Plan-Select: an LLM plans with the ten best tools in sight and chooses "
        "for each step, the union by recall",
        {"transforms": ["context-decompose"], "fuse_steps": "round-robin", "refine": ["step-loop"]},
    ),
    "plan-select-precise": (
        "the same, and a last choice out of the union, which buys precision with recall",
        {
            "transforms": ["context-decompose"],
            "fuse_steps": "round-robin",
            "refine": ["step-loop", "post-selection"],
        },
    ),
    "dummy-steps": (
        "Retrieval-Plan-Select's baseline: the request cut into equal parts",
        {"transforms": ["dummy-steps"], "fuse_steps": "round-robin"},
    ),
    "tool-rag": (
        "every tool whose cosine is at least .5, as in Armory's Tool RAG; often none",
        {"modes": ["vector"], "refine": ["at-least"]},
    ),
    "confident": (
        "every tool that is as likely to fit as those of 95 % of the requests that have an answer",
        {"refine": [{"part": "at-least", "probability": "accept_95"}]},
    ),
}
"""For each name a description, and the strategy as JSON values."""


@cache
def named_strategy(name: str) -> Strategy:
    """Return the strategy of that name. Raises QueryError for an unknown name."""
    if name not in STRATEGIES:
        suggestion = did_you_mean(name, STRATEGIES) or "."
        raise QueryError(
            f"Unknown strategy '{name}'{suggestion} Expected one of: {', '.join(STRATEGIES)}; or a "
            "strategy of your own, as JSON values."
        )
    return Strategy.from_dict({"name": name, **STRATEGIES[name][1]})


def load_strategy(name: str | None) -> "str | dict[str, Any] | None":
    """Return the strategy that an option names: its name, or what its JSON file holds."""
    if name is None or not name.endswith(".json"):
        return name
    try:
        value = json.loads(Path(name).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise QueryError(f"{name} cannot be read as JSON: {error}.") from error
    if not isinstance(value, dict):
        raise QueryError(f"{name} holds {type(value).__name__}; expected a JSON object.")
    return value
