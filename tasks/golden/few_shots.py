"""The golden queries that request-time prompts show as few-shot examples (`[find] few_shots`), as a
release records them.

They are taken from the file of `[golden]`, and none from the examples that are held out of the
index. A query whose near-duplicate is also a golden query is not taken: readers leave out an
example that is the request itself (`show_few_shots`), and could not tell that the other is nearly
the same. So an evaluation with the golden queries shows no request its own answer.
"""

from collections import Counter
from typing import Any

from pegboard.canonical import digest
from pegboard.errors import ConfigurationError
from pegboard.evaluation.golden import ALTERNATIVE, GoldenQuery, ToolNames
from tasks.enrichment.near_duplicates import NearDuplicates
from tasks.golden.reading import as_words, configured_queries, read_golden
from tasks.lake.files import Lake
from tasks.lake.row_sets import read_rows
from tasks.settings.configuration import Configuration

MAX_CHARACTERS = 300
"""Largest number of characters of a query that serves as an example."""
_SEED = "few-shots"


def few_shot_queries(configuration: Configuration) -> list[GoldenQuery]:
    """Return the golden queries that may serve as examples, in a fixed order; none if `[find]` asks
    for none.

    Raises:
        ConfigurationError: there is no `[golden]`, a line is invalid, or no query can serve.
    """
    if not configuration.find.few_shots:
        return []
    golden = read_golden(configuration)
    if golden is None:
        raise ConfigurationError(
            f"[find] of {configuration.file}: few_shots shows golden queries, and there are none. "
            "Name a file of golden queries in [golden], or leave few_shots out."
        )
    near = NearDuplicates([query.query for query in configured_queries(configuration)])
    usable = [
        query
        for query in golden
        if query.origin != "examples"
        and query.tools
        and not query.history
        and len(query.query) <= MAX_CHARACTERS
        and len(near.near(query.query)) < 2
    ]
    if not usable:
        raise ConfigurationError(
            f"[find] of {configuration.file}: none of the golden queries can serve as an example. "
            f"few_shots takes those of at most {MAX_CHARACTERS} characters, without `history`, "
            "without near-duplicates, and not of origin `examples`."
        )
    return sorted(usable, key=lambda query: digest(_SEED, as_words(query.query)))


def few_shots(
    configuration: Configuration, tools_path: str, agents_path: str
) -> list[dict[str, Any]]:
    """Return the examples of a release: each a query and the names of its tools, all of which the
    release has. Different agents come first, so that few examples show much of the catalog.

    Args:
        tools_path: the release's tools in the lake.
        agents_path: its agents in the lake.
    """
    queries = few_shot_queries(configuration)
    if not queries:
        return []
    lake = Lake(configuration.uri)
    agents = dict(read_rows(lake, agents_path, ["id", "name"]).rows())
    tools = {row[0]: row for row in read_rows(lake, tools_path, ["id", "name", "agent"]).rows()}
    names = ToolNames((tool, name, agents[agent]) for tool, name, agent in tools.values())
    taken: Counter[str] = Counter()
    ranked: list[tuple[int, dict[str, Any]]] = []
    for query in queries:
        first_names = [name.split(ALTERNATIVE)[0] for name in query.tools]
        needed = names.resolve(first_names)
        if needed.unknown:
            continue
        ids = [min(ids) for ids in needed.tools.values()]
        agent = tools[ids[0]][2]
        shot = {"query": query.query, "tools": [tools[tool][1] for tool in ids]}
        ranked.append((taken[agent], shot))
        taken[agent] += 1
    ranked.sort(key=lambda pair: pair[0])
    return [shot for _, shot in ranked[: configuration.find.few_shots]]
