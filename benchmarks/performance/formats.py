"""How many tokens tool definitions take in a prompt: as JSON, and as the compact text of `as_toon`.

    python -m benchmarks.performance.formats BOARD...

Armory's claim for Tool RAG: 65 % less for definitions, 60 % of the context with the round trip. The
tokens are those of OpenAI's cl100k; `five` is the mean of a tool times five, as retrieval shows.
"""

import argparse
import json
from collections.abc import Sequence

import pegboard
from pegboard.cli.tables import markdown_table
from pegboard.hits import Hit

SHOWN = 5
"""Tools that retrieval gives to a model."""
HEADER = ("board", "tools", "all, JSON", "all, TOON", "saved", "five, TOON", "saved with retrieval")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print one line of a Markdown table for each board."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("boards", nargs="+", metavar="BOARD")
    for line in markdown_table(HEADER, map(_cells, parser.parse_args(arguments).boards)):
        print(line)
    return 0


def _cells(uri: str) -> list[str]:
    from pegboard.llm.hosted import HostedCompleter

    count = HostedCompleter("openai/gpt-4").count_tokens
    with pegboard.open(uri) as board:
        tools = board.list_tools()
        agents = {agent.id: agent for agent in board.list_agents()}
    hits = [Hit(tool, agents[tool.agent], 0.0, {}) for tool in tools]
    definitions = json.dumps(
        pegboard.as_openai_tools(hits), ensure_ascii=False, separators=(",", ":")
    )
    as_json, as_toon = map(count, (definitions, pegboard.as_toon(hits)))
    shown = as_toon * SHOWN / len(hits)
    return [
        uri,
        f"{len(hits):,}",
        f"{as_json:,}",
        f"{as_toon:,}",
        f"{1 - as_toon / as_json:.0%}",
        f"{shown:,.0f}",
        f"{1 - shown / as_json:.1%}",
    ]


if __name__ == "__main__":
    raise SystemExit(main())
