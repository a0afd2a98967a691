"""The protocols of a strategy's parts.

    transforms -> searches -> fusion of each step -> refinements of each step -> fusion over the
    steps -> refinements

A part is a small immutable object with a `part` name, which identifies it in the JSON form of a
strategy (`strategy.py`). Any object with the members of a protocol below is a valid part. A part
that needs an LLM calls `context.ask` (`context.py`); if there is no usable reply, it uses its
fallback and records that in the trace."""

import typing
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cache
from types import UnionType
from typing import Any, ClassVar, Literal, Protocol

from pegboard.errors import QueryError
from pegboard.ranking import ScoredTool
from pegboard.retrieval.context import Context
from pegboard.retrieval.requests import Candidates, Query, Ranking


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the library; raises QueryError with every option that has an invalid value."""

    part: ClassVar[str]
    may_be_zero: ClassVar[tuple[str, ...]] = ()
    """Names of the integer options that may be 0; all others are at least 1."""

    def __post_init__(self) -> None:
        problems: list[str] = []
        for name, kind in options_of(type(self)).items():
            value = getattr(self, name)
            minimum = 0 if name in self.may_be_zero else 1
            expected = str(kind).removeprefix("typing.")
            if kind is int:
                expected = f"an integer of at least {minimum}"
            if not fits(value, kind) or (kind is int and value < minimum):
                problems.append(f"{name} is {value!r}, expected {expected}")
        if problems:
            raise QueryError(f"The part '{self.part}' has invalid options: {', '.join(problems)}.")


@dataclass(frozen=True, slots=True)
class LlmCalls:
    """How many times a part asks an LLM, if it answers.

    Attributes:
        request: for each request.
        step: in addition, for each of its steps.
        further: at most so many more for each of its steps, which depends on the replies.
    """

    request: int = 0
    step: int = 0
    further: int = 0

    def __add__(self, other: "LlmCalls") -> "LlmCalls":
        return LlmCalls(
            self.request + other.request, self.step + other.step, self.further + other.further
        )

    def for_each_step(self) -> "LlmCalls":
        """Return the calls of the part if it works on each step alone."""
        return LlmCalls(step=self.request + self.step, further=self.further)

    def bounds(self, steps: int) -> tuple[int, int]:
        """Return the least and the most calls for a request of that many steps."""
        least = self.request + self.step * steps
        return least, least + self.further * steps

    def text(self, *, has_steps: bool) -> str:
        """Return the calls for a request, such as `2`, `1 to 5` or `1 + n to 1 + 5n`.

        Args:
            has_steps: whether the request is taken apart, into n steps; otherwise it is one.
        """
        least = _calls_text(self.request, self.step, has_steps)
        most = _calls_text(self.request, self.step + self.further, has_steps)
        return least if least == most else f"{least} to {most}"


def _calls_text(request: int, step: int, has_steps: bool) -> str:
    if not has_steps or not step:
        return str(request + step)
    steps = "n" if step == 1 else f"{step}n"
    return f"{request} + {steps}" if request else steps


@cache
def options_of(part: type[Part]) -> dict[str, Any]:
    """Return the options of a part with their declared types."""
    hints = typing.get_type_hints(part)
    return {item.name: hints[item.name] for item in fields(part)}


def fits(value: Any, kind: Any) -> bool:
    """Whether a value is of a declared type: a plain type, a Literal, a tuple of those, or a
    union.
    """
    origin = typing.get_origin(kind)
    if origin in (typing.Union, UnionType):
        return any(fits(value, item) for item in typing.get_args(kind))
    if origin is Literal:
        return value in typing.get_args(kind)
    if origin is tuple:
        inner = typing.get_args(kind)[0]
        return isinstance(value, tuple) and all(fits(item, inner) for item in value)  # pyright: ignore[reportUnknownVariableType]
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return value is None if kind is type(None) else type(value) is kind


class Transform(Protocol):
    """Derives the queries of a request."""

    part: ClassVar[str]

    async def transform(self, queries: Sequence[Query], context: Context) -> list[Query]:
        """Return the new queries; `queries` has at least the request itself."""
        ...


class Fusion(Protocol):
    """Merges rankings."""

    part: ClassVar[str]

    def fuse(self, rankings: Sequence[Ranking], weights: Sequence[float]) -> list[ScoredTool]:
        """Return the tools of all rankings, best first; `weights` has one value per ranking."""
        ...


class Refinement(Protocol):
    """Expands, reorders or filters a ranking."""

    part: ClassVar[str]

    async def refine(self, candidates: Candidates, context: Context) -> list[ScoredTool]:
        """Return the ranking that replaces `candidates.ranking`."""
        ...
