"""The options `include` and `exclude` of every catalog: which of a source's tools are listed.

A tool is listed if each condition of `include` matches it, and none of `exclude` does. A condition
is a key of the option, such as `tags`, with patterns of which any may match. A pattern that matches
no tool of the source is an error, because what it named may have been renamed, and would be listed.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from fnmatch import fnmatchcase
from http import HTTPMethod
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    field_validator,
)

from pegboard.errors import SourceError
from pegboard.formatting import count_text

METHODS = (*sorted(HTTPMethod), "QUERY")
"""Methods that operations may have."""
MAX_SEEN = 1_000
"""Most values of a key that are kept for the message about a pattern that matches none."""
MAX_SHOWN = 8
"""Most of these values that the message shows."""


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _as_table(value: Any) -> Any:
    """Return the names of members as a table, in which None stands for any value."""
    names = _as_list(value)
    if isinstance(names, list | tuple) and all(isinstance(name, str) for name in names):
        return dict.fromkeys(names)
    return value


Pattern = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]
Patterns = Annotated[tuple[Pattern, ...], BeforeValidator(_as_list)]
Members = Annotated[dict[Pattern, Any], BeforeValidator(_as_table)]


class ToolFilter(BaseModel):
    """Conditions on tools. In patterns, `*` stands for any text and `?` for one character.

    Attributes:
        names: patterns of the tool's name.
        tags: patterns of its tags, not counting the catalog's own.
        paths: patterns of the path of an operation; `*` also stands for several segments.
        methods: HTTP methods of operations.
        annotations: names of annotations that it has, or a table of their values.
        extensions: the same for members of its record at the source, such as `x-audience`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    names: Patterns = ()
    tags: Patterns = ()
    paths: Patterns = ()
    methods: Patterns = ()
    annotations: Members = Field(default_factory=dict[str, Any])
    extensions: Members = Field(default_factory=dict[str, Any])

    @field_validator("paths")
    @classmethod
    def _begin_like_paths(cls, paths: tuple[str, ...]) -> tuple[str, ...]:
        if wrong := [path for path in paths if not path.startswith(("/", "*", "?", "["))]:
            raise ValueError(f"{wrong[0]!r} matches no path; begin it with / or *, as '/admin/*'")
        return paths

    @field_validator("methods")
    @classmethod
    def _known_methods(cls, methods: tuple[str, ...]) -> tuple[str, ...]:
        if wrong := [method for method in methods if method.upper() not in METHODS]:
            raise ValueError(f"{wrong[0]!r} is not one of {', '.join(METHODS)}")
        return tuple(method.upper() for method in methods)


@dataclass(frozen=True, slots=True)
class Candidate:
    """What conditions look at in a tool.

    Attributes:
        record: its record at the source; anything but a mapping has no members.
    """

    name: Any
    tags: Iterable[Any] = ()
    annotations: Any = None
    record: Any = None

    def texts(self, key: str) -> list[str]:
        """Return the texts that the patterns of a key are compared with."""
        if key == "names":
            values: Iterable[Any] = [self.name]
        elif key == "tags":
            values = [self.tags] if isinstance(self.tags, str) else self.tags
        elif key in ("paths", "methods"):
            annotations = self.annotations if isinstance(self.annotations, Mapping) else {}
            values = [annotations.get(key.removesuffix("s"))]
        else:
            values = self.members(key)
        return [value.strip() for value in values if isinstance(value, str)]

    def members(self, key: str) -> Mapping[str, Any]:
        holder = self.annotations if key == "annotations" else self.record
        return holder if isinstance(holder, Mapping) else {}


@dataclass(frozen=True, slots=True)
class _Pattern:
    """One pattern of a condition; `value` is the value that a member has to have."""

    key: str
    text: str
    value: Any = None

    def matches(self, candidate: Candidate) -> bool:
        if self.key in ("annotations", "extensions"):
            return _has_value(candidate.members(self.key).get(self.text), self.value)
        return any(_fits(text, self.text) for text in candidate.texts(self.key))

    def __str__(self) -> str:
        return repr(self.text) if self.value is None else f"{self.text} = {self.value!r}"


def _fits(text: str, pattern: str) -> bool:
    return text == pattern or fnmatchcase(text, pattern)


def _has_value(value: Any, expected: Any) -> bool:
    """Return whether a member has the expected value, or one of a list of them.

    Args:
        expected: None for any value but false. A text is a pattern; of a table, each member counts.
    """
    if expected is None:
        return value is not None and value is not False
    if isinstance(expected, list | tuple):
        return any(_has_value(value, item) for item in expected)
    if isinstance(value, list | tuple) and not isinstance(expected, Mapping):
        return any(_has_value(item, expected) for item in value)
    if isinstance(expected, Mapping):
        members: Mapping[str, Any] = value if isinstance(value, Mapping) else {}
        return bool(expected) and all(
            _has_value(members.get(name), item) for name, item in expected.items()
        )
    if isinstance(expected, str) and isinstance(value, str):
        return _fits(value.strip(), expected)
    return type(value) is type(expected) and value == expected


@dataclass(slots=True)
class _Condition:
    """One key of `include` or `exclude`, and what it decided so far."""

    option: Literal["include", "exclude"]
    key: str
    patterns: list[_Pattern]
    matched: set[int] = field(default_factory=set[int])
    left_out: int = 0
    first: str = ""

    def matches(self, candidate: Candidate) -> bool:
        """Return whether any pattern matches, and record all that do."""
        numbers = [
            number for number, pattern in enumerate(self.patterns) if pattern.matches(candidate)
        ]
        self.matched.update(numbers)
        return bool(numbers)

    def leave_out(self, where: str) -> None:
        self.left_out += 1
        self.first = self.first or where

    def unmatched(self) -> Iterator[_Pattern]:
        for number, pattern in enumerate(self.patterns):
            if number not in self.matched:
                yield pattern


class Selection:
    """Decides which tools of a source are listed, and counts the others."""

    def __init__(
        self, include: ToolFilter | None = None, exclude: ToolFilter | None = None
    ) -> None:
        self._excluding = list(_conditions("exclude", exclude))
        self._including = list(_conditions("include", include))
        self._seen: dict[str, set[str]] = {}

    def selects(self, candidate: Candidate, where: str) -> bool:
        """Return whether a tool is listed; one that is not is counted.

        Args:
            where: the place of the tool in its source, for people.
        """
        conditions = [*self._excluding, *self._including]
        for key in dict.fromkeys(condition.key for condition in conditions):
            seen = self._seen.setdefault(key, set())
            if len(seen) < MAX_SEEN:
                seen.update(candidate.texts(key))
        excluding = [one for one in self._excluding if one.matches(candidate)]
        missing = [one for one in self._including if not one.matches(candidate)]
        for condition in (*excluding, *missing):
            condition.leave_out(where)
            return False
        return True

    def left_out(self) -> Iterator[tuple[int, str]]:
        """Yield how many tools each condition left out, if any, and a sentence about them."""
        for condition in (*self._excluding, *self._including):
            if condition.left_out:
                patterns = ", ".join(map(str, condition.patterns[:MAX_SHOWN]))
                yield (
                    condition.left_out,
                    (
                        f"{count_text(condition.left_out, 'tool')} left out by "
                        f"`{condition.option}.{condition.key}` ({patterns}), the first is "
                        f"{condition.first:.200}"
                    ),
                )

    def check(self) -> None:
        """Raise SourceError with all patterns that matched no tool."""
        problems = [
            f"`{condition.option}.{condition.key}` has {pattern}, which matches no tool"
            f"{self._hint(condition.key, pattern)}"
            for condition in (*self._excluding, *self._including)
            for pattern in condition.unmatched()
        ]
        if problems:
            raise SourceError(
                f"{'; '.join(problems)}. Correct these patterns, or remove them; until then the "
                f"catalog keeps its last good tools."
            )

    def _hint(self, key: str, pattern: _Pattern) -> str:
        """Return which values there are, the most similar ones first."""
        seen = self._seen.get(key, set[str]())
        if pattern.text.startswith("x-"):
            seen = {text for text in seen if text.startswith("x-")}
        if not seen:
            return f"; the tools have no {key}"
        similar = get_close_matches(pattern.text, seen, MAX_SHOWN, cutoff=0)
        more = f" and {len(seen) - MAX_SHOWN:,} others" if len(seen) > MAX_SHOWN else ""
        return f"; there are {', '.join(repr(text)[:100] for text in similar)}{more}"


def _conditions(
    option: Literal["include", "exclude"], conditions: ToolFilter | None
) -> Iterator[_Condition]:
    for key in type(conditions).model_fields if conditions else ():
        value = getattr(conditions, key)
        members = value if isinstance(value, Mapping) else dict.fromkeys(value)
        if members:
            patterns = [_Pattern(key, text, expected) for text, expected in members.items()]
            yield _Condition(option, key, patterns)
