"""Golden queries: requests whose right tools are known, as JSON lines.

{"query": "what are 30 dollars in yen?", "tools": ["convert_currency"]}
{"query": "book a table and invite Ana", "tools": ["book_table", "invite"], "kind": "parallel",
"steps": ["book a table", "invite Ana"]}

`tools` holds true names, `agent/name`, or ids; a list in it, as in [["google", "bing"], "send"],
holds alternatives, any of which is right. `agents` holds names or ids of agents in the same way,
beside or instead of tools, for searches for agents. Optional: `steps`, the parts of the request;
`kind` (single, parallel, sequential, or a word of one's own); `history`, the messages before it;
`calls`, the right calls, each {"tool": ..., "arguments": {...}}; `id`; `origin`, where it is from
(user, logs, examples, generated); `by`, the model that wrote a generated one."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast, get_args

from pegboard.canonical import digest
from pegboard.errors import ConfigurationError

Origin = Literal["user", "logs", "examples", "generated"]
FIELDS = ("query", "tools", "agents", "steps", "kind", "history", "calls", "id", "origin", "by")
LISTS = ("tools", "agents", "steps", "history", "calls")
NAMES = ("tools", "agents")
"""The fields that hold names, a list where any of several is right."""
MAX_REQUEST = 100_000
"""Characters of a query; an encoder reads a small part of so many."""
ALTERNATIVE = " | "
"""Separator of the names of alternative tools, any of which is right."""


@dataclass(frozen=True, slots=True)
class GoldenQuery:
    """A request and the tools that are right for it.

    Attributes:
        tools: their true names, `agent/name` or ids; `a | b` where either is right. Empty only
            where a query names agents alone, or is one that no tool answers.
        kind: `single`, `parallel`, `sequential`, or what the file says; `single` or `multi`, by the
            number of tools, where it says nothing.
        history: the conversation before the request: messages with `role` and `content`.
        calls: the right calls of the tools, in order: mappings with `tool` and `arguments`.
        agents: the right agents, by name or id; as `tools`. Where there are none, a search for
            agents has to find the owners of the tools.
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
    agents: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.kind:
            names = set(self.tools or self.agents)
            object.__setattr__(self, "kind", "single" if len(names) <= 1 else "multi")
        if not self.id:
            content = [self.query, sorted(self.tools), list(self.history)]
            if self.agents:
                content.append(sorted(self.agents))
            object.__setattr__(self, "id", digest(*content)[:12])

    @property
    def names(self) -> list[str]:
        """All names in `tools`, also those of alternatives."""
        return [name for tool in self.tools for name in tool.split(ALTERNATIVE)]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON values of a line, without empty fields."""
        values: dict[str, Any] = {name: getattr(self, name) for name in FIELDS}
        for field in NAMES:
            values[field] = [
                name.split(ALTERNATIVE) if ALTERNATIVE in name else name for name in values[field]
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


class AgentNames:
    """The agents of a release by their names in golden queries: id or name.

    Args:
        tools: id, true name and agent's name of every tool.
        agents: the names of agents by id.
    """

    def __init__(
        self, tools: Iterable[tuple[str, str, str]], agents: Iterable[tuple[str, str]]
    ) -> None:
        owners: dict[str, set[str]] = {}
        for tool, name, agent in tools:
            for called in (tool, name, f"{agent}/{name}"):
                owners.setdefault(called, set()).add(tool.rpartition("/")[0])
        self.ids: dict[str, set[str]] = {}
        for identity, name in agents:
            for called in (identity, name):
                self.ids.setdefault(called, set()).add(identity)
        self._owners = self.ids | owners  # a tool's name comes before an agent's

    def needed(self, query: GoldenQuery) -> Needed:
        """The agents that a query names, or else the owners of its tools.

        An owner may be meant by several names, so a name whose agents include all those of another
        is left out: whatever satisfies the smaller set satisfies it, too.
        """
        ids_of = self.ids if query.agents else self._owners
        sets: dict[str, frozenset[str]] = {}
        for name in query.agents or query.tools:
            parts = name.split(ALTERNATIVE)
            if ids := frozenset[str]().union(*(ids_of.get(part, ()) for part in parts)):
                sets[name] = ids
        smallest = {
            name: ids
            for name, ids in sets.items()
            if not any(other < ids for other in sets.values())
        }
        first = {ids: name for name, ids in reversed(smallest.items())}
        return Needed(
            {name: ids for name, ids in smallest.items() if first[ids] == name},
            tuple(name for name in query.agents or query.tools if name not in sets),
        )


def read_queries(
    path: str | Path, *, answerable: bool = True, agents: bool = False
) -> list[GoldenQuery]:
    """Read the golden queries of a file of JSON lines.

    Args:
        answerable: True if every query must name its tools; False if none may.
        agents: whether a query may name agents instead of tools.

    Raises ConfigurationError with every invalid line.
    """
    queries, problems = read_problems(Path(path), answerable=answerable, agents=agents)
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


def read_problems(
    path: Path, *, answerable: bool = True, agents: bool = False
) -> tuple[list[GoldenQuery], list[str]]:
    """Return the valid queries of a file, and the problems of its other lines, by line number.

    Arguments as of `read_queries`.
    """
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
        except (ValueError, RecursionError) as error:
            problems.append(f"{path}:{number}: not JSON: {error}")
            continue
        wrong = list(_wrong(value, answerable, agents))
        problems += [f"{path}:{number}: {problem}" for problem in wrong]
        if not wrong:
            queries.append(_query(value))
    return queries, problems


def _query(value: Mapping[str, Any]) -> GoldenQuery:
    lists: dict[str, Any] = {name: tuple(value.get(name, ())) for name in LISTS}
    for field in NAMES:
        lists[field] = tuple(
            name if isinstance(name, str) else ALTERNATIVE.join(name) for name in lists[field]
        )
    return GoldenQuery(
        query=value["query"],
        **lists,
        **{name: value[name] for name in ("kind", "id", "origin", "by") if value.get(name)},
    )


def _wrong(value: Any, answerable: bool, agents: bool) -> Iterable[str]:
    if not isinstance(value, dict):
        yield f"expected a JSON object, got {json.dumps(value)[:60]}"
        return
    row = cast("dict[str, Any]", value)
    for name, (valid, expected) in CHECKS.items():
        if (name in row or name == "query") and not valid(row.get(name)):
            yield f"{name}: expected {expected} (got {row.get(name)!r:.60})"
    if answerable:
        yield from _wrong_names(row, agents)
    else:
        for name in NAMES:
            if names := row.get(name):
                yield f"{name}: expected none for a query that no tool answers (got {names!r:.60})"
    for other in sorted(row.keys() - set(FIELDS)):
        yield f"{other}: there is no such field"


def _wrong_names(row: Mapping[str, Any], agents: bool) -> Iterable[str]:
    """Yield what is wrong with the tools and agents that a query names."""
    names_agents = bool(row.get("agents"))
    if names_agents and not _names(row["agents"]):
        yield f"agents: expected a list of names or ids (got {row['agents']!r:.60})"
    tools = row.get("tools")
    if tools is None and names_agents:
        if not agents:
            yield "tools: missing; queries that name agents alone are for `pegboard eval --agents`"
    elif not (tools and _names(tools)):
        yield f"tools: expected a list of names or ids (got {tools!r:.60})"


def _names(value: Any) -> bool:
    return _all(value, lambda name: _is_text(name) or _texts(name))


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_request(value: Any) -> bool:
    return _is_text(value) and len(value) <= MAX_REQUEST


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
    "query": (_is_request, f"a text of at most {MAX_REQUEST:,} characters"),
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
