"""Settings without effect in a release: a misspelt `deny` rule leaves open what it should close.

Also the tools of a release that the gateway cannot call.
"""

from collections.abc import Collection, Iterator

from pegboard.records import Tool
from pegboard.serve.access.clients import RULE_VALUES, Clients, matches_pattern, matches_rule
from pegboard.serve.access.views import Entry
from pegboard.serve.settings import Rule, ServeSettings


def settings_without_effect(
    clients: Clients, settings: ServeSettings, tools: Collection[Tool]
) -> list[str]:
    """Return a line for each rule or pattern that no tool of the release matches."""
    values_by_field = {
        field: {value for tool in tools for value in values_of(tool)}
        for field, values_of in RULE_VALUES.items()
    }
    lines: list[str] = []
    for place, rule in _rules(clients, settings):
        problems = [
            f"{place}.{field}: {pattern!r:.200} matches no {field} of the release"
            for field, patterns in rule
            for pattern in patterns or ()
            if not any(matches_pattern(value, pattern) for value in values_by_field[field])
        ]
        if not problems and not any(matches_rule(rule, tool) for tool in tools):
            problems = [f"{place}: no tool fits all its fields"]
        lines += problems
    return lines


def _rules(clients: Clients, settings: ServeSettings) -> Iterator[tuple[str, Rule]]:
    """Yield the rules of clients, and other settings that refer to tools as rules, with places."""
    for name, client in clients.by_name.items():
        for kind, rules in (("allow", client.allow or ()), ("deny", client.deny)):
            for number, rule in enumerate(rules):
                yield f"serve.clients.{name}.{kind}[{number}]", rule
    if settings.pinned:
        yield "serve.pinned", Rule(tool=settings.pinned)
    for place, names in (("serve.python", settings.python), ("serve.apis", tuple(settings.apis))):
        if names:
            yield place, Rule(catalog=names)


def tools_not_offered(tools: Collection[Entry]) -> list[str]:
    """Return a line for each agent with tools that the gateway cannot call; none for a gateway
    that can call no tool at all, which is for searching.
    """
    if all(tool.problem for tool in tools):
        return []
    lines: list[str] = []
    problem_tools = {tool.agent: tool for tool in tools if tool.problem and not tool.is_read}
    for agent, tool in problem_tools.items():
        count = sum(other.agent == agent and bool(other.problem) for other in tools)
        lines.append(f"{agent}: {count} tools are not offered, such as this: {tool.problem}")
    return lines
