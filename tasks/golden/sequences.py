"""Which tools follow which, learned from use (`[examples] sequences`), as a release records it."""

from dataclasses import dataclass

from pydantic import PositiveInt

from tasks.lake.files import Lake
from tasks.lake.row_sets import read_rows
from tasks.lake.snapshot_rows import tool_of
from tasks.settings.configuration import Configuration
from tasks.settings.json_lines import read_lines

NEXT_STEP = "`pegboard examples LOG --sequences FILE` writes the file of [examples] sequences."


@dataclass(frozen=True, slots=True)
class Following:
    """A line of the file: how many clients called the tool `next` after another."""

    after: str
    next: str
    clients: PositiveInt


def learned_sequences(configuration: Configuration, tools: str) -> dict[str, dict[str, float]]:
    """Return for each tool the tools that followed it, with their shares of the clients; none
    without `[examples] sequences`. Nothing leads to a destructive tool, as none learns requests.

    Args:
        tools: the path of the release's tools in the lake.

    Raises:
        ConfigurationError: the file cannot be read; lists every invalid line.
    """
    settings = configuration.examples
    if settings is None or settings.sequences is None:
        return {}
    counts: dict[str, dict[str, int]] = {}
    for row in read_lines(configuration.base / settings.sequences, Following, NEXT_STEP):
        counts.setdefault(row.after, {})[row.next] = row.clients
    ids = sorted({tool for followers in counts.values() for tool in followers})
    rows = read_rows(Lake(configuration.uri), tools, keys=ids).iter_rows(named=True)
    harmless = {tool.id for tool in map(tool_of, rows) if not tool.is_destructive}
    shares = {
        tool: {
            following: round(clients / (sum(followers.values()) + 1), 3)
            for following, clients in followers.items()
            if following in harmless
        }
        for tool, followers in counts.items()
    }
    return {tool: followers for tool, followers in shares.items() if followers}
