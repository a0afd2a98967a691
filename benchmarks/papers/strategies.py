"""Which strategies a benchmark measures, under which names: three baselines, every strategy of the
library that needs no LLM, and variants.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.papers.benchmark import Asked, Variant
from pegboard.errors import ConfigurationError, QueryError
from pegboard.evaluation.golden import GoldenQuery
from pegboard.evaluation.searcher import Searcher
from pegboard.retrieval.parts import Query
from pegboard.retrieval.strategies import CLAUSES, STRATEGIES, named_strategy
from pegboard.retrieval.strategy import Strategy

BASELINE = "hybrid"
"""What every other strategy is compared with."""
BASELINES = (
    Variant("BM25", {"modes": ["text"]}),
    Variant("vector", {"modes": ["vector"]}),
    Variant(BASELINE, "search"),
)
CLAUSES_BY_VECTOR = Variant("clauses-vector", {**CLAUSES, "modes": ["vector"]})


@dataclass(frozen=True, slots=True)
class AgentStrategy:
    """How agents are searched: `agents` (their own descriptions), `tools` (owners of tools) or
    `both`, in one mode; the request whole, all its known steps at once, or with its clauses beside
    it."""

    searched: str
    mode: str
    texts: str = ""

    @property
    def name(self) -> str:
        """Its name in rows, such as `both-vector-steps`."""
        mode = "BM25" if self.mode == "text" else self.mode
        return "-".join(part for part in (self.searched, mode, self.texts) if part)


AGENT_STRATEGIES = (
    *(
        AgentStrategy(searched, mode)
        for searched in ("agents", "tools", "both")
        for mode in ("text", "vector", "hybrid")
    ),
    *(
        AgentStrategy("both", mode, texts)
        for texts in ("steps", "clauses")
        for mode in ("vector", "hybrid")
    ),
)
DESCRIPTIONS: dict[str, str] = {
    "BM25": "one search by words",
    "vector": "one search by vectors",
    "hybrid": "one search by both; the others are compared with it",
    "clauses-vector": "the strategy `clauses`, by vectors alone",
    **{name: what for name, (what, _) in STRATEGIES.items() if name not in ("search", "confident")},
    "dependencies-declared": "`dependencies` by declared edges only (toollinkos, toolsandbox)",
    "dependencies-declared-vector": "the same, by vectors alone",
    "dependencies-inferred": "`dependencies` on a board from which the declared ones are hidden",
    "strategy-steps": "the steps that the benchmark gives, round robin (ultratool, livemcpbench)",
    "strategy-steps-whole": "the same steps beside the whole request, the best score counts",
    **{
        one.name: "agents: "
        + {
            "agents": "by their own descriptions",
            "tools": "by their tools",
            "both": "by both in one space",
        }[one.searched]
        + {
            "": "",
            "steps": ", all steps as one request",
            "clauses": ", the request and its clauses",
        }[one.texts]
        for one in AGENT_STRATEGIES
    },
}
"""Every name that rows may have without a strategy of one's own, and what it is."""


@dataclass(frozen=True, slots=True)
class GivenSteps:
    """A transform that searches for the steps that a benchmark gives, instead of the request or,
    with `whole`, beside it.
    """

    part: ClassVar[str] = "given-steps"
    steps: Mapping[str, Sequence[str]]
    whole: bool = False

    async def transform(self, queries: Sequence[Query], context: Any) -> list[Query]:
        """The steps of the request; the request itself where it has none."""
        request = context.request.text
        known = self.steps.get(request, ())
        steps = [Query(text, number, "step") for number, text in enumerate(known, start=1)]
        beside = [Query(request, number) for number in range(len(steps) + 1)]
        return [*steps, *beside] if self.whole or not steps else steps


@dataclass(frozen=True, slots=True)
class Chosen:
    """The strategies that were asked for: names of DESCRIPTIONS, and strategies of one's own."""

    names: tuple[str, ...] = ()
    own: tuple[Variant, ...] = ()


def chosen_of(given: Sequence[str]) -> Chosen | None:
    """What `--strategy` says, once or several times: a name, a JSON file, or JSON; None for
    nothing.

    Raises ConfigurationError with every strategy that there is not.
    """
    names: list[str] = []
    own: list[Variant] = []
    problems: list[str] = []
    for one in given:
        if one in DESCRIPTIONS or one in STRATEGIES:
            names.append(BASELINE if one == "search" else one)
        elif one.lstrip().startswith(("{", "[")) or one.endswith(".json"):
            try:
                own += _own(one)
            except (OSError, ValueError, QueryError) as error:
                problems.append(f"{one:.80}: {error}")
        else:
            problems.append(f"there is no strategy '{one}'")
    if problems:
        raise ConfigurationError(
            f"--strategy cannot be followed: {'; '.join(problems)}. Expected a JSON file, a "
            f"strategy as JSON, or of: "
            f"{', '.join(dict.fromkeys([*DESCRIPTIONS, *STRATEGIES]))}."
        )
    return Chosen(tuple(dict.fromkeys(names)), tuple(own)) if given else None


def variants_of(asked: Asked, searcher: Searcher, chosen: Chosen | None) -> list[Variant]:
    """What these queries are asked by: everything that needs nothing that is not there, or what was
    chosen of it.
    """
    default = [
        *BASELINES,
        *_library(searcher),
        CLAUSES_BY_VECTOR,
        *asked.variants,
        *_steps(asked.queries),
    ]
    if chosen is None:
        return default
    known = {one.name for one in default}
    more = [
        Variant(name, name) for name in chosen.names if name in STRATEGIES and name not in known
    ]
    return [*(one for one in default if one.name in chosen.names), *more, *chosen.own]


def asks_llm(strategy: Strategy) -> bool:
    """Whether a part of it asks an LLM where there is one; each such part takes prompts of one's
    own.
    """
    return any(hasattr(part, "prompts") for part in strategy.parts())


def _library(searcher: Searcher) -> list[Variant]:
    """The library's strategies beside one search: those that ask an LLM if there is one, those by
    dependencies if there are some.
    """
    edges = searcher.release.tables.get("edges")
    strategies = {name: named_strategy(name) for name in STRATEGIES if name != "search"}
    return [
        Variant(name, name)
        for name, strategy in strategies.items()
        if not strategy.needs_calibration()
        and (searcher.caller is not None or not asks_llm(strategy))
        and (name != "dependencies" or (edges is not None and edges.rows > 0))
    ]


def _steps(queries: Sequence[GoldenQuery]) -> list[Variant]:
    known = {one.query: one.steps for one in queries if one.steps}
    if not known:
        return []
    fusion = Strategy.from_dict({name: CLAUSES[name] for name in ("within", "across")})
    return [
        Variant("strategy-steps", Strategy(transforms=(GivenSteps(known),))),
        Variant(
            "strategy-steps-whole", replace(fusion, transforms=(GivenSteps(known, whole=True),))
        ),
    ]


def _own(given: str) -> list[Variant]:
    inline = not given.endswith(".json")
    value = json.loads(given if inline else Path(given).read_text("utf-8"))
    strategies = [
        Strategy.from_dict(one) for one in (value if isinstance(value, list) else [value])
    ]
    stem = "strategy" if inline else Path(given).stem
    numbered = [
        stem if len(strategies) == 1 else f"{stem}-{number}"
        for number, _ in enumerate(strategies, start=1)
    ]
    return [
        Variant(name if strategy.name == "unnamed" else strategy.name, strategy)
        for name, strategy in zip(numbered, strategies, strict=True)
    ]
