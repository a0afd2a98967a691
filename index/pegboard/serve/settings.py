"""`[serve]` of pegboard.toml, and the `[catalogs]` beside it as far as calls need them."""

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
    """Return a text as a list of one; anything else as it is."""
    return (value,) if isinstance(value, str) else value


class Rule(Settings):
    """One rule of a client: it matches a tool that fits every field given.

    Attributes:
        agent: ids of agents, `catalog/agent`.
        catalog: names of catalogs.
        tag: tags; a tool fits if one of its tags does.
        tool: ids of tools, `catalog/agent/name`.

    Each is a text or a list of texts in which `*` stands for any characters, also `/`, and `?` for
    one. Letters have to agree in case.
    """

    agent: Globs | None = None
    catalog: Globs | None = None
    tag: Globs | None = None
    tool: Globs | None = None

    _listed = field_validator("*", mode="before")(as_list)

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("an empty rule; expected agent, catalog, tag or tool")
        return self


class ClientSettings(Settings):
    """`[serve.clients.NAME]`: who a client is, and the tools that it may see and call.

    Attributes:
        token: its bearer token as `${VARIABLE}`, or a list of them.
        claims: of a token that `[serve.auth]` verifies, with the value that each has to have or to
            contain: `{ sub = "ana" }`, `{ groups = "support" }`.
        allow: what it sees: tools that one of the rules matches; all tools if there is none.
        deny: what it does not see all the same.
        operator: whether it may read the metrics of all clients and the states of servers, and
            add golden queries.

    A client without token and claims stands for requests without credentials.
    """

    token: tuple[SecretReference, ...] = ()
    claims: dict[str, str] = Field(default_factory=dict[str, str])
    allow: tuple[Rule, ...] | None = None
    deny: tuple[Rule, ...] = ()
    operator: bool = False

    _listed = field_validator("token", mode="before")(as_list)

    @property
    def has_credentials(self) -> bool:
        """Whether its requests have any; those of a client that has none may be anybody's."""
        return bool(self.token or self.claims)

    @model_validator(mode="after")
    def _is_one_of_two(self) -> Self:
        if self.token and self.claims:
            raise ValueError("token and claims: a request has one bearer token; expected either")
        return self


class CallSettings(Settings):
    """`[serve.calls]`: limits of each call.

    Attributes:
        timeout: seconds for one call, the start of its server included.
        max_bytes: of one answer.
        concurrency: concurrent calls of one MCP server, or of one catalog of another type; more
            wait, within their timeout.
        destructive: what becomes of a call that may destroy something (`destructiveHint`, DELETE):
            `confirm` asks the user through the client, and refuses where it cannot ask.
        idle: seconds after which a session with an MCP server that nobody uses is ended.
        changed: what becomes of a call of a tool whose definition at its server is not the
            release's: `warn` says so in the result's `_meta` and in the log.
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
        sessions: whether each session of a client has one of its own with it (`client`), or all
            share one (`shared`); None is `client` for a server that is started, and `shared` for
            one over HTTP.
        max_sessions: open at once; then the one that was idle longest ends.
        auth: `passthrough` sends it the bearer token of the client's own request, and no other.
    """

    sessions: Literal["client", "shared"] | None = None
    max_sessions: Annotated[int, Field(ge=1, le=10_000)] = 32
    auth: Literal["passthrough"] | None = None


class ApiSettings(Settings):
    """`[serve.apis.CATALOG]`: where the operations of an OpenAPI catalog are called.

    Attributes:
        base_url: stands for the base URL of the catalog's document. Credentials go nowhere else.
        credentials: values by the name of the document's security scheme, as `${VARIABLE}`:
            `user:password` for basic, and `client:secret` for OAuth with a `token_url`.
        token_url: where the gateway gets tokens of its own (OAuth 2, client credentials).
        slashes: parameters of paths whose values may contain `/`, such as those of a file.
        auth: `passthrough` sends it the bearer token of the client's own request.
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
        extra = "@" in parts.netloc or "?" in url or "#" in url or "\\" in url
        if parts.scheme not in ("https", "http") or not parts.hostname or extra:
            raise ValueError(
                "expected an address that begins with https://, without credentials, query and "
                "fragment"
            )
        return url.rstrip("/")


class LlmSettings(Settings):
    """`[serve.llm]`: the LLM that strategies may ask; without it their rules do the work.

    Attributes:
        model: its name for LiteLLM, such as `openai/gpt-4o-mini`.
        strategy: by which tools are found, instead of the release's own.
        api_base: its address, if it is not the provider's own.
        timeout: seconds for each question.
        options: further arguments of LiteLLM's `completion`.
    """

    model: str
    strategy: str | None = None
    api_base: str | None = None
    options: ProviderOptions = Field(default_factory=dict[str, Any])
    timeout: Annotated[float, Field(gt=0)] = 10


class ServeSettings(Settings):
    """`[serve]`: the gateway.

    Attributes:
        mode: what `tools/list` has beside the gateway's own: `search` the pinned tools,
            `gateway` also those that the session found.
        results: how `search_tools` writes what it found: a sentence and the signature of each
            tool, a table of arguments (TOON), or declarations of TypeScript.
        requests_per_minute: that each client may make; None for no limit.
        k: tools that `search_tools` returns where the request does not say; `max_k` at most.
        allowed_hosts: names by which the gateway may be reached besides its own address.
        auth: an identity provider, as FastMCP has it; see
            `pegboard.serve.access.identity_provider`.
        pinned: ids of tools that are always listed, with `*` as in rules.
        python: catalogs whose Python functions may run, each in a process of its own.
        log: a file to which a line for each request is written.
        golden: a file of golden queries to which operators add on the page.
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


class BoardTable(Settings):
    """`[board]`, as far as it says where the board is; builds check the rest."""

    model_config = ConfigDict(extra="ignore")

    uri: str | None = None
    channel: str = "live"
    storage: dict[str, Any] = Field(default_factory=dict[str, Any])


class GatewaySettings(Settings):
    """What the gateway takes from a pegboard.toml.

    Attributes:
        file: the file; None without one.
        catalogs: the tables of `[catalogs]`, unchecked: builds check them.
        overridden: by id, what `[overrides]` says of tools otherwise than their catalog.
    """

    model_config = ConfigDict(extra="ignore", validate_by_name=True)

    file: Path | None = None
    board: BoardTable = BoardTable()
    serve: ServeSettings = ServeSettings()
    catalogs: dict[str, dict[str, Any]] = Field(default_factory=dict[str, dict[str, Any]])
    overridden: dict[str, Any] = Field(default_factory=dict[str, Any], alias="overrides")

    @property
    def base(self) -> Path:
        """The folder from which relative paths count."""
        return Path.cwd() if self.file is None else self.file.parent

    @property
    def uri(self) -> str:
        """The board's root as an absolute folder or an address; "" if the file names none."""
        uri = self.board.uri or ""
        return (
            uri if "://" in uri or not uri else str((self.base / Path(uri).expanduser()).resolve())
        )


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
