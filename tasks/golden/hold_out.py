"""Golden queries from the catalogs' own example requests: some are taken, and held out of the index
from then on (`held.py`).

Which are taken follows from the seed and the words of each alone, so that a tool that comes or goes
changes nothing for the others."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pegboard.canonical import digest
from pegboard.errors import ConfigurationError
from pegboard.evaluation.golden import GoldenQuery
from pegboard.records import Tool
from tasks.golden.alike import AlikeTexts
from tasks.golden.held import as_words
from tasks.lake.files import Lake
from tasks.lake.snapshot_rows import tools_of
from tasks.settings.configuration import Configuration
from tasks.snapshot import list_source, stored_snapshot

LONGEST = 2_000
"""Characters of an example; a longer one is no request."""


@dataclass(frozen=True, slots=True)
class Picked:
    """The golden queries that were taken, and from what.

    Attributes:
        queries: in the order of their tools.
        tools: how many tools have examples.
        examples: how many examples these have; of those with the same words one counts.
        twins: how many could not be taken, since another tool has the same, or a nearly equal one
            would stay with the tool.
    """

    queries: tuple[GoldenQuery, ...]
    tools: int
    examples: int
    twins: int


def tools_with_examples(configuration: Configuration) -> list[Tool]:
    """The tools of all catalogs as they were last listed, or are listed now where a catalog never
    was; with what `[overrides]` say.

    Examples that are held out already are among theirs. Raises ConfigurationError if no tool has an
    example."""
    lake = Lake(configuration.uri)
    tools: list[Tool] = []
    for catalog in configuration.catalogs:
        stored = stored_snapshot(configuration, catalog)
        listed = (
            tools_of(lake, {catalog: stored.digest})
            if stored
            else list_source(configuration, catalog)[0].tools
        )
        tools += [
            tool
            for one in listed
            if (tool := _overridden(configuration, one)) is not None and tool.examples
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
    per_tool: int | None = None,
    min_left: int = 1,
    seed: int = 0,
    known: Iterable[GoldenQuery] = (),
) -> Picked:
    """Take a share of each tool's examples as golden queries.

    Args:
        share: above 0, at most 1; of a tool with few examples sometimes one more is taken and
            sometimes one less.
        per_tool: at most so many of a tool.
        min_left: so many examples stay with each tool at least.
        known: golden queries that there are already; they count as taken, and are not taken again.

    Raises ConfigurationError for a number that cannot be meant.
    """
    if not 0 < share <= 1 or min_left < 0 or (per_tool is not None and per_tool < 1):
        raise ConfigurationError(
            f"share {share:g}, per tool {per_tool}, left {min_left}: expected a share above 0, at "
            f"most 1, and numbers of 1 or more "
            "(0 or more that are left)."
        )
    texts = {
        tool.id: {as_words(text): text for text in reversed(tool.examples) if text.strip()}
        for tool in tools
    }
    free = _takeable(texts)
    taken = {as_words(query.query) for query in known}
    picked: list[GoldenQuery] = []
    for tool, examples in sorted(texts.items()):
        gone = len(taken & examples.keys())
        wanted = _wanted(tool, len(examples), share, per_tool, seed)
        more = max(0, min(wanted, len(examples) - min_left) - gone)
        chosen = sorted(free[tool] - taken, key=lambda words: digest(seed, words))[:more]
        queries = sorted(" ".join(examples[words].split()) for words in chosen)
        picked += [GoldenQuery(text, (tool,), origin="examples") for text in queries]
    count = sum(map(len, texts.values()))
    return Picked(tuple(picked), len(texts), count, count - sum(map(len, free.values())))


def _wanted(tool: str, examples: int, share: float, per_tool: int | None, seed: int) -> int:
    """How many of a tool's examples are taken: the share, its rest decided by chance, so that all
    tools together give the share.
    """
    exact = share * examples
    chance = int(digest(seed, tool)[:8], 16) / 16**8
    wanted = int(exact) + (chance < exact - int(exact))
    return wanted if per_tool is None else min(wanted, per_tool)


def _takeable(texts: Mapping[str, Mapping[str, str]]) -> dict[str, set[str]]:
    """By tool the words of the examples that no other tool has, that are not nearly those of
    another of the tool, and that are requests.
    """
    owners = Counter(words for examples in texts.values() for words in examples)
    free: dict[str, set[str]] = {}
    for tool, examples in texts.items():
        alike = AlikeTexts(list(examples.values()))
        free[tool] = {
            words
            for words, text in examples.items()
            if owners[words] == 1 and len(text) <= LONGEST and len(alike.near(text)) < 2
        }
    return free


def _overridden(configuration: Configuration, tool: Tool) -> Tool | None:
    """The tool with the examples that an override gives it; None if people do not want it or its
    agent.
    """
    own, agent = configuration.overrides.get(tool.id), configuration.overrides.get(tool.agent)
    if (own and own.skip) or (agent and agent.skip):
        return None
    return replace(tool, examples=own.examples) if own and own.examples is not None else tool
