"""Several accounts of one MCP server: their tools are equal, and none copies the other.

Only the configuration says so, which is the operator's. Whatever a server or a registry lists of
itself does not count."""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from catalogs.mcp.records import OTHERS
from catalogs.mcp.source import McpOptions
from pegboard.canonical import canonical_json
from pegboard.errors import SourceError
from pegboard.records import agent_id
from pegboard.servers.config import URL_KEYS, configured_servers
from tasks.settings.configuration import Configuration

if TYPE_CHECKING:
    import polars as pl

ACCOUNT = re.compile(
    r"(?i)--?[a-z-]{0,40}(account|profile|user|email|tenant|workspace|organi[sz]ation|org|team|config"
    r"|credentials?|token|key|region)"
)
"""Matches options of a command that say which account a server is for."""


def servers_of_agents(configuration: Configuration) -> dict[str, str]:
    """Return which server the agents of configured MCP servers are, by agent: equal for two entries
    with the same address, or with the same command but for its account.
    """
    servers: dict[str, str] = {}
    for name in configuration.catalogs:
        options: Any = configuration.options(name)
        if not isinstance(options, McpOptions):
            continue
        try:
            entries, _ = configured_servers(options.path, options.servers, configuration.base)
        except SourceError:  # reported where the source is read
            continue
        for server, entry in entries.items():
            if identity := _identity(entry):
                agent = agent_id(name, server)
                servers[agent] = identity
                suffixes = [suffix for _, suffix in OTHERS.values()]
                servers |= {f"{agent}:{suffix}": f"{identity}:{suffix}" for suffix in suffixes}
    return servers


def with_servers(shingles: "pl.DataFrame", servers: Mapping[str, str]) -> "pl.DataFrame":
    """Return rows of shingles with the server in place of the agent, where it is known."""
    import polars as pl

    return shingles.with_columns(pl.col("agent").replace(dict(servers)))


def _identity(entry: Any) -> str:
    """Return a text that is the same for entries of one server; "" if the entry has neither a
    command nor an address.
    """
    if not isinstance(entry, Mapping):
        return ""
    values = cast("Mapping[str, Any]", entry)
    for key in URL_KEYS:
        if address := values.get(key):
            return canonical_json(["url", str(address).partition("?")[0].rstrip("/")])
    if command := values.get("command"):
        args = values.get("args")
        words = [str(arg) for arg in cast("list[Any]", args)] if isinstance(args, list) else []
        return canonical_json(["command", str(command), _without_account(words)])
    return ""


def _without_account(args: Sequence[str]) -> list[str]:
    """Return the arguments of a command without the values of options that name an account."""
    kept: list[str] = []
    is_value = False
    for arg in args:
        if is_value and not arg.startswith("-"):
            is_value = False
            continue
        name, separator, _ = arg.partition("=")
        names_account = ACCOUNT.fullmatch(name) is not None
        kept.append(name if names_account else arg)
        is_value = names_account and not separator
    return kept
