"""The golden queries that a configuration names, and which examples they hold out of the index.

A query that stands in the index finds itself, and says nothing about those to come. So queries of
origin `examples` in the configured files are held out: they are removed from the examples of their
tools before anything is composed or shown to an LLM. Queries are equal if they have the
same words.

Example requests from use (`[examples]`) are golden queries by their format, so nothing keeps one
from being both: a request that is nearly a configured golden query is not learned, whatever its
tool. No destructive tool learns any (`revise.py`)."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from pegboard.errors import ConfigurationError
from pegboard.evaluation.golden import (
    GoldenQuery,
    ToolNames,
    golden_error,
    read_problems,
    read_queries,
)
from pegboard.formatting import count_text
from pegboard.records import Tool
from pegboard.text.words import singular_words
from tasks.enrichment.near_duplicates import NearDuplicates
from tasks.lake.files import Lake
from tasks.lake.snapshot_rows import snapshot_rows
from tasks.settings.configuration import Configuration

Learned = Mapping[str, Mapping[str, tuple[str, ...]]]
"""Requests by catalog and tool id."""
HeldOut = Mapping[str, Mapping[str, frozenset[str]]]
"""The queries that are held out, as their words, by catalog and tool id."""


def read_golden(configuration: Configuration) -> tuple[GoldenQuery, ...] | None:
    """Return the golden queries of `[golden]`; None if it names none.

    Raises:
        ConfigurationError: lists every invalid line.
    """
    settings = configuration.golden
    if settings is None:
        return None
    file = configuration.base / settings.queries
    queries, problems = read_problems(file)
    if not problems and len(queries) < settings.min_queries:
        problems.append(
            f"{file} has {count_text(len(queries), 'query', 'queries')}; expected "
            f"{settings.min_queries} or more, since a mean of fewer is chance. Add some, or lower "
            f"min_queries"
        )
    if problems:
        raise golden_error(f"[golden] of {configuration.file}", problems)
    return tuple(queries)


def configured_files(configuration: Configuration) -> list[Path]:
    """Return the files of golden queries that `[golden]` and `[gate]` name, each once."""
    golden = configuration.golden
    gate = configuration.gate
    names = [golden.queries if golden else None]
    names += [gate.queries, gate.canaries] if gate else []
    return [configuration.base / name for name in dict.fromkeys(names) if name is not None]


def held_out(configuration: Configuration, lake: Lake, snapshots: Mapping[str, str]) -> HeldOut:
    """Return what is held out of the tools of these snapshots (catalog -> digest).

    A name that several tools have means each of them, as in an evaluation. Snapshots are read only
    if something is held out.
    """
    queries = configured_queries(configuration)
    queries = [query for query in queries if query.origin == "examples"]
    if not queries:
        return {}
    names = tool_names(lake, snapshots)
    words: dict[str, dict[str, set[str]]] = {}
    for query in queries:
        for tool in frozenset[str]().union(*names.resolve(query.tools).tools.values()):
            catalog = words.setdefault(names.catalogs[tool], {})
            catalog.setdefault(tool, set()).add(as_words(query.query))
    return {
        catalog: {tool: frozenset(queries) for tool, queries in tools.items()}
        for catalog, tools in words.items()
    }


def remaining_examples(tool: Tool, held_out_words: Collection[str]) -> tuple[str, ...]:
    """Return the examples of a tool that are not held out."""
    return tuple(example for example in tool.examples if as_words(example) not in held_out_words)


def as_words(text: str) -> str:
    """Return a query by its words: case and punctuation make no other query of it."""
    return " ".join(singular_words(text)) or text.strip()


def queries_to_extend(file: Path, *, add: bool) -> list[GoldenQuery]:
    """Return the queries of a file to which others are added; none if it does not exist.

    Raises:
        ConfigurationError: it exists and `add` is false, or its folder is missing; raised before
            anything is paid for.
    """
    if not file.parent.is_dir():
        raise ConfigurationError(
            f"{file} cannot be written: the folder {file.parent} does not exist. Create it first."
        )
    if not file.exists():
        return []
    if not add:
        raise ConfigurationError(
            f"{file} already exists. Choose another file, or add --add to keep its queries."
        )
    return read_queries(file, agents=True)


def configured_queries(configuration: Configuration) -> list[GoldenQuery]:
    """Return the queries of all files that `[golden]` and `[gate]` name.

    Raises:
        ConfigurationError: lists every invalid line.
    """
    files = [read_problems(file) for file in configured_files(configuration)]
    if problems := [problem for _, wrong in files for problem in wrong]:
        raise golden_error(f"[golden] or [gate] of {configuration.file}", problems)
    return [query for queries, _ in files for query in queries]


def tool_names(lake: Lake, snapshots: Mapping[str, str]) -> ToolNames:
    """Return the tools of these snapshots (catalog -> digest) by what people call them."""
    agents = dict(snapshot_rows(lake, snapshots, "agents", ["id", "name"]).rows())
    tools: Sequence[tuple[str, str, str]] = snapshot_rows(
        lake, snapshots, "tools", ["id", "name", "agent"]
    ).rows()
    return ToolNames((identity, name, agents[agent]) for identity, name, agent in tools)


def learned_examples(
    configuration: Configuration, lake: Lake, snapshots: Mapping[str, str]
) -> Learned:
    """Return the requests of `[examples]` for the tools of these snapshots (catalog -> digest),
    without those that are golden queries.

    Raises:
        ConfigurationError: lists every invalid line of the files involved.
    """
    settings = configuration.examples
    if settings is None:
        return {}
    queries = read_queries(configuration.base / settings.queries)
    texts = [query.query for query in configured_queries(configuration)]
    held_out_words = {as_words(text) for text in texts}
    near = NearDuplicates(texts)
    names = tool_names(lake, snapshots)
    learned: dict[str, dict[str, tuple[str, ...]]] = {}
    for query in queries:
        if as_words(query.query) in held_out_words or near.near(query.query):
            continue
        for tool in frozenset[str]().union(*names.resolve(query.tools).tools.values()):
            tools = learned.setdefault(names.catalogs[tool], {})
            tools[tool] = (*tools.get(tool, ()), query.query)
    return learned


def with_learned(tool: Tool, learned: Iterable[str]) -> tuple[str, ...]:
    """Return the examples of a tool and, behind them, learned ones with other words."""
    words = {as_words(text) for text in tool.examples}
    more = {as_words(text): text for text in learned}
    return (*tool.examples, *(text for key, text in more.items() if key not in words))
