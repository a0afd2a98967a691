"""Golden queries from the catalogs' own example requests, or from logged requests: some are picked,
and held out of the index from then on (`reading.py`).

Which are picked follows from the words of each alone, so that a tool that comes or
goes changes nothing for the others."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pegboard.canonical import digest
from pegboard.errors import ConfigurationError
from pegboard.evaluation.golden import GoldenQuery
from pegboard.records import Tool
from tasks.enrichment.near_duplicates import NearDuplicates
from tasks.golden.reading import as_words
from tasks.lake.files import Lake
from tasks.lake.snapshot_rows import tools_of
from tasks.settings.configuration import Configuration

MAX_CHARACTERS = 2_000
"""Maximum length of an example that counts as a request, in characters."""
MIN_LEFT = 1
"""Minimum examples that stay with each tool."""
SEED = 0


@dataclass(frozen=True, slots=True)
class PickedExamples:
    """The golden queries that were picked, and from what.

    Attributes:
        queries: in the order of their tools.
        tools: how many tools have examples.
        examples: how many examples these have; of those with the same words one counts.
        duplicates: how many cannot be picked: another tool has the same, or a near-duplicate would
            stay with the tool.
    """

    queries: tuple[GoldenQuery, ...]
    tools: int
    examples: int
    duplicates: int


def tools_with_examples(configuration: Configuration, snapshots: Mapping[str, str]) -> list[Tool]:
    """Return the tools of snapshots that have examples, overrides applied. Held-out examples are
    included.

    Args:
        snapshots: catalog -> digest, of all catalogs.

    Raises:
        ConfigurationError: no tool has an example.
    """
    lake = Lake(configuration.uri)
    tools: list[Tool] = []
    for catalog, snapshot in snapshots.items():
        tools += [
            tool
            for original in tools_of(lake, {catalog: snapshot})
            if (tool := _overridden(configuration, original)) is not None and tool.examples
        ]
    if not tools:
        raise ConfigurationError(
            f"No tool of {configuration.file} has example requests. Sources of records take them "
            f"from a column (`examples`), "
            "and [overrides] gives a tool its own."
        )
    return tools


def pick_examples(
    tools: Sequence[Tool],
    share: float = 0.2,
    *,
    existing: Iterable[GoldenQuery] = (),
) -> PickedExamples:
    """Pick a share of each tool's examples as golden queries.

    Args:
        share: above 0, at most 1; of a tool with few examples sometimes one more is picked,
            sometimes one less.
        existing: golden queries that count as picked, and are not picked again.

    Raises:
        ConfigurationError: the share is out of range.
    """
    _check_share(share)
    texts = {
        tool.id: {as_words(text): text for text in reversed(tool.examples) if text.strip()}
        for tool in tools
    }
    free = _free_examples(texts)
    picked_words = {as_words(query.query) for query in existing}
    queries: list[GoldenQuery] = []
    for tool, examples in sorted(texts.items()):
        picked_count = len(picked_words & examples.keys())
        exact = share * len(examples)
        target = int(exact) + (int(digest(SEED, tool)[:8], 16) / 16**8 < exact - int(exact))
        more = max(0, min(target, len(examples) - MIN_LEFT) - picked_count)
        candidates = sorted(free[tool] - picked_words, key=lambda words: digest(SEED, words))
        chosen = sorted(" ".join(examples[words].split()) for words in candidates[:more])
        queries += [GoldenQuery(text, (tool,), origin="examples") for text in chosen]
    count = sum(map(len, texts.values()))
    duplicates = count - sum(map(len, free.values()))
    return PickedExamples(tuple(queries), len(texts), count, duplicates)


def suggest_queries(
    requests: Iterable[GoldenQuery], share: float, *, existing: Iterable[GoldenQuery] = ()
) -> list[GoldenQuery]:
    """Pick a share of logged requests as golden queries, the same ones every time.

    Args:
        share: above 0, at most 1.
        existing: golden queries whose words are not picked again.

    Raises:
        ConfigurationError: the share is out of range.
    """
    _check_share(share)
    taken = {as_words(query.query) for query in existing}
    return [
        query
        for query in requests
        if (words := as_words(query.query)) not in taken
        and int(digest(SEED, words)[:8], 16) / 16**8 < share
    ]


def _check_share(share: float) -> None:
    if not 0 < share <= 1:
        raise ConfigurationError(f"The share is {share:g}; expected one above 0, at most 1.")


def _free_examples(texts: Mapping[str, Mapping[str, str]]) -> dict[str, set[str]]:
    """By tool the examples, as words, that no other tool has and that have no near-duplicate."""
    owners = Counter(words for examples in texts.values() for words in examples)
    free: dict[str, set[str]] = {}
    for tool, examples in texts.items():
        index = NearDuplicates(list(examples.values()))
        free[tool] = {
            words
            for words, text in examples.items()
            if owners[words] == 1 and len(text) <= MAX_CHARACTERS and len(index.near(text)) < 2
        }
    return free


def _overridden(configuration: Configuration, tool: Tool) -> Tool | None:
    """The tool with the examples of its override; None if it or its agent is skipped."""
    override = configuration.overrides.get(tool.id)
    agent_override = configuration.overrides.get(tool.agent)
    if (override and override.skip) or (agent_override and agent_override.skip):
        return None
    if override is None or override.examples is None:
        return tool
    return replace(tool, examples=override.examples)
