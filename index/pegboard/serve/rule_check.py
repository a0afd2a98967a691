"""Rules that match nothing of a release: a misspelt `deny` leaves open what it means to close."""

from collections.abc import Collection, Iterator, Mapping
from fnmatch import fnmatchcase

from pegboard.errors import did_you_mean
from pegboard.serve.access import AccessRules, Ruled, matches
from pegboard.serve.settings import Rule, ServeSettings
from pegboard.serve.views import Entry


def idle_rules(
    rules: AccessRules, pinned: Collection[str], tools: Collection[Ruled]
) -> Iterator[str]:
    """Yield each rule and each pattern without a tool, with its place in pegboard.toml.

    Args:
        pinned: patterns of `[serve] pinned`.
        tools: of the whole release.
    """
    values = {
        "agent": {tool.agent for tool in tools},
        "catalog": {tool.catalog for tool in tools},
        "tag": {tag for tool in tools for tag in tool.tags},
        "tool": {tool.id for tool in tools},
    }
    for name, client in rules.clients.items():
        for kind, own in (("allow", client.allow or ()), ("deny", client.deny)):
            for number, rule in enumerate(own):
                yield from _idle(f"serve.clients.{name}.{kind}[{number}]", rule, values, tools)
    yield from _idle_patterns("serve.pinned", "tool", tuple(pinned), values["tool"])


def idle_names(serve: ServeSettings, tools: Collection[Entry]) -> Iterator[str]:
    """Yield catalogs of `[serve]` that the release does not have."""
    catalogs = {tool.catalog for tool in tools}
    named = [("serve.python", name) for name in serve.python]
    for place, name in [*named, *(("serve.apis", name) for name in serve.apis)]:
        if name not in catalogs:
            hint = did_you_mean(name, catalogs)
            yield f"{place}: {name!r:.200} is no catalog of the release{hint}"


def uncallable(tools: Collection[Entry]) -> Iterator[str]:
    """Yield why tools are not offered that the gateway cannot call, once for each agent; nothing
    for a gateway that can call none, and is there to search.
    """
    if all(tool.problem for tool in tools):
        return
    problems = {tool.agent: tool for tool in tools if tool.problem}
    for agent, tool in problems.items():
        count = sum(other.agent == agent and bool(other.problem) for other in tools)
        yield f"{agent}: {count} tools are not offered, such as this: {tool.problem}"


def _idle(
    place: str, rule: Rule, values: Mapping[str, set[str]], tools: Collection[Ruled]
) -> Iterator[str]:
    problems = [
        problem
        for field, patterns in rule
        for problem in _idle_patterns(f"{place}.{field}", field, patterns or (), values[field])
    ]
    if not problems and not any(matches(rule, tool) for tool in tools):
        problems = [f"{place}: no tool fits all its fields"]
    yield from problems


def _idle_patterns(
    place: str, field: str, patterns: tuple[str, ...], values: set[str]
) -> Iterator[str]:
    for pattern in patterns:
        if pattern not in values and not any(fnmatchcase(value, pattern) for value in values):
            # Ids of tools are too many to compare each with a name.
            hint = did_you_mean(pattern, values) if field != "tool" else ""
            yield f"{place}: {pattern!r:.200} matches no {field} of the release{hint}"
