"""Example requests from use (`[examples]`), which a build adds to those of the catalogs.

They are golden queries by their format, so nothing keeps one from being both: a request that is
nearly one of the configured golden queries is left out, whatever its tool. Otherwise the queries
would find themselves."""

from collections.abc import Iterable, Mapping

from pegboard.errors import ConfigurationError
from pegboard.evaluation.golden import golden_problems, read_problems
from pegboard.records import Tool
from tasks.enrichment.near_duplicates import NearDuplicates
from tasks.golden.reading import as_words, configured_files, tool_names
from tasks.lake.files import Lake
from tasks.settings.configuration import Configuration

Learned = Mapping[str, Mapping[str, tuple[str, ...]]]
"""Requests by catalog and tool id."""


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
    queries, problems = read_problems(configuration.base / settings.queries)
    texts: list[str] = []
    for file in configured_files(configuration):
        golden, wrong = read_problems(file)
        problems += wrong
        texts += [query.query for query in golden]
    if problems:
        place = f"[examples] of {configuration.file}"
        raise ConfigurationError(golden_problems(place, problems))
    held, near = {as_words(text) for text in texts}, NearDuplicates(texts)
    names = tool_names(lake, snapshots)
    learned: dict[str, dict[str, tuple[str, ...]]] = {}
    for query in queries:
        if as_words(query.query) in held or near.near(query.query):
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
