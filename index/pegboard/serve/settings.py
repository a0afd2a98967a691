"""The settings of the gateway: `[serve]` of pegboard.toml, and what calls need of `[catalogs]`."""

from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import ConfigDict, Field, ValidationError, field_validator, model_validator

from pegboard.encoders import allow_hosted
from pegboard.errors import ConfigurationError
from pegboard.store.storage import remember_options
from pegboard.toml_settings import (
    ProviderOptions,
    SecretReference,
    Settings,
    TextWithReference,
    configured_encoders,
    problems_of,
    read_toml,
)

Destructive = Literal["confirm", "allow", "refuse"]
Globs = Annotated[tuple[str, ...], Field(min_length=1)]


def as_list(value: Any) -> Any:
    """Return a text as a list with one item; return other values unchanged."""
    return (value,) if isinstance(value, str) else value


class Rule(Settings):
    """One rule of a client. It matches a tool that matches every field of the rule.

    Attributes:
        agent: ids of agents, `catalog/agent`.
        catalog: names of catalogs.
        tag: tags, at least one of which the tool has.
        tool: ids of tools, `catalog/agent/name`.

    Each field is a pattern or a list of patterns, in which `*` matches any characters, including
    `/`, and `?` matches one character. Patterns are case-sensitive.
    """

    agent: Globs | None = None
    catalog: Globs | None = None
    tag: Globs | None = None
    tool: Globs | None = None

    _listed = field_validator("*", mode="before")(as_list)

    @model_validator(mode="after")
    def _has_a_field(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("an empty rule; expected agent, catalog, tag or tool")
        return self


class ClientSettings(Settings):
    """`[serve.clients.NAME]`: who a client is, and the tools that it may see and call.

    Attributes:
        token: its bearer token as `${VARIABLE}`, or a list of tokens.
        claims: the claims of a token that `[serve.auth]` verifies, each with the value that it
            must have or contain: `{ sub = "ana" }`, `{ groups = "support" }`.
        allow: the client sees the tools that one of these rules matches; None for all tools.
        deny: the client does not see tools that one of these rules matches.
        operator: whether the client may read the metrics of all clients and the states of servers,
            and add golden queries.

    Requests without credentials come from the client without token and claims.
    """

    token: tuple[SecretReference, ...] = ()
    claims: dict[str, str] = Field(default_factory=dict[str, str])
    allow: tuple[Rule, ...] | None = None
    deny: tuple[Rule, ...] = ()
    operator: bool = False

    _listed = field_validator("token", mode="before")(as_list)

    @property
    def has_credentials(self) -> bool:
        """Whether its requests have credentials. Without them, anyone may have sent a request."""
        return bool(self.token or self.claims)

    @model_validator(mode="after")
    def _has_one_kind_of_credentials(self) -> Self:
        if self.token and self.claims:
            raise ValueError("token and claims: a request has one bearer token; expected either")
        return self


class CallSettings(Settings):
    """`[serve.calls]`: limits of each call.

    Attributes:
        timeout: seconds for one call, including the start of its server.
        max_bytes: bytes of one answer.
        concurrency: concurrent calls of one MCP server, or of one catalog of another type. Further
            calls wait within their timeout.
        destructive: how a call that may destroy something (`destructiveHint`, DELETE) is treated:
            `confirm` asks the user through the client, and refuses the call if it cannot ask.
        idle: seconds without a call after which a session with an MCP server is ended.
        changed: how a call is treated if the server's definition of the tool differs from the
            release: `warn` reports it in the result's `_meta` and in the log.
    """

    timeout: Annotated[float, Field(gt=0, le=3600)] = 60
    max_bytes: Annotated[int, Field(ge=1_000)] = 4_000_000
    concurrency: Annotated[int, Field(ge=1, le=1_000)] = 16
    destructive: Destructive = "confirm"
    idle: Annotated[float, Field(gt=0)] = 600
    changed: Literal["refuse", "warn", "allow"] = "warn"


class ServerSettings(Settings):
    """`[serve.servers."catalog/server"]`: sessions with one MCP server.

    Attributes:
        sessions: `client` opens a session with the server for each session of a client; `shared`
            opens one for all. None means `client` for a server that the gateway starts, and
            `shared` for one over HTTP.
        max_sessions: sessions that are open at once. One more ends the session that was idle
            longest.
        auth: `passthrough` sends the server the bearer token of the client's request, and no other
            credentials.
    """

    sessions: Literal["client", "shared"] | None = None
    max_sessions: Annotated[int, Field(ge=1, le=10_000)] = 32
    auth: Literal["passthrough"] | None = None


class ApiSettings(Settings):
    """`[serve.apis.CATALOG]`: where the operations of an OpenAPI catalog are called.

    Attributes:
        base_url: replaces the base URL of the catalog's document. Credentials are sent nowhere
            else.
        credentials: values by the name of the document's security scheme, as `${VARIABLE}`:
            `user:password` for basic, and `client:secret` for OAuth with a `token_url`.
        token_url: the address that gives the gateway its own tokens (OAuth 2, client credentials).
        slashes: path parameters whose values may contain `/`, such as the path of a file.
        auth: `passthrough` sends the API the bearer token of the client's request.
    """

    base_url: str
    auth: Literal["passthrough"] | None = None
    token_url: str | None = None
    slashes: tuple[str, ...] = ()
    credentials: dict[str, TextWithReference] = Field(default_factory=dict[str, TextWithReference])

    @field_validator("base_url")
    @classmethod
    def _is_http(cls, url: str) -> str:
        parts = urlsplit(url)  # paths are appended to it
        has_more = "@" in parts.netloc or "?" in url or "#" in url or "\\" in url
        if parts.scheme not in ("https", "http") or not parts.hostname or has_more:
            raise ValueError(
                "expected an address that begins with https://, without credentials, query and "
                "fragment"
            )
        return url.rstrip("/")


class LlmSettings(Settings):
    """`[serve.llm]`: the LLM that strategies may ask. Without it, they use their rules.

    Attributes:
        model: its name for LiteLLM, such as `openai/gpt-4o-mini`.
        strategy: the strategy by which tools are found; None for the release's default.
        api_base: its address; None for the provider's.
        timeout: seconds for each question.
        options: further arguments of LiteLLM's `completion`.
    """

    model: str
    strategy: str | None = None
    api_base: str | None = None
    options: ProviderOptions = Field(default_factory=dict[str, Any])
    timeout: Annotated[float, Field(gt=0)] = 10


class EventSettings(Settings):
    """`[serve.events]`: where the gateway posts that a server's list of tools changed.

    Attributes:
        url: the API of a Prefect server, which ends with `/api`, or the address of a webhook.
        headers: sent with each post; secrets only as `${VARIABLE}`.
    """

    url: str
    headers: dict[str, TextWithReference] = Field(default_factory=dict[str, TextWithReference])

    @field_validator("url")
    @classmethod
    def _is_http(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme not in ("https", "http") or not parts.hostname or "@" in parts.netloc:
            raise ValueError(
                "expected an address that begins with https:// or http://, without credentials"
            )
        return url.rstrip("/")

    @property
    def address(self) -> str:
        """Where events are posted."""
        return f"{self.url}/events" if self.url.endswith("/api") else self.url


class ServeSettings(Settings):
    """`[serve]`: the gateway.

    Attributes:
        mode: what `tools/list` has besides the gateway's own tools: `search` adds the pinned tools,
            `gateway` also the tools that the session found.
        results: the format of the results of `search_tools`: a sentence and the signature of each
            tool (`compact`), a table of arguments (`toon`), or TypeScript declarations.
        requests_per_minute: requests that each client may make; None for no limit.
        k: tools that `search_tools` returns unless the request has a number; `max_k` is the most
            that a request may ask for.
        allowed_hosts: host names by which the gateway may be reached besides its own address, such
            as that of a proxy in front; with a port if it is not the scheme's.
        auth: an identity provider, as FastMCP has it; see
            `pegboard.serve.access.identity_provider`.
        pinned: ids of tools that are always listed, as patterns like those of rules.
        python: catalogs whose Python functions may run, each in a process of its own.
        log: the file of the request log, with a line for each request.
        golden: the file of golden queries to which operators add on the page.
        events: where it is posted that a server's list of tools changed; None for nowhere.
    """

    mode: Literal["search", "gateway"] = "search"
    results: Literal["compact", "toon", "typescript"] = "compact"
    k: Annotated[int, Field(ge=1, le=100)] = 5
    max_k: Annotated[int, Field(ge=1, le=200)] = 20
    allowed_hosts: tuple[str, ...] = ()
    auth: dict[str, Any] | None = None
    pinned: tuple[str, ...] = ()
    clients: dict[str, ClientSettings] = Field(default_factory=dict[str, ClientSettings])
    calls: CallSettings = CallSettings()
    servers: dict[str, ServerSettings] = Field(default_factory=dict[str, ServerSettings])
    apis: dict[str, ApiSettings] = Field(default_factory=dict[str, ApiSettings])
    python: tuple[str, ...] = ()
    requests_per_minute: Annotated[int, Field(ge=1)] | None = None
    log: Path | None = None
    golden: Path | None = None
    llm: LlmSettings | None = None
    events: EventSettings | None = None


class BoardTable(Settings):
    """The keys of `[board]` that say where the board is. Builds check the others."""

    model_config = ConfigDict(extra="ignore")

    uri: str | None = None
    channel: str = "live"
    storage: dict[str, Any] = Field(default_factory=dict[str, Any])


class GatewaySettings(Settings):
    """What the gateway reads of a pegboard.toml.

    Attributes:
        file: the file; None without one.
        catalogs: the tables of `[catalogs]`, which only builds check.
        overridden: the tables of `[overrides]` by the id of a tool.
    """

    model_config = ConfigDict(extra="ignore", validate_by_name=True)

    file: Path | None = None
    board: BoardTable = BoardTable()
    serve: ServeSettings = ServeSettings()
    catalogs: dict[str, dict[str, Any]] = Field(default_factory=dict[str, dict[str, Any]])
    overridden: dict[str, Any] = Field(default_factory=dict[str, Any], alias="overrides")

    @property
    def base(self) -> Path:
        """The folder that relative paths start from."""
        return Path.cwd() if self.file is None else self.file.parent

    @property
    def uri(self) -> str:
        """The board's root as an absolute folder or an address; "" if the file names none."""
        uri = self.board.uri or ""
        if not uri or "://" in uri:
            return uri
        return str((self.base / Path(uri).expanduser()).resolve())


def load_gateway_settings(file: str | Path) -> GatewaySettings:
    """Read what the gateway needs of a pegboard.toml.

    Raises:
        ConfigurationError: the file cannot be read, or has problems; all are listed.
    """
    tables = read_toml(file, "name a board with --board")
    path = Path(file).expanduser().resolve()
    try:
        settings = GatewaySettings.model_validate({**tables, "file": path})
    except ValidationError as error:
        problems = problems_of(error, GatewaySettings)
        raise ConfigurationError.from_problems(
            str(file), problems, "See `[serve]` in the reference."
        ) from None
    if settings.board.storage:
        options = {name: str(value) for name, value in settings.board.storage.items()}
        remember_options(settings.uri, options)
    allow_hosted(configured_encoders(tables))
    return settings
