"""MCP client configurations as people already have them, turned into servers.

    {"mcpServers": {"git": {"command": "uvx", "args": ["mcp-server-git"], "env": {"TOKEN":
    "${GIT_TOKEN}"}}}} {"servers": {"docs": {"type": "http", "url": "https://mcp.acme.com/docs",
    "headers": {"X-Key": "${env:KEY}"}}}}

The first is Claude Desktop's and Cursor's, the second VS Code's mcp.json, which may hold comments
and trailing commas; in VS Code's settings.json the same stands under "mcp". Values are given by
reference to environment variables: `${NAME}`, `${env:NAME}` or, with a default, `${NAME:-default}`,
in command, args, env, cwd, url and headers."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from pegboard.errors import SourceError
from pegboard.foreign.files import parse_json, read_text
from pegboard.servers.references import (
    resolve_references,
    secrets_in_catalogs,
    secrets_of,
    with_pieces,
)
from pegboard.servers.shown import argument_secrets, public_command, public_text, url_secrets

SHAPES = (("mcpServers",), ("servers",), ("mcp", "servers"), ("mcp", "mcpServers"))
"""Where known configurations keep their servers."""

URL_KEYS = ("url", "serverUrl", "httpUrl")
"""The address of a remote server: almost everywhere, in Windsurf, in Gemini CLI."""

Transport = Literal["stdio", "http", "sse"]

TRANSPORTS: Mapping[str, Transport] = {
    "stdio": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamable_http": "http",
    "streamablehttp": "http",
    "sse": "sse",
}

# What is not closed is taken to its end, so that nothing is read twice.
STRING = r'"(?:\\.|[^"\\])*(?:"|\\?\Z)'
COMMENT = re.compile(rf"//[^\n]*|/\*.*?\*/|(?P<text>{STRING}|/\*.*)", re.DOTALL)
TRAILING_COMMA = re.compile(rf"(?P<text>{STRING})|,(?=\s*[}}\]])", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Server:
    """A server ready to be listed, with references resolved: only `source` may be shown.

    Attributes:
        secrets: values that messages about the server must not hold: all that it is given.
        private: those that its tools must not hold either: what is certainly secret.
    """

    transport: Transport
    source: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    cwd: Path = Path()
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    secrets: tuple[str, ...] = ()
    private: tuple[str, ...] = ()


class ServerProblem(Exception):
    """Why a server cannot be listed, free of secrets; stays within this source kind."""


def read_servers(path: Path) -> dict[str, Any]:
    """Read the servers of a configuration file by name. Raises SourceError if it has none."""
    text = read_text(path)
    if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
        raise SourceError(f"{path} is not UTF-8 text. Save it as UTF-8.")
    document = parse_json(_without_comments(text), str(path))
    for shape in SHAPES:
        servers = document
        for key in shape:
            servers = servers.get(key) if isinstance(servers, Mapping) else None
        if isinstance(servers, Mapping):
            return dict(servers)
    raise SourceError(
        f"{path} is not an MCP client configuration. Expected an object with the servers by name "
        f"under "
        f"{', '.join(repr('.'.join(shape)) for shape in SHAPES)}."
    )


def configured_servers(path: Any, servers: Any, base: Path) -> tuple[dict[str, Any], Path]:
    """Return the servers of a catalog by name, and the folder from which their paths count.

    Args:
        path: of a configuration file, from `base`; None if they stand in the catalog.
        servers: the catalog's own.

    Raises SourceError: the file cannot be read.
    """
    if path is None:
        return (dict(servers) if isinstance(servers, Mapping) else {}), base
    file = base / Path(str(path)).expanduser()
    return read_servers(file), file.parent


def resolve_server(entry: Any, base: Path) -> Server:
    """The server that an entry of a configuration describes.

    Args:
        base: the folder of the configuration: a server runs there, or in its `cwd`, which counts
            from there.

    Raises ServerProblem that lists everything wrong with the entry.
    """
    if not isinstance(entry, Mapping):
        raise ServerProblem(
            f"its configuration is {type(entry).__name__}, expected an object with command or url"
        )
    values = _Resolver(entry)
    url = next((key for key in URL_KEYS if entry.get(key)), "url")
    transport = _transport(values, url)
    server = Server(
        transport=transport,
        source=public_command(entry.get("command"), _list(entry.get("args")))
        if transport == "stdio"
        else public_text(str(entry.get(url))),
        command=values.text("command"),
        args=values.texts("args"),
        env=values.table("env"),
        cwd=values.folder("cwd", base),
        url=values.text(url),
        headers=values.table("headers"),
    )
    if entry.get("envFile"):
        values.problems.append("its envFile is not read; name its variables in env, as ${NAME}")
    if values.problems:
        raise ServerProblem("; ".join(dict.fromkeys(values.problems)))
    addressed = (*url_secrets(server.url), *argument_secrets(server.args))
    given = (*values.references, *server.env.values(), *server.headers.values(), *addressed)
    private = secrets_in_catalogs((*secrets_of(entry), *addressed))
    return replace(server, secrets=with_pieces(given), private=private)


class _Resolver:
    """Reads the fields of an entry, resolves references, and collects problems and their values."""

    def __init__(self, entry: Mapping[str, Any]) -> None:
        self.entry = entry
        self.problems: list[str] = []
        self.references: list[str] = []

    def text(self, key: str) -> str:
        value = self.entry.get(key)
        if value is not None and not isinstance(value, str):
            self.problems.append(f"its {key} is {type(value).__name__}, expected text")
        return self._resolve(value) if isinstance(value, str) else ""

    def texts(self, key: str) -> tuple[str, ...]:
        if not isinstance(self.entry.get(key), list | tuple | None):
            self.problems.append(
                f"its {key} are {type(self.entry[key]).__name__}, expected a list of texts"
            )
        return tuple(self._resolve(value) for value in _list(self.entry.get(key)))

    def table(self, key: str) -> dict[str, str]:
        values = self.entry.get(key) or {}
        if not isinstance(values, Mapping):
            self.problems.append(
                f"its {key} are {type(values).__name__}, expected an object of texts"
            )
            return {}
        # null unsets a variable in VS Code.
        return {
            str(name): self._resolve(value) for name, value in values.items() if value is not None
        }

    def folder(self, key: str, base: Path) -> Path:
        folder = base / Path(self.text(key)).expanduser()
        if not folder.is_dir():
            self.problems.append(f"its {key} is not a folder")
        return folder

    def _resolve(self, value: Any) -> str:
        return resolve_references(
            value if isinstance(value, str) else json.dumps(value), self._value
        )

    def _value(self, match: re.Match[str]) -> str:
        scheme, name, default = match["scheme"], match["name"], match["default"]
        if scheme not in (None, "env"):
            self.problems.append(
                f"{match[0]} is known only to an editor; name an environment variable, as ${{NAME}}"
            )
            return ""
        if not name.isidentifier():
            return match[0]  # a shell's own, such as ${list[@]} in the script of `bash -c`
        value = os.environ.get(name)
        if default is not None and not value:
            return default
        if value is None:
            self.problems.append(
                f"the environment variable {name} is not set; set it, or write ${{{name}:-default}}"
            )
            return ""
        self.references.append(value)
        return value


def _transport(values: _Resolver, url: str) -> Transport:
    entry = values.entry
    stated = entry.get("type") or entry.get("transport")
    transport = TRANSPORTS.get(str(stated).lower())
    if stated and transport is None:
        values.problems.append(
            f"its type is {stated!r}, expected one of stdio, http, streamable-http, sse"
        )
    if transport is None:
        # Configurations from before streamable HTTP name no type, and the addresses of then end so
        # by custom.
        remote: Transport = (
            "sse" if str(entry.get(url)).partition("?")[0].endswith("/sse") else "http"
        )
        transport = "stdio" if entry.get("command") or not entry.get(url) else remote
    if transport == "stdio" and not entry.get("command"):
        values.problems.append(
            "it has neither a command nor a url; add the one by which it is reached"
        )
    if transport != "stdio" and not entry.get(url):
        values.problems.append("it has no url; add it")
    return transport


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []


def _without_comments(text: str) -> str:
    """Blank comments and trailing commas of JSON, so that errors still name the right place."""

    def blank(match: re.Match[str]) -> str:
        return match["text"] or re.sub(r"[^\n]", " ", match[0])

    return TRAILING_COMMA.sub(blank, COMMENT.sub(blank, text))
