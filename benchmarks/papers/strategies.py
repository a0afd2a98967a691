"""Which strategies a benchmark measures: three baselines, the library's own, and variants."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.papers.benchmark import QuerySet, Variant
from pegboard.errors import ConfigurationError, QueryError
from pegboard.evaluation.agent_search import AGENT_STRATEGIES, AgentSystem
from pegboard.evaluation.golden import GoldenQuery
from pegboard.evaluation.overhead import asks_llm
from pegboard.evaluation.searcher import Searcher
from pegboard.evaluation.systems import ReleaseSystem
from pegboard.retrieval.llm.refinements import StepLoop
from pegboard.retrieval.requests import Query
from pegboard.retrieval.strategies import CLAUSES, STRATEGIES, named_strategy
from pegboard.retrieval.strategy import Strategy

BASELINE = "hybrid"
"""The strategy that the others are compared with."""
BASELINES = (
    Variant("BM25", {"modes": ["text"]}),
    Variant("vector", {"modes": ["vector"]}),
    Variant(BASELINE, "search"),
)
DEFAULT = Variant("default", None)
CLAUSES_BY_VECTOR = Variant("clauses-vector", {**CLAUSES, "modes": ["vector"]})
DESCRIPTIONS: dict[str, str] = {
    "BM25": "one search by words",
    "vector": "one search by vectors",
    "hybrid": "one search by both; the others are compared with it",
    "default": "what a release answers with where no strategy is chosen",
    "clauses-vector": "the strategy `clauses`, by vectors alone",
    **{name: what for name, (what, _) in STRATEGIES.items() if name not in ("search", "confident")},
    "dependencies-declared": "`dependencies` by declared edges only (toollinkos, toolsandbox)",
    "dependencies-declared-vector": "the same, by vectors alone",
    "dependencies-inferred": "`dependencies` on a board from which the declared ones are hidden",
    "given-steps": "the steps that the benchmark gives, round robin (ultratool, livemcpbench)",
    "given-steps-whole": "the same steps beside the whole request, the best score counts",
    "given-steps-selected": "the same steps, an LLM selects for each as `plan-select` does",
    **{strategy.name: strategy.description for strategy in AGENT_STRATEGIES},
}
"""Every strategy name in rows, except those of strategies of one's own, and what it does."""


@dataclass(frozen=True, slots=True)
class GivenSteps:
    """A transform that searches for the steps that a benchmark gives instead of the request.

    Attributes:
        steps: by request.
        whole: search for the request as well.
    """

    part: ClassVar[str] = "given-steps"
    steps: Mapping[str, Sequence[str]]
    whole: bool = False

    async def transform(self, queries: Sequence[Query], context: Any) -> list[Query]:
        """The steps of the request; the request itself if it has none."""
        request = context.request.text
        texts = self.steps.get(request, ())
        steps = [Query(text, number, "step") for number, text in enumerate(texts, start=1)]
        beside = [Query(request, number) for number in range(len(steps) + 1)]
        return [*steps, *beside] if self.whole or not steps else steps


@dataclass(frozen=True, slots=True)
class Chosen:
    """The strategies of --strategy: names of DESCRIPTIONS, and strategies of one's own."""

    names: tuple[str, ...] = ()
    own: tuple[Variant, ...] = ()

    def library(self) -> dict[str, Strategy]:
        """The library's strategies among them, and those of one's own, by name."""
        named = {name: named_strategy(name) for name in self.names if name in STRATEGIES}
        return named | {variant.name: variant.strategy for variant in self.own}


def chosen_strategies(options: Sequence[str]) -> Chosen | None:
    """Read the values of --strategy: each a name, a JSON file, or JSON; None for no value.

    Raises ConfigurationError with every invalid value.
    """
    names: list[str] = []
    own: list[Variant] = []
    problems: list[str] = []
    for option in options:
        if option in DESCRIPTIONS or option in STRATEGIES:
            names.append(BASELINE if option == "search" else option)
        elif option.lstrip().startswith(("{", "[")) or option.endswith(".json"):
            try:
                own += _own(option)
            except (OSError, ValueError, QueryError) as error:
                problems.append(f"{option:.80}: {error}")
        else:
            problems.append(f"there is no strategy '{option}'")
    if problems:
        raise ConfigurationError(
            f"Invalid --strategy: {'; '.join(problems)}. Expected a JSON file, a strategy as JSON, "
            f"or a name: {', '.join(dict.fromkeys([*DESCRIPTIONS, *STRATEGIES]))}."
        )
    return Chosen(tuple(dict.fromkeys(names)), tuple(own)) if options else None


def systems_for(
    query_set: QuerySet,
    boards: Mapping[str, Searcher],
    chosen: Chosen | None,
    index: str | None = None,
) -> list[ReleaseSystem]:
    """The systems that answer these queries: all whose requirements are met, or those chosen.

    Args:
        index: the only index to search; those of the strategies if None.
    """
    searcher = boards[query_set.board]
    if query_set.agents:
        return [
            AgentSystem(searcher, strategy, index)
            for strategy in AGENT_STRATEGIES
            if (chosen is None or strategy.name in chosen.names)
            and strategy.fits(query_set.queries)
        ]
    variants = _variants(query_set, searcher, chosen)
    if index is not None:  # what differs by its index only is the same now
        variants = {
            (one.name, one.board): replace(one, index=index) for one in reversed(variants)
        }.values()
        variants = [*variants][::-1]
    return [
        ReleaseSystem.resolve(
            boards[variant.board or query_set.board], variant.strategy, variant.index, variant.name
        )
        for variant in variants
    ]


def _variants(query_set: QuerySet, searcher: Searcher, chosen: Chosen | None) -> list[Variant]:
    default = [
        *BASELINES,
        *_library(searcher),
        CLAUSES_BY_VECTOR,
        *query_set.variants,
        *_given_steps(query_set.queries, searcher.caller is not None),
    ]
    if chosen is None:
        return default
    if "default" in chosen.names and DEFAULT not in default:
        default.append(DEFAULT)
    names = {variant.name for variant in default}
    more = [
        Variant(name, name) for name in chosen.names if name in STRATEGIES and name not in names
    ]
    return [*(one for one in default if one.name in chosen.names), *more, *chosen.own]


def _library(searcher: Searcher) -> list[Variant]:
    """The library's strategies: those that ask an LLM or follow dependencies if there are some."""
    edges = searcher.release.tables.get("edges")
    has_edges = edges is not None and edges.rows > 0
    strategies = {name: named_strategy(name) for name in STRATEGIES if name in DESCRIPTIONS}
    return [
        Variant(name, name)
        for name, strategy in strategies.items()
        if (searcher.caller is not None or not asks_llm(strategy))
        and (has_edges or all(part.part != "dependencies" for part in strategy.refine))
    ]


def _given_steps(queries: Sequence[GoldenQuery], llm: bool) -> list[Variant]:
    """The reference plan, searched; and with an LLM that selects (RPS, section 4)."""
    steps = {query.query: query.steps for query in queries if query.steps}
    if not steps:
        return []
    fusion = Strategy.from_dict({name: CLAUSES[name] for name in ("fuse_queries", "fuse_steps")})
    given = (GivenSteps(steps),)
    selected = Variant("given-steps-selected", Strategy(transforms=given, refine=(StepLoop(),)))
    return [
        Variant("given-steps", Strategy(transforms=given)),
        Variant("given-steps-whole", replace(fusion, transforms=(GivenSteps(steps, whole=True),))),
        *([selected] if llm else []),
    ]


def _own(option: str) -> list[Variant]:
    inline = not option.endswith(".json")
    value = json.loads(option if inline else Path(option).read_text("utf-8"))
    strategies = [
        Strategy.from_dict(one) for one in (value if isinstance(value, list) else [value])
    ]
    stem = "strategy" if inline else Path(option).stem
    return [
        Variant(
            _own_name(stem, number, len(strategies))
            if strategy.name == "unnamed"
            else strategy.name,
            strategy,
        )
        for number, strategy in enumerate(strategies, start=1)
    ]


def _own_name(stem: str, number: int, count: int) -> str:
    return stem if count == 1 else f"{stem}-{number}"
