"""Rules that match nothing of a release: a misspelt `deny` leaves open what it means to close."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields
from fnmatch import fnmatchcase

from pegboard.errors import did_you_mean
from pegboard.serve.access import AccessRules, Rule, Ruled
from pegboard.serve.calls.references import resolved
from pegboard.serve.calls.results import CallProblem
from pegboard.serve.catalogue import Entry
from pegboard.serve.settings import ServeSettings


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
    """Yield catalogs and security schemes of `[serve]` that the release has not, and credentials
    that are not set.
    """
    catalogs = {tool.catalog for tool in tools}
    named = [("serve.python", name) for name in serve.python]
    for place, name in [*named, *(("serve.apis", name) for name in serve.apis)]:
        if name not in catalogs:
            hint = did_you_mean(name, catalogs)
            yield f"{place}: {name!r:.200} is no catalog of the release{hint}"
    for name, api in serve.apis.items():
        schemes = {scheme for tool in tools if tool.catalog == name for scheme in tool.schemes}
        for scheme, reference in api.credentials.items():
            place = f"serve.apis.{name}.credentials.{scheme}"
            if name in catalogs and scheme not in schemes:
                hint = did_you_mean(scheme, schemes)
                yield f"{place}: no operation of the catalog has this security scheme{hint}"
            try:
                resolved(reference)
            except CallProblem as problem:
                yield f"{place}: {problem}"


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
    patterns = {field.name: getattr(rule, field.name) for field in fields(rule)}
    problems = [
        problem
        for field, own in patterns.items()
        for problem in _idle_patterns(f"{place}.{field}", field, own, values[field])
    ]
    if not problems and not any(rule.matches(tool) for tool in tools):
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
