"""pegboard.toml: what may stand in it, its defaults, and every problem of it in one message."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError, field_validator

from catalogs.shared.kinds import source_kind
from catalogs.shared.listing import SourceOptions
from pegboard.errors import ConfigurationError
from pegboard.retrieval.strategy import Strategy
from pegboard.store.contract import embedding_table
from pegboard.store.storage import is_secret, remember_options
from tasks.settings.enrichment import EnrichSettings, OverrideSettings, UntrustedSettings
from tasks.settings.release import (
    FindSettings,
    GateSettings,
    GoldenSettings,
    GraphSettings,
    default_strategy,
)

DEFAULT_ENCODER = "local/all-MiniLM-L6-v2"

Part = Literal["name", "description", "arguments", "questions", "topics", "agent"]
PARTS: tuple[Part, ...] = ("name", "description", "arguments", "questions", "topics", "agent")


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class KeepSettings(_Settings):
    """`[board.keep]`: which releases stay when a board is pruned: so many, and those so young.

    Attributes:
        releases: how many of the newest stay.
        days: a release that was published within so many days stays, whatever their number.
        grace_hours: what nothing refers to is deleted only when it is so old. It has to be longer
            than the slowest reader goes without looking at its channel, and than a run takes from
            staging to publishing.
    """

    releases: Annotated[int, Field(ge=1)] = 30
    days: Annotated[float, Field(ge=0)] = 30
    grace_hours: Annotated[float, Field(gt=0)] = 24


class BoardSettings(_Settings):
    """`[board]`: where the board is, what its store wants to know, the channel that a run moves,
    what is kept.

    `report` is whether each release gets its page, `<board>/reports/<release>.html`.
    """

    uri: str
    channel: str = "live"
    storage: dict[str, str] = {}
    keep: KeepSettings | None = None
    report: bool = True

    @field_validator("storage", mode="before")
    @classmethod
    def _refers_to_secrets(cls, storage: Any) -> Any:
        if not isinstance(storage, Mapping):
            return storage
        options = {
            str(name): _as_text(value) for name, value in cast("Mapping[Any, Any]", storage).items()
        }
        plain = [
            name for name, value in options.items() if is_secret(name) and not _is_reference(value)
        ]
        if plain:
            raise ValueError(
                f"{', '.join(plain)}: a secret does not stand in a file. Put it into an "
                f"environment variable, and write "
                f'{plain[0]} = "${{NAME_OF_THE_VARIABLE}}"'
            )
        return options


class IndexSettings(_Settings):
    """`[[indexes]]`: one way of turning tools into vectors. See `tasks/compose.py` for what the
    parts and shapes mean.
    """

    name: str = "full"
    encoder: Annotated[str, Field(validation_alias=AliasChoices("encoder", "embedder"))] = (
        DEFAULT_ENCODER
    )
    parts: Annotated[tuple[Part, ...], Field(min_length=1)] = (
        "name",
        "description",
        "arguments",
        "questions",
        "topics",
    )
    shape: Literal["centroid", "single", "multi"] = "centroid"
    questions: Annotated[int, Field(ge=0, le=1000)] = 10
    options: dict[str, Any] = {}

    @field_validator("name")
    @classmethod
    def _names_a_table(cls, name: str) -> str:
        try:
            embedding_table(name)
        except ConfigurationError as error:
            raise ValueError(str(error)) from error
        return name

    @field_validator("options")
    @classmethod
    def _holds_no_secret(cls, options: dict[str, Any]) -> dict[str, Any]:
        for key in options:
            secret = any(word in key.lower() for word in ("key", "token", "secret"))
            if secret and key != "max_tokens" and not key.endswith("_env"):
                raise ValueError(f"{key}: secrets are read from the environment, never from a file")
        return options

    @property
    def table(self) -> str:
        """The table of the index."""
        return embedding_table(self.name)


class Configuration(_Settings):
    """A whole pegboard.toml. `file` is where it was read from; relative paths count from its
    folder.
    """

    file: Path
    board: BoardSettings
    catalogs: dict[str, Any]
    indexes: tuple[IndexSettings, ...] = (IndexSettings(),)
    default_index: str | None = None
    enrich: EnrichSettings | None = None
    untrusted: UntrustedSettings = UntrustedSettings()
    overrides: dict[str, OverrideSettings] = {}
    graph: GraphSettings = GraphSettings()
    find: FindSettings = FindSettings()
    golden: GoldenSettings | None = None
    gate: GateSettings | None = None

    @property
    def base(self) -> Path:
        """The folder from which relative paths count."""
        return self.file.parent

    @property
    def uri(self) -> str:
        """The board's root as an absolute folder or an address."""
        uri = self.board.uri
        return uri if "://" in uri else str((self.base / Path(uri).expanduser()).resolve())

    @property
    def default(self) -> str:
        """The name of the index that a search takes when it names none."""
        return self.default_index or self.indexes[0].name

    def index(self, name: str) -> IndexSettings:
        """The settings of an index."""
        return next(index for index in self.indexes if index.name == name)

    def catalogs_named(self, name: str) -> list[str]:
        """The catalog of that name, or all for `all`. Raises ConfigurationError that names those
        there are.
        """
        if name == "all":
            return list(self.catalogs)
        if name not in self.catalogs:
            raise ConfigurationError(
                f"{self.file} has no catalog '{name}'. It has: {', '.join(self.catalogs)}."
            )
        return [name]

    def options(self, catalog: str) -> SourceOptions:
        """The validated options of a catalog's source."""
        return self.catalogs[catalog]


def load_configuration(file: str | Path) -> Configuration:
    """Read and check a pegboard.toml. Raises ConfigurationError that lists every problem with its
    place.

    From then on, this process opens the board with the options in `[board.storage]`.
    """
    path = Path(file).expanduser().resolve()
    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError as error:
        raise ConfigurationError(
            f"There is no configuration at {file}. Give one with -c, or write one with `pegboard "
            f"init`."
        ) from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError(
            f"{file} cannot be read as TOML: {error}. Correct that place."
        ) from error
    problems: list[str] = []
    catalogs = _catalogs(data.pop("catalogs", None), problems)
    if "file" in data:
        problems.append("file: there is no such setting")
        del data["file"]
    try:
        data.pop("sweep", None)  # read by tasks/settings/sweep.py
        configuration = Configuration(**data, catalogs=catalogs, file=path)
    except ValidationError as error:
        problems += _lines(error)
    else:
        problems += _index_problems(configuration)
        if not problems:
            remember_options(configuration.uri, configuration.board.storage)
            return configuration
    raise ConfigurationError(
        f"{file} has {len(problems)} problem{'s' if len(problems) > 1 else ''}:\n"
        + "\n".join(f"  - {problem}" for problem in problems)
        + "\n`pegboard init --stdout` prints a commented example."
    )


def _as_text(value: Any) -> Any:
    """A TOML value as the stores take it: `true` for true, `5` for 5; what is none of these is left
    for the check of types.
    """
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


def _is_reference(value: Any) -> bool:
    return (
        isinstance(value, str) and re.fullmatch(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}", value) is not None
    )


def _catalogs(tables: Any, problems: list[str]) -> dict[str, SourceOptions]:
    if not isinstance(tables, Mapping) or not tables:
        problems.append(
            "catalogs: expected at least one source, such as [catalogs.shared.files] with type "
            "and path"
        )
        return {}
    catalogs: dict[str, SourceOptions] = {}
    for name, table in tables.items():
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", name):
            problems.append(
                f"catalogs.{name}: expected a name of letters, digits, '.', '_' and '-', at most 64"
            )
            continue
        if not isinstance(table, Mapping) or not isinstance(table.get("type"), str):
            problems.append(
                f"catalogs.{name}.type: expected the kind of source, such as 'mcp' or 'openapi'"
            )
            continue
        try:
            catalogs[name] = source_kind(table["type"]).options(**table)
        except ConfigurationError as error:
            problems.append(f"catalogs.{name}.type: {error}")
        except ValidationError as error:
            problems += _lines(error, f"catalogs.{name}.")
    return catalogs


def _index_problems(configuration: Configuration) -> list[str]:
    names = [index.name for index in configuration.indexes]
    problems = [
        f"indexes: two are named '{name}'"
        for name in sorted({n for n in names if names.count(n) > 1})
    ]
    if not names:
        problems.append("indexes: expected at least one, or leave it out for the default")
    if configuration.default_index is not None and configuration.default_index not in names:
        problems.append(
            f"default_index: there is no index '{configuration.default_index}'; expected one of "
            f"{names}"
        )
    strategy = default_strategy(configuration.find.strategy) or {}
    if Strategy.from_dict(strategy).needs_calibration() and configuration.golden is None:
        problems.append(
            f"find.strategy: '{strategy['name']}' asks for probabilities, which need [golden] "
            f"queries; add them, or choose another strategy"
        )
    problems += [
        f"find.strategy: there is no index '{name}'; expected one of {names}"
        for name in strategy.get("indexes", ())
        if name not in names
    ]
    return problems


def _lines(error: ValidationError, prefix: str = "") -> list[str]:
    lines: list[str] = []
    for problem in error.errors(include_url=False):
        place = prefix + ".".join(str(part) for part in problem["loc"])
        said = {"extra_forbidden": "there is no such setting", "missing": "it is missing"}
        message = said.get(problem["type"], problem["msg"].removeprefix("Value error, "))
        got = (
            ""
            if problem["type"] in ("missing", "extra_forbidden", "value_error")
            else f" (got {problem['input']!r:.80})"
        )
        lines.append(f"{place}: {message}{got}")
    return lines
