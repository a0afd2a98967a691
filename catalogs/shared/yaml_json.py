"""YAML as JSON: what an untrusted YAML text says, in the types that JSON has and by the rules of
YAML 1.2.

PyYAML follows YAML 1.1: `on` is true there, 2024-01-01 a date, 0755 an octal number, and a status
code 200 a key that JSON
cannot hold. And its loader recurses in C: 100,000 opening brackets end the process. So only its
parser is used here, and the values are built from the parser's events, one after the other, with
limits on depth and on what aliases expand to."""

import re
from dataclasses import dataclass, field
from typing import Any

from pegboard.errors import SourceError

MAX_DEPTH = 200
"""Levels. The deepest public OpenAPI document seen has about 40; Python itself stops at 1,000
calls.
"""
MAX_VALUES = 5_000_000
"""Values, counting an alias as all that it stands for: nine lines of aliases of aliases stand for a
billion.
"""

INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
FLOAT = re.compile(
    r"[-+]?(0|[1-9][0-9]*)?(\.[0-9]+|[0-9]\.)([eE][-+]?[0-9]+)?|[-+]?(0|[1-9][0-9]*)[eE][-+]?[0-9]+"
)
WORDS: dict[str, Any] = {
    "": None,
    "~": None,
    **dict.fromkeys(("null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
CORE = "tag:yaml.org,2002:"
MERGE = object()


def parse_yaml(text: str, where: str) -> Any:
    """Parse a YAML text of one document as JSON, or raise SourceError that names the line."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    builder = _Builder(where)
    try:
        for event in yaml.parse(text, loader):
            builder.add(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise SourceError(
            f"{where} is not YAML: {error.problem}{place}. Correct that place."
        ) from error
    except (yaml.YAMLError, UnicodeError) as error:
        reason = " ".join(str(error).split())
        raise SourceError(f"{where} is not YAML: {reason}. Save it again as UTF-8.") from error
    return builder.value


@dataclass(slots=True)
class _Open:
    """A collection whose end has not come yet; in a mapping, `key` waits for its value."""

    value: dict[str, Any] | list[Any]
    anchor: str | None
    line: int
    size: int = 1
    key: Any = None
    has_key: bool = False
    merged: list[Any] = field(default_factory=list[Any])


@dataclass(slots=True)
class _Builder:
    where: str
    value: Any = None
    _stack: list[_Open] = field(default_factory=list[_Open])
    _anchors: dict[str, tuple[Any, int]] = field(default_factory=dict[str, tuple[Any, int]])
    _documents: int = 0

    def add(self, event: Any) -> None:
        kind, line = type(event).__name__, event.start_mark.line + 1
        if kind in ("MappingStartEvent", "SequenceStartEvent"):
            self._open({} if kind == "MappingStartEvent" else [], event, line)
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            self._close()
        elif kind == "ScalarEvent":
            self._scalar(event, line)
        elif kind == "AliasEvent":
            if event.anchor not in self._anchors:
                self._fail(f"the alias *{event.anchor} names no value before it", line)
            self._put(*self._anchors[event.anchor], line)
        elif kind == "DocumentStartEvent":
            self._documents += 1
            if self._documents > 1:
                self._fail("a second document begins; write each in a file of its own", line)

    def _open(self, value: Any, event: Any, line: int) -> None:
        if event.tag not in (None, f"{CORE}map", f"{CORE}seq"):
            self._fail(f"the tag {event.tag} has no meaning in JSON", line)
        if len(self._stack) >= MAX_DEPTH:
            self._fail(f"it is nested deeper than {MAX_DEPTH} levels", line)
        if self._stack and isinstance(self._stack[-1].value, dict) and not self._stack[-1].has_key:
            self._fail("a key is a list or a mapping, which JSON does not have", line)
        self._stack.append(_Open(value, event.anchor, line))

    def _close(self) -> None:
        done = self._stack.pop()
        for other in done.merged:
            if isinstance(other, dict) and isinstance(done.value, dict):
                done.value |= {key: item for key, item in other.items() if key not in done.value}
        if done.anchor:
            self._anchors[done.anchor] = (done.value, done.size)
        self._put(done.value, done.size, done.line)

    def _scalar(self, event: Any, line: int) -> None:
        parent = self._stack[-1] if self._stack else None
        if parent and isinstance(parent.value, dict) and not parent.has_key:
            # A key is its text, whatever it would be as a value: 200, on and null name responses
            # and properties.
            parent.key = MERGE if event.value == "<<" and not event.style else event.value
            parent.has_key = True
            if event.value in parent.value:
                self._fail(f"the key {event.value!r} stands twice in one mapping; remove one", line)
            return
        plain = event.tag is None and event.implicit[0]
        if not plain and event.tag not in (None, "!", f"{CORE}str"):
            self._fail(
                f"the tag {event.tag} has no meaning in JSON; write the value plainly or in quotes",
                line,
            )
        value = _plain_value(event.value) if plain else event.value
        if event.anchor:
            self._anchors[event.anchor] = (value, 1)
        self._put(value, 1, line)

    def _put(self, value: Any, size: int, line: int) -> None:
        if not self._stack:
            self.value = value
            return
        parent = self._stack[-1]
        parent.size += size
        if parent.size > MAX_VALUES:
            self._fail(f"its aliases stand for more than {MAX_VALUES:,} values", line)
        if isinstance(parent.value, list):
            parent.value.append(value)
            return
        if not parent.has_key:
            self._fail("a key is an alias; write the key itself", line)
        if parent.key is MERGE:
            parent.merged += value if isinstance(value, list) else [value]
        else:
            parent.value[parent.key] = value
        parent.has_key = False

    def _fail(self, what: str, line: int) -> None:
        raise SourceError(f"{self.where} cannot be read as JSON in YAML: {what}, at line {line}.")


def _plain_value(text: str) -> Any:
    if text in WORDS:
        return WORDS[text]
    if INTEGER.fullmatch(text) and len(text) < 400:
        return int(text)
    if FLOAT.fullmatch(text):
        number = float(text)
        return number if number not in (float("inf"), float("-inf")) else text
    return text
