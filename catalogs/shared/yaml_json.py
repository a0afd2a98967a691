"""YAML as JSON: an untrusted YAML text as JSON values, by the rules of
YAML 1.2.

PyYAML's loaders follow YAML 1.1: `on` is true there, 2024-01-01 a date, and a status code 200 a key
that JSON cannot hold. So they only compose nodes here. What is wrong with one value is left to
whoever uses it, as in `parse_json`; the time and memory of a document are limited by the process
that lists its source."""

import re
from collections.abc import Callable
from functools import cache
from typing import Any

from pegboard.errors import SourceError
from pegboard.foreign.files import RepeatedNames, Unreadable
from pegboard.foreign.limits import MAX_DEPTH

CORE = "tag:yaml.org,2002:"
PLAIN: dict[str, tuple[str, str]] = {
    "null": (r"~|null|Null|NULL|", "~nN"),
    "bool": (r"true|True|TRUE|false|False|FALSE", "tTfF"),
    "int": (r"[-+]?(0|[1-9][0-9]{0,399})", "-+0123456789"),
    "float": (
        r"[-+]?(0|[1-9][0-9]*)?(\.[0-9]+|[0-9]\.)([eE][-+]?[0-9]+)?"
        r"|[-+]?(0|[1-9][0-9]*)[eE][-+]?[0-9]+",
        "-+.0123456789",
    ),
    "merge": ("<<", "<"),
}
"""What a scalar without quotes is: its form, and the characters with which it may begin."""
VALUES: dict[str, Callable[[str], Any]] = {
    "null": lambda _: None,
    "bool": lambda text: text.lower() == "true",
    "int": int,
    "float": lambda text: text if abs(float(text)) == float("inf") else float(text),
    "str": str,
}


def parse_yaml(text: str, where: str) -> Any:
    """Parse a YAML text of one document as JSON, or raise SourceError that names the line."""
    import yaml

    try:
        node = yaml.compose(text, _loader())
        return None if node is None else _Values(where).of(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise SourceError(
            f"{where} is not YAML: {error.problem}{place}. Correct that place."
        ) from error
    except (yaml.YAMLError, UnicodeError) as error:
        reason = " ".join(str(error).split())
        raise SourceError(f"{where} is not YAML: {reason}. Save it again as UTF-8.") from error


@cache
def _loader() -> Any:
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):
        yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012  as PyYAML has it

    for kind, (form, first) in PLAIN.items():
        starts = ["", *first] if kind == "null" else [*first]
        Loader.add_implicit_resolver(f"{CORE}{kind}", re.compile(rf"(?:{form})\Z"), starts)
    return Loader


class _Values:
    """The values of a document's nodes; those of aliases are shared."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._made: dict[Any, Any] = {}
        self._open = set[Any]()

    def of(self, node: Any) -> Any:
        if node in self._made:
            return self._made[node]
        if node in self._open:
            self._fail(node, "an alias stands within the value that it names")
        kind = node.tag.removeprefix(CORE)
        if node.id == "scalar":
            return self._scalar(node, kind)
        if kind not in ("map", "seq"):
            self._fail(node, f"the tag {node.tag} has no meaning in JSON")
        if len(self._open) >= MAX_DEPTH:
            return Unreadable(f"a part nested deeper than {MAX_DEPTH} levels")
        self._open.add(node)
        value = self._mapping(node) if kind == "map" else [self.of(item) for item in node.value]
        self._open.discard(node)
        self._made[node] = value
        return value

    def _scalar(self, node: Any, kind: str) -> Any:
        try:
            return VALUES[kind](node.value)
        except (KeyError, ValueError):
            self._fail(node, f"the tag {node.tag} has no meaning in JSON; quote the value")

    def _mapping(self, node: Any) -> dict[str, Any]:
        pairs, merged = list[tuple[str, Any]](), dict[str, Any]()
        for key, item in node.value:
            if key.id != "scalar":
                self._fail(key, "a key is a list or a mapping, which JSON does not have")
            value = self.of(item)
            if key.tag == f"{CORE}merge":
                for other in reversed(value if isinstance(value, list) else [value]):
                    merged |= other if isinstance(other, dict) else {}
            else:
                # Whatever it would be as a value: 200, on and null name responses and properties.
                pairs.append((key.value, value))
        own = dict(pairs)
        return RepeatedNames(pairs) if len(own) < len(pairs) else merged | own

    def _fail(self, node: Any, what: str) -> None:
        line = node.start_mark.line + 1
        raise SourceError(f"{self._where} cannot be read as JSON in YAML: {what}, at line {line}.")
