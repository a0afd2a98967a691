"""A strategy: the parts that answer a request, in order. It round-trips through JSON.

Strategy(name="mine", transforms=(Clauses(),), refine=(Dependencies(),))
{"name": "mine", "transforms": ["clauses"], "refine": [{"part": "dependencies"}]}
"""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, cast

from pegboard.errors import QueryError
from pegboard.ranker.model import default_ranker
from pegboard.ranking import MODES, Mode
from pegboard.retrieval.fusion import ReciprocalRank, RoundRobin
from pegboard.retrieval.parts import Fusion, LlmCalls, Refinement, Transform, fits, options_of

PARTS: dict[str, dict[str, str]] = {
    "transform": {
        "agent-query": "llm.transforms:AgentQuery",
        "clauses": "rules.clauses:Clauses",
        "context-decompose": "llm.transforms:ContextDecompose",
        "decompose": "llm.transforms:Decompose",
        "dummy-steps": "rules.clauses:DummySteps",
        "expand": "llm.transforms:Expand",
        "rewrite": "llm.transforms:Rewrite",
        "step-back-prompting": "llm.transforms:StepBackPrompting",
    },
    "fusion": {
        "best-score": "fusion:BestScore",
        "reciprocal-rank": "fusion:ReciprocalRank",
        "round-robin": "fusion:RoundRobin",
        "weighted": "fusion:Weighted",
    },
    "refinement": {
        "at-least": "rules.scores:AtLeast",
        "dependencies": "rules.dependencies:Dependencies",
        "grade": "llm.refinements:Grade",
        "listwise-rerank": "llm.refinements:ListwiseRerank",
        "look": "llm.refinements:Look",
        "post-selection": "llm.refinements:PostSelection",
        "reflect": "llm.refinements:Reflect",
        "step-loop": "llm.refinements:StepLoop",
    },
}
"""The parts that a strategy can name, by stage: module and class below `pegboard.retrieval`."""
_MAKE_STEPS = ("agent-query", "clauses", "context-decompose", "decompose", "dummy-steps")
"""The transforms that take a request apart."""
_STAGES = {
    "transforms": "transform",
    "fuse_queries": "fusion",
    "refine_step": "refinement",
    "fuse_steps": "fusion",
    "refine": "refinement",
}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Strategy:
    """A composition of parts. Every field has a value that does nothing, so a strategy says only
    what it does.

    Attributes:
        name: for traces and manifests.
        transforms: make the queries to search for, one after the other, from the request.
        indexes: the index to search, in a list of one; the release's default if empty.
        modes: how each query is searched, in a list of one.
        depth: tools that each search gives.
        alpha: makes the mode `hybrid` rank by alpha * cosine + (1 - alpha) * BM25, each scaled,
            instead of by the ranker, if it is given. Probabilities stay the ranker's.
        fuse_queries: makes one ranking of the rankings of a step's queries.
        refine_step: refine the ranking of every step, one after the other.
        fuse_steps: makes one ranking of those of the steps.
        refine: refine that, one after the other.
    """

    name: str = "unnamed"
    transforms: tuple[Transform, ...] = ()
    indexes: tuple[str, ...] = ()
    modes: tuple[Mode, ...] = ("hybrid",)
    depth: int = 50
    alpha: float | None = None
    fuse_queries: Fusion = field(default_factory=ReciprocalRank)
    refine_step: tuple[Refinement, ...] = ()
    fuse_steps: Fusion = field(default_factory=RoundRobin)
    refine: tuple[Refinement, ...] = ()

    def __post_init__(self) -> None:
        if problems := _problems({name: getattr(self, name) for name in _PLAIN}):
            raise QueryError(f"The strategy cannot be used: {'; '.join(problems)}.")

    def __repr__(self) -> str:
        values = self.to_dict()
        options = ", ".join(f"{name}={value!r}" for name, value in values.items() if name != "name")
        return f"<Strategy {self.name!r}{f': {options}' if options else ''}>"

    @property
    def mode(self) -> Mode:
        """How each query is searched."""
        return self.modes[0]

    @property
    def index(self) -> str | None:
        """The index to search; None for the release's default."""
        return self.indexes[0] if self.indexes else None

    def parts(self) -> list[Transform | Fusion | Refinement]:
        """All parts, in the order of the fields."""
        return [
            *self.transforms,
            self.fuse_queries,
            *self.refine_step,
            self.fuse_steps,
            *self.refine,
        ]

    def is_of_the_library(self) -> bool:
        """Whether all parts are the library's own, which await nothing except their context."""
        return all(type(part).__module__.startswith("pegboard.retrieval.") for part in self.parts())

    def lacks_probability(self) -> bool:
        """Whether a part needs a probability, which only hybrid searches give, or a threshold that
        the ranker lacks.
        """
        required = [
            probability
            for part in self.parts()
            if part.part == "at-least"
            and (probability := getattr(part, "probability", None)) is not None
        ]
        if self.mode != "hybrid":
            return bool(required)
        thresholds = default_ranker().thresholds
        return any(isinstance(value, str) and value not in thresholds for value in required)

    def llm_calls(self) -> str:
        """Return how many times an LLM is asked for a request, such as `2` or `1 + n`, where n is
        the number of steps into which the request is taken apart; `0` for a strategy of rules.
        """
        return self._all_llm_calls().text(has_steps=self.has_steps)

    def llm_call_bounds(self, steps: int) -> tuple[int, int]:
        """Return the least and the most calls of an LLM for a request.

        Args:
            steps: into how many steps a request is taken apart, by a strategy that does so.
        """
        return self._all_llm_calls().bounds(steps if self.has_steps else 1)

    @property
    def has_steps(self) -> bool:
        """Whether a request is taken apart into steps."""
        return any(part.part in _MAKE_STEPS for part in self.transforms)

    def _all_llm_calls(self) -> LlmCalls:
        total = LlmCalls()
        for stage in ("transforms", "refine_step", "refine"):
            for part in getattr(self, stage):
                calls: LlmCalls = getattr(part, "llm_calls", LlmCalls)()
                total += calls.for_each_step() if stage == "refine_step" else calls
        return total

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values without defaults, from which `Strategy.from_dict` makes it again."""
        values: dict[str, Any] = {"name": self.name}
        for item in dataclasses.fields(self):
            value = getattr(self, item.name)
            if item.name == "name" or value == _default(item):
                continue
            if item.name in _STAGES:
                value = (
                    [_part_to_dict(part) for part in value]
                    if isinstance(value, tuple)
                    else _part_to_dict(value)
                )
            values[item.name] = list(value) if isinstance(value, tuple) else value
        return values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Strategy":
        """Make a strategy from JSON values. Raises QueryError with every problem."""
        problems: list[str] = []
        fields = {item.name: item for item in dataclasses.fields(cls)}
        read: dict[str, Any] = {}
        for name, value in values.items():
            if name not in fields:
                problems.append(f"there is no '{name}'; a strategy has {', '.join(fields)}")
            elif name in _STAGES:
                several = name in ("transforms", "refine_step", "refine")
                written = value if several else [value]
                if not isinstance(written, list | tuple):
                    problems.append(f"'{name}' is {value!r}, expected a list of parts")
                    continue
                parts = [
                    _part_from_dict(
                        f"{name}[{place}]" if several else name, _STAGES[name], item, problems
                    )
                    for place, item in enumerate(cast("list[Any]", written))
                ]
                read[name] = tuple(parts) if several else parts[0]
            else:
                problems += _problems({name: value})
                read[name] = tuple(value) if isinstance(value, list) else value
        if problems:
            raise QueryError(f"The strategy cannot be used: {'; '.join(problems)}.")
        return cls(**read)


def part_class(stage: str, name: str) -> Any:
    """Return the class of a part by its name. Raises KeyError if there is none."""
    module, class_name = PARTS[stage][name].split(":")
    return getattr(import_module(f"pegboard.retrieval.{module}"), class_name)


def _default(item: "dataclasses.Field[Any]") -> Any:
    return (
        item.default_factory() if item.default_factory is not dataclasses.MISSING else item.default
    )


def _part_to_dict(part: Any) -> dict[str, Any]:
    values: dict[str, Any] = {"part": part.part}
    for item in dataclasses.fields(part) if dataclasses.is_dataclass(part) else ():
        value = getattr(part, item.name)
        if value != _default(item):
            values[item.name] = list(value) if isinstance(value, tuple) else value
    return values


def _part_from_dict(place: str, stage: str, value: Any, problems: list[str]) -> Any:
    written: Any = {"part": value} if isinstance(value, str) else value
    if not isinstance(written, Mapping) or not isinstance(
        cast("Mapping[str, Any]", written).get("part"), str
    ):
        problems.append(
            f"'{place}' is {value!r}, expected the name of a part or a table with its name as "
            f"'part'"
        )
        return None
    written = cast("Mapping[str, Any]", written)
    name = written["part"]
    if name not in PARTS[stage]:
        problems.append(
            f"'{place}' names the part '{name}'; as a {stage} there are "
            f"{', '.join(sorted(PARTS[stage]))}"
        )
        return None
    part = part_class(stage, name)
    options = {
        option: tuple(cast("list[Any]", setting)) if isinstance(setting, list) else setting
        for option, setting in written.items()
        if option != "part"
    }
    valid_options = options_of(part)
    if unknown := options.keys() - valid_options.keys():
        problems.append(
            f"'{place}': the part '{name}' has no '{', '.join(sorted(unknown))}'; it has "
            f"{', '.join(valid_options) or 'no options'}"
        )
    try:
        return part(**{option: options[option] for option in options.keys() & valid_options.keys()})
    except QueryError as error:
        problems.append(f"'{place}': {str(error).removesuffix('.')}")
        return None


_PLAIN: dict[str, tuple[Callable[[Any], Any], str]] = {
    "name": (lambda value: isinstance(value, str) and value, "a text"),
    "depth": (
        lambda value: type(value) is int and value >= 1,
        "the number of tools that a search gives, 1 or more",
    ),
    "alpha": (
        lambda value: value is None or (fits(value, float) and 0 <= value <= 1),
        "the share of the cosine, 0 to 1",
    ),
    "modes": (
        lambda value: isinstance(value, list | tuple) and len(value) == 1 and value[0] in MODES,
        f"a list with one of {', '.join(MODES)}",
    ),
    "indexes": (
        lambda value: (
            isinstance(value, list | tuple)
            and len(value) <= 1
            and fits(tuple(value), tuple[str, ...])
        ),
        "a list with the name of one index, or none",
    ),
}
"""For each field without parts, a check of its value and the expected value as text."""


def _problems(values: Mapping[str, Any]) -> list[str]:
    return [
        f"'{name}' is {value!r}, expected {expected}"
        for name, value in values.items()
        for valid, expected in [_PLAIN[name]]
        if not valid(value)
    ]
