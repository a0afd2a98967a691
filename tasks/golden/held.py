"""Golden queries made from the catalogs' own example requests: they are held out of the index that
they judge.

A request that stands in the index finds itself, and says nothing of those to come. So those of
origin `examples` in the configured files are taken from the examples of their tools before anything
is composed, filtered or shown to an LLM. Equal is what has the same words."""

from collections.abc import Collection, Mapping, Sequence

from pegboard.errors import ConfigurationError
from pegboard.evaluation.golden import GoldenQuery, ToolNames, golden_problems, read_problems
from pegboard.records import Tool
from pegboard.search.text import tokenize
from tasks.lake.files import Lake
from tasks.lake.snapshot_rows import snapshot_rows
from tasks.settings.configuration import Configuration

HeldOut = Mapping[str, Mapping[str, frozenset[str]]]
"""By catalog and tool id the requests that are held out, each as its words."""


def held_queries(configuration: Configuration) -> list[GoldenQuery]:
    """The golden queries of `[golden]` and `[gate]` that are examples of their tools, each once.

    Raises ConfigurationError with every line of these files that is not as expected.
    """
    golden, gate = configuration.golden, configuration.gate
    files = [
        golden.queries if golden else None,
        gate.queries if gate else None,
        gate.canaries if gate else None,
    ]
    found: dict[tuple[str, tuple[str, ...]], GoldenQuery] = {}
    problems: list[str] = []
    for file in dict.fromkeys(one for one in files if one is not None):
        queries, wrong = read_problems(configuration.base / file)
        problems += wrong
        found |= {(one.query, one.tools): one for one in queries if one.origin == "examples"}
    if problems:
        raise ConfigurationError(
            golden_problems(f"[golden] or [gate] of {configuration.file}", problems)
        )
    return list(found.values())


def held_out(configuration: Configuration, lake: Lake, snapshots: Mapping[str, str]) -> HeldOut:
    """What has to be taken from the examples of which tools of these snapshots (catalog -> digest).

    A name that several tools have means each of them, as in an evaluation. Nothing of the snapshots
    is read where nothing is held out."""
    queries = held_queries(configuration)
    if not queries:
        return {}
    names = names_in(lake, snapshots)
    held: dict[str, dict[str, set[str]]] = {}
    for query in queries:
        for ids in names.resolve(query.tools).tools.values():
            for tool in ids:
                held.setdefault(names.catalogs[tool], {}).setdefault(tool, set()).add(
                    as_words(query.query)
                )
    return {
        catalog: {tool: frozenset(words) for tool, words in tools.items()}
        for catalog, tools in held.items()
    }


def left_examples(tool: Tool, held: Collection[str]) -> tuple[str, ...]:
    """The examples of a tool that are not held out."""
    return tuple(example for example in tool.examples if as_words(example) not in held)


def as_words(text: str) -> str:
    """A request by its words: case and punctuation make no other request of it."""
    return " ".join(tokenize(text)) or text.strip()


def names_in(lake: Lake, snapshots: Mapping[str, str]) -> ToolNames:
    """The tools of snapshots (catalog -> digest) by what golden queries call them."""
    agents = dict(snapshot_rows(lake, snapshots, "agents", ["id", "name"]).rows())
    tools: Sequence[tuple[str, str, str]] = snapshot_rows(
        lake, snapshots, "tools", ["id", "name", "agent"]
    ).rows()
    return ToolNames((identity, name, agents[agent]) for identity, name, agent in tools)
