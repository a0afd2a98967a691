"""Golden queries: requests whose right tools are known, as JSON lines.

{"query": "what are 30 dollars in yen?", "tools": ["convert_currency"]}
{"query": "book a table and invite Ana", "tools": ["book_table", "invite"], "kind": "parallel",
"steps": ["book a table", "invite Ana"]}

`tools` holds true names, `agent/name`, or ids; a list in it, as in [["google", "bing"], "send"],
holds alternatives, any of which is right. Optional: `steps`, the parts of the request; `kind`
(single, parallel, sequential, or a word of one's own); `history`, the messages before it; `calls`,
the right calls, each {"tool": ..., "arguments": {...}}; `id`; `origin`, where it is from (user,
logs, examples, generated); `by`, the model that wrote a generated one."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast, get_args

from pegboard.canonical import digest
from pegboard.errors import ConfigurationError

Origin = Literal["user", "logs", "examples", "generated"]
FIELDS = ("query", "tools", "steps", "kind", "history", "calls", "id", "origin", "by")
LISTS = ("tools", "steps", "history", "calls")
ALTERNATIVE = " | "
"""Separator of the names of alternative tools, any of which is right."""


@dataclass(frozen=True, slots=True)
class GoldenQuery:
    """A request and the tools that are right for it.

    Attributes:
        tools: their true names, `agent/name` or ids; `a | b` where either is right. Empty only
            where a query is one that no tool answers.
        kind: `single`, `parallel`, `sequential`, or what the file says; `single` or `multi`, by the
            number of tools, where it says nothing.
        history: the conversation before the request: messages with `role` and `content`.
        calls: the right calls of the tools, in order: mappings with `tool` and `arguments`.
    """

    query: str
    tools: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    kind: str = ""
    history: tuple[Mapping[str, str], ...] = ()
    calls: tuple[Mapping[str, Any], ...] = ()
    id: str = ""
    origin: Origin = "user"
    by: str = ""

    def __post_init__(self) -> None:
        if not self.kind:
            object.__setattr__(self, "kind", "single" if len(set(self.tools)) <= 1 else "multi")
        if not self.id:
            object.__setattr__(
                self, "id", digest(self.query, sorted(self.tools), list(self.history))[:12]
            )

    @property
    def names(self) -> list[str]:
        """All names in `tools`, also those of alternatives."""
        return [name for tool in self.tools for name in tool.split(ALTERNATIVE)]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON values of a line, without empty fields."""
        values: dict[str, Any] = {name: getattr(self, name) for name in FIELDS}
        values["tools"] = [
            tool.split(ALTERNATIVE) if ALTERNATIVE in tool else tool for tool in self.tools
        ]
        return {
            name: list(value) if name in LISTS else value for name, value in values.items() if value
        }


@dataclass(frozen=True, slots=True)
class Needed:
    """What one query needs, among the tools of a release.

    Attributes:
        tools: for each tool that the query names, the ids of those it may mean: several tools may
            share a name, and any of them will do.
        unknown: the names and ids that no tool has.
    """

    tools: Mapping[str, frozenset[str]]
    unknown: tuple[str, ...] = ()

    @property
    def labels(self) -> frozenset[str]:
        """One label for each tool that the query names, also for those that no tool has."""
        return frozenset((*self.tools, *self.unknown))

    def labelled(self, ranking: Iterable[tuple[str, float]]) -> list[tuple[str, float]]:
        """A ranking of ids, with the query's own name in place of the first tool it means."""
        label_of = {tool: name for name, ids in self.tools.items() for tool in ids}
        seen: set[str] = set()
        labelled: list[tuple[str, float]] = []
        for tool, score in ranking:
            label = label_of.get(tool)
            free = label is not None and label not in seen
            seen.add(label if label is not None and free else tool)
            labelled.append((label if label is not None and free else f"id:{tool}", score))
        return labelled


class ToolNames:
    """The tools of a release by their names in golden queries: id, true name or `agent/name`.

    Args:
        tools: id, true name and agent's name of every tool.
    """

    def __init__(self, tools: Iterable[tuple[str, str, str]]) -> None:
        self._ids: dict[str, set[str]] = {}
        self.catalogs: dict[str, str] = {}
        for identity, name, agent in tools:
            for called in {identity, name, f"{agent}/{name}"}:
                self._ids.setdefault(called, set()).add(identity)
            self.catalogs[identity] = identity.partition("/")[0]

    def resolve(self, names: Iterable[str]) -> Needed:
        """The tools that names mean; an id means its tool only, whatever else has that name."""
        tools: dict[str, frozenset[str]] = {}
        unknown: list[str] = []
        for name in dict.fromkeys(names):
            ids = frozenset[str]().union(*map(self._ids_of, name.split(ALTERNATIVE)))
            if not ids:
                unknown.append(name)
            elif ids not in tools.values():  # the same tool, called by its name and by its id
                tools[name] = ids
        return Needed(tools, tuple(unknown))

    def _ids_of(self, name: str) -> Iterable[str]:
        return (name,) if name in self.catalogs else self._ids.get(name, ())


def read_queries(path: str | Path, *, answerable: bool = True) -> list[GoldenQuery]:
    """Read the golden queries of a file of JSON lines.

    Args:
        answerable: True if every query must name its tools; False if none may.

    Raises ConfigurationError with every invalid line.
    """
    queries, problems = read_problems(Path(path), answerable=answerable)
    if problems:
        raise golden_error(str(path), problems)
    return queries


def golden_error(what: str, problems: Sequence[str]) -> ConfigurationError:
    """Return the error for invalid files of golden queries."""
    expected = (
        'Expected lines such as {"query": "what are 30 dollars in yen?", "tools": '
        '["convert_currency"]}; those that nothing answers have a query only.'
    )
    return ConfigurationError.from_problems(what, problems, expected)


def write_queries(path: str | Path, queries: Iterable[GoldenQuery]) -> None:
    """Write the queries as JSON lines, as a whole or not at all.

    Raises ConfigurationError if the file cannot be written.
    """
    write_lines(path, (query.to_dict() for query in queries))


def write_lines(path: str | Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows as JSON lines, as a whole or not at all; raises as `write_queries` does."""
    path = Path(path)
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    beside = path.with_name(f".{path.name}.new")
    try:
        beside.write_text(text, "utf-8")
        beside.replace(path)
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be written: {error.strerror}. Choose a folder that can be."
        ) from error


def read_problems(path: Path, *, answerable: bool = True) -> tuple[list[GoldenQuery], list[str]]:
    """Return the valid queries of a file, and the problems of its other lines, by line number."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        return [], [f"{path} cannot be read: {reason}. Expected a file of UTF-8 text."]
    queries: list[GoldenQuery] = []
    problems: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            value: Any = json.loads(line)
        except ValueError as error:
            problems.append(f"{path}:{number}: not JSON: {error}")
            continue
        wrong = list(_wrong(value, answerable))
        problems += [f"{path}:{number}: {problem}" for problem in wrong]
        if not wrong:
            queries.append(_query(value))
    return queries, problems


def _query(value: Mapping[str, Any]) -> GoldenQuery:
    lists: dict[str, Any] = {name: tuple(value.get(name, ())) for name in LISTS}
    lists["tools"] = tuple(
        tool if isinstance(tool, str) else ALTERNATIVE.join(tool) for tool in lists["tools"]
    )
    return GoldenQuery(
        query=value["query"],
        **lists,
        **{name: value[name] for name in ("kind", "id", "origin", "by") if value.get(name)},
    )


def _wrong(value: Any, answerable: bool) -> Iterable[str]:
    if not isinstance(value, dict):
        yield f"expected a JSON object, got {json.dumps(value)[:60]}"
        return
    row = cast("dict[str, Any]", value)
    for name, (valid, expected) in CHECKS.items():
        if (name in row or name == "query") and not valid(row.get(name)):
            yield f"{name}: expected {expected} (got {row.get(name)!r:.60})"
    tools = row.get("tools")
    if answerable and not (tools and _all(tools, lambda tool: _is_text(tool) or _texts(tool))):
        yield f"tools: expected a list of names or ids (got {tools!r:.60})"
    if not answerable and tools:
        yield f"tools: expected none for a query that no tool answers (got {tools!r:.60})"
    for other in sorted(row.keys() - set(FIELDS)):
        yield f"{other}: there is no such field"


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _all(value: Any, valid: Callable[[Any], bool]) -> bool:
    return isinstance(value, list) and all(map(valid, cast("list[Any]", value)))


def _texts(value: Any) -> bool:
    return bool(value) and _all(value, _is_text)


def _is_call(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() <= {"tool", "arguments"}
        and _is_text(value.get("tool"))
        and isinstance(value.get("arguments", {}), dict)
    )


def _is_message(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.get("role") in ("system", "user", "assistant")
        and isinstance(value.get("content"), str)
    )


CHECKS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "query": (_is_text, "a text"),
    "steps": (lambda value: _all(value, _is_text), "a list of texts"),
    **dict.fromkeys(("kind", "id", "by"), (_is_text, "a text")),
    "origin": (lambda value: value in get_args(Origin), f"one of {', '.join(get_args(Origin))}"),
    "history": (
        lambda value: _all(value, _is_message),
        'messages such as {"role": "user", "content": "hello"}',
    ),
    "calls": (
        lambda value: _all(value, _is_call),
        'calls such as {"tool": "convert", "arguments": {"amount": 30}}',
    ),
}
"""For each field except `tools`, a check of its value and the expected value as text."""
