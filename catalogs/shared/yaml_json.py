"""YAML as JSON: what an untrusted YAML text says, in the types that JSON has and by the rules of
YAML 1.2.

PyYAML follows YAML 1.1: `on` is true there, 2024-01-01 a date, 0755 an octal number, and a status
code 200 a key that JSON
cannot hold. And its loader recurses in C: 100,000 opening brackets end the process. So only its
parser is used here, and the values are built from the parser's events, one after the other, with
limits on depth and on what aliases expand to. What is wrong with one value is left to whoever uses
it, as in `parse_json`."""

import re
from dataclasses import dataclass, field
from typing import Any

from pegboard.errors import SourceError
from pegboard.foreign.files import RepeatedNames, Unreadable
from pegboard.foreign.limits import MAX_DEPTH

MAX_EXPANDED = 20_000_000
"""Values and characters that all aliases of a document stand for: nine lines of aliases of aliases
may stand for a billion values, and a thousand aliases of one text for a thousand times its length.
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
MAX_SKIPPED = 800
"""Levels beyond the allowed ones that may still be parsed: libyaml takes time by their square."""
CORE = "tag:yaml.org,2002:"
MERGE = object()
TOO_DEEP = Unreadable(f"a part nested deeper than {MAX_DEPTH} levels")
TOO_MUCH = Unreadable(
    f"an alias in a document whose aliases stand for more than {MAX_EXPANDED:,} values and "
    f"characters"
)


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
    height: int = 1
    key: Any = None
    has_key: bool = False
    repeated: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])
    merged: list[Any] = field(default_factory=list[Any])


@dataclass(slots=True)
class _Builder:
    where: str
    value: Any = None
    _stack: list[_Open] = field(default_factory=list[_Open])
    _anchors: dict[str, tuple[Any, int, int]] = field(
        default_factory=dict[str, tuple[Any, int, int]]
    )
    """Value, size and height."""
    _expanded: int = 0
    _skipped: int = 0
    """Collections under way that are nested too deeply to be read."""
    _documents: int = 0

    def add(self, event: Any) -> None:
        kind, line = type(event).__name__, event.start_mark.line + 1
        if self._skipped or (len(self._stack) >= MAX_DEPTH and kind.endswith("StartEvent")):
            self._skip(kind, line)
        elif kind in ("MappingStartEvent", "SequenceStartEvent"):
            self._open({} if kind == "MappingStartEvent" else [], event, line)
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            self._close()
        elif kind == "ScalarEvent":
            self._scalar(event, line)
        elif kind == "AliasEvent":
            if event.anchor not in self._anchors:
                self._fail(f"the alias *{event.anchor} names no value before it", line)
            value, size, height = self._anchors[event.anchor]
            self._expanded += size
            if self._expanded > MAX_EXPANDED:
                value, size, height = TOO_MUCH, 1, 0
            elif len(self._stack) + height > MAX_DEPTH:
                value, size, height = TOO_DEEP, 1, 0
            self._put(value, size, height, line)
        elif kind == "DocumentStartEvent":
            self._documents += 1
            if self._documents > 1:
                self._fail("a second document begins; write each in a file of its own", line)

    def _open(self, value: Any, event: Any, line: int) -> None:
        if event.tag not in (None, f"{CORE}map", f"{CORE}seq"):
            self._fail(f"the tag {event.tag} has no meaning in JSON", line)
        if self._stack and isinstance(self._stack[-1].value, dict) and not self._stack[-1].has_key:
            self._fail("a key is a list or a mapping, which JSON does not have", line)
        self._stack.append(_Open(value, event.anchor, line))

    def _skip(self, kind: str, line: int) -> None:
        """Leave out a collection that is nested too deeply, with all that it holds."""
        if kind in ("MappingStartEvent", "SequenceStartEvent"):
            self._skipped += 1
            if self._skipped > MAX_SKIPPED:
                self._fail(f"it is nested deeper than {MAX_DEPTH + MAX_SKIPPED:,} levels", line)
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            self._skipped -= 1
            if not self._skipped:
                self._put(TOO_DEEP, 1, 0, line)

    def _close(self) -> None:
        done = self._stack.pop()
        for other in done.merged:
            if isinstance(other, dict) and isinstance(done.value, dict):
                done.value |= {key: item for key, item in other.items() if key not in done.value}
        value = done.value
        if done.repeated and isinstance(value, dict):
            value = RepeatedNames([*done.repeated, *value.items()])
        if done.anchor:
            self._anchors[done.anchor] = (value, done.size, done.height)
        self._put(value, done.size, done.height, done.line)

    def _scalar(self, event: Any, line: int) -> None:
        parent = self._stack[-1] if self._stack else None
        if parent and isinstance(parent.value, dict) and not parent.has_key:
            # A key is its text, whatever it would be as a value: 200, on and null name responses
            # and properties.
            parent.key = MERGE if event.value == "<<" and not event.style else event.value
            parent.has_key = True
            parent.size += len(event.value)
            if event.value in parent.value:
                parent.repeated.append((event.value, None))
            return
        plain = event.tag is None and event.implicit[0]
        if not plain and event.tag not in (None, "!", f"{CORE}str"):
            self._fail(
                f"the tag {event.tag} has no meaning in JSON; write the value plainly or in quotes",
                line,
            )
        value = _plain_value(event.value) if plain else event.value
        size = 1 + len(event.value)
        if event.anchor:
            self._anchors[event.anchor] = (value, size, 0)
        self._put(value, size, 0, line)

    def _put(self, value: Any, size: int, height: int, line: int) -> None:
        if not self._stack:
            self.value = value
            return
        parent = self._stack[-1]
        parent.size += size
        parent.height = max(parent.height, height + 1)
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
