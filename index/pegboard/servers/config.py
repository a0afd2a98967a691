"""Servers from MCP client configurations.

    {"mcpServers": {"git": {"command": "uvx", "args": ["mcp-server-git"], "env": {"TOKEN":
    "${GIT_TOKEN}"}}}} {"servers": {"docs": {"type": "http", "url": "https://mcp.acme.com/docs",
    "headers": {"X-Key": "${env:KEY}"}}}}

The first is the format of Claude Desktop and Cursor, the second that of VS Code's mcp.json, which
may have comments and trailing commas. VS Code's settings.json has the same under "mcp". Command,
args, env, cwd, url and headers may refer to environment variables: `${NAME}`, `${env:NAME}` or,
with a default, `${NAME:-default}`. The values of variables are secrets, unless the entry names the
variables in `public`."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, BeforeValidator, Field, ValidationError

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
"""Keys under which configurations have their servers."""

URL_KEYS = ("url", "serverUrl", "httpUrl")
"""Keys of the address of a remote server: in most clients, in Windsurf, and in Gemini CLI."""

Transport = Literal["stdio", "http", "sse"]

STREAMABLE = ("streamable-http", "streamable_http", "streamablehttp")
"""Other names of the transport `http`."""

# Unclosed strings and comments match up to the end of the text, so that none is scanned twice.
STRING = r'"(?:\\.|[^"\\])*(?:"|\\?\Z)'
COMMENT = re.compile(rf"//[^\n]*|/\*.*?\*/|(?P<text>{STRING}|/\*.*)", re.DOTALL)
TRAILING_COMMA = re.compile(rf"(?P<text>{STRING})|,(?=\s*[}}\]])", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Server:
    """A server with its references resolved. Only `source` may be shown.

    Attributes:
        source: the command or address in the configuration, without secrets.
        auth: the options for signing in with OAuth, see `ServerSignIn`; None without OAuth.
        secrets: all values that the server is given, which are removed from messages about it.
        private: the values that are removed from everything that the server sends.
    """

    transport: Transport
    source: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    cwd: Path = Path()
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    auth: Mapping[str, Any] | None = None
    secrets: tuple[str, ...] = ()
    private: tuple[str, ...] = ()


def _transport_name(value: Any) -> str:
    name = str(value).lower()
    return "http" if name in STREAMABLE else name


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


Text = Annotated[str, BeforeValidator(_as_text)]


class _SignIn(BaseModel):
    """`auth` of an entry: `"oauth"`, or the registration of a client, also with Cursor's keys."""

    client_id: str | None = Field(None, validation_alias=AliasChoices("client_id", "CLIENT_ID"))
    client_secret: str | None = Field(
        None, validation_alias=AliasChoices("client_secret", "CLIENT_SECRET")
    )
    scopes: str | list[str] | None = None
    callback_port: int | None = None


SignIn = Annotated[_SignIn, BeforeValidator(lambda auth: {} if auth == "oauth" else auth)]


class _Entry(BaseModel):
    """The keys of a server's entry that are read. Others are meant for other clients."""

    command: str = ""
    args: list[Text] = Field(default_factory=list[str])
    env: dict[str, Text | None] = Field(default_factory=dict[str, str | None])
    cwd: str = ""
    url: str = Field("", validation_alias=AliasChoices(*URL_KEYS))
    headers: dict[str, Text] = Field(default_factory=dict[str, str])
    auth: SignIn | None = None
    type: Annotated[Transport, BeforeValidator(_transport_name)] | None = Field(
        None, validation_alias=AliasChoices("type", "transport")
    )


class ServerProblem(Exception):
    """Why a server cannot be used, without secrets. Callers turn it into an error of their own.

    Attributes:
        may_pass: whether the server may answer later.
        retry_after: the seconds that the server asks to wait, if it asks.
    """

    def __init__(
        self, message: str, *, may_pass: bool = False, retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.may_pass = may_pass
        self.retry_after = retry_after


def read_servers(path: Path) -> dict[str, Any]:
    """Return the servers of a configuration file by name. Raises SourceError if it has none."""
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
    """Return the servers of a catalog by name, and the folder that their relative paths start from.

    Args:
        path: the path of a configuration file, relative to `base`; None if the catalog itself has
            the servers.
        servers: the servers of the catalog.

    Raises:
        SourceError: the file cannot be read.
    """
    if path is None:
        return (dict(servers) if isinstance(servers, Mapping) else {}), base
    file = base / Path(str(path)).expanduser()
    return read_servers(file), file.parent


def resolve_server(entry: Any, base: Path) -> Server:
    """Return the server that an entry of a configuration describes.

    Args:
        base: the folder of the configuration. A server runs there, or in its `cwd`, which is
            relative to it.

    Raises:
        ServerProblem: lists all problems of the entry.
    """
    if not isinstance(entry, Mapping):
        raise ServerProblem(
            f"its configuration is {type(entry).__name__}, expected an object with command or url"
        )
    try:
        parsed = _Entry.model_validate(
            {key: value for key, value in entry.items() if value not in (None, "")}
        )
    except ValidationError as error:
        problems = [
            f"its {'.'.join(map(str, problem['loc']))}: {problem['msg']}"
            for problem in error.errors()
        ]
        raise ServerProblem("; ".join(problems)) from None
    references = References()
    # null unsets a variable in VS Code.
    env = {name: value for name, value in parsed.env.items() if value is not None}
    transport = _transport(parsed)
    server = Server(
        transport=transport,
        source=public_command(parsed.command, parsed.args)
        if transport == "stdio"
        else public_text(parsed.url),
        command=references.resolve(parsed.command),
        args=tuple(map(references.resolve, parsed.args)),
        env={name: references.resolve(value) for name, value in env.items()},
        cwd=base / Path(references.resolve(parsed.cwd)).expanduser(),
        url=references.resolve(parsed.url),
        headers={name: references.resolve(value) for name, value in parsed.headers.items()},
        auth=None if parsed.auth is None else references.resolve_all(parsed.auth),
    )
    problems = [*references.problems]
    if not (parsed.command if transport == "stdio" else parsed.url):
        problems.append("it has neither a command nor a url, or not that of its type; add it")
    if not server.cwd.is_dir():
        problems.append("its cwd is not a folder")
    if entry.get("envFile"):
        problems.append("its envFile is not read; name its variables in env, as ${NAME}")
    if problems:
        raise ServerProblem("; ".join(dict.fromkeys(problems)))
    entry_secrets = tuple(secrets_of(entry))
    addresses = (server.url, *(value for value in entry_secrets if "://" in value))
    parts = [part for address in addresses for part in url_secrets(address)]
    parts += argument_secrets(server.args)
    sent_values = (*references.values, *server.env.values(), *server.headers.values(), *parts)
    private = secrets_in_catalogs((*entry_secrets, *parts))
    return replace(server, secrets=with_pieces(sent_values), private=private)


class References:
    """Resolves references, and collects their values and problems."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.values: list[str] = []

    def resolve(self, text: str) -> str:
        return resolve_references(text, self._value)

    def resolve_all(self, auth: _SignIn) -> dict[str, Any]:
        values = auth.model_dump(exclude_none=True).items()
        return {
            name: self.resolve(value) if isinstance(value, str) else value for name, value in values
        }

    def _value(self, match: re.Match[str]) -> str:
        scheme = match["scheme"]
        name = match["name"]
        default = match["default"]
        if scheme not in (None, "env"):
            self.problems.append(
                f"{match[0]} is known only to an editor; name an environment variable, as ${{NAME}}"
            )
            return ""
        if not name.isidentifier():
            return match[0]  # syntax of a shell, such as ${list[@]} in the script of `bash -c`
        value = os.environ.get(name)
        if default is not None and not value:
            return default
        if value is None:
            self.problems.append(
                f"the environment variable {name} is not set; set it, or write ${{{name}:-default}}"
            )
            return ""
        self.values.append(value)
        return value


def _transport(entry: _Entry) -> Transport:
    if entry.type is not None:
        return entry.type
    if entry.command or not entry.url:
        return "stdio"
    # Configurations from before streamable HTTP have no type, and SSE addresses end with /sse.
    return "sse" if entry.url.partition("?")[0].endswith("/sse") else "http"


def _without_comments(text: str) -> str:
    """Replace comments and trailing commas by spaces, so that errors name the right place."""

    def blank(match: re.Match[str]) -> str:
        return match["text"] or re.sub(r"[^\n]", " ", match[0])

    return TRAILING_COMMA.sub(blank, COMMENT.sub(blank, text))
