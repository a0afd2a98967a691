"""All settings of a pegboard.toml: `[board]`, `[catalogs]`, `[[indexes]]`, `[run]`, the defaults of
every table, and all problems in one message.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, cast, get_args

from pydantic import Field, ValidationError, field_validator, model_validator

from catalogs.shared.kinds import source_kind, source_kinds
from catalogs.shared.listing import SourceOptions
from pegboard.documents import DEFAULT_PARTS, QUESTIONS, Part, Shape
from pegboard.encoders import DEFAULT_ENCODER, allow_hosted
from pegboard.errors import ConfigurationError, did_you_mean
from pegboard.retrieval.strategy import Strategy
from pegboard.search.glossary import TERM, usual_short_forms
from pegboard.serve.settings import ServeSettings
from pegboard.store.contract import embedding_table
from pegboard.store.storage import remember_options
from pegboard.text.redaction import is_secret_name
from pegboard.text.words import DEFAULT_LANGUAGE, LANGUAGES
from pegboard.toml_settings import (
    Settings,
    configured_encoders,
    duplicates,
    problems_of,
    read_toml,
)
from tasks.settings.enrichment import EnrichSettings, OverrideSettings, UntrustedSettings
from tasks.settings.release import (
    LACKS_PROBABILITY,
    ExamplesSettings,
    FindSettings,
    GateSettings,
    GoldenSettings,
    GraphSettings,
    LockSettings,
    default_strategy,
    published_prompts,
    unknown_indexes,
)

WrittenText = Literal["description", "arguments", "questions", "topics"]
WRITTEN_TEXTS: tuple[WrittenText, ...] = get_args(WrittenText)
"""The texts about a tool that an LLM writes; `avoid` is never embedded."""


class KeepSettings(Settings):
    """`[board.keep]`: which releases are kept when a board is pruned.

    Attributes:
        releases: number of newest releases that are kept.
        days: releases published within this many days are kept, whatever their number.
        grace_hours: hours for which a release is kept after the next one was published, and the
            smallest age of other data that is deleted. Must be longer than the slowest reader goes
            without checking its channel, and than a run takes from staging to publishing.
    """

    releases: Annotated[int, Field(ge=1)] = 30
    days: Annotated[float, Field(ge=0)] = 30
    grace_hours: Annotated[float, Field(gt=0)] = 24


class BoardSettings(Settings):
    """`[board]`: the location of the board, and how a run publishes and prunes.

    Attributes:
        channel: the channel that a run moves to its release.
        storage: options of the store; secrets only as `${VARIABLE}`.
        keep: what `pegboard build` keeps when it prunes after a release; nothing is pruned if None.
        report: write `<board>/reports/<release>.html` for each release.
        public_lake: write the Parquet tables of `<board>/lake/public`.
        max_removal: largest share of its tools that a catalog may lose at once. If it loses more,
            its last good tools are kept until a build allows the removal. With 1 only a removal of
            all tools needs that.
    """

    uri: str
    channel: str = "live"
    storage: dict[str, str] = Field(default_factory=dict[str, str])
    keep: KeepSettings | None = None
    report: bool = True
    public_lake: bool = True
    max_removal: Annotated[float, Field(ge=0, le=1)] = 0.3

    @field_validator("uri")
    @classmethod
    def _is_path_or_address(cls, uri: str) -> str:
        if "\0" in uri:
            raise ValueError("has a NUL character, which no path or address has; remove it")
        return uri

    @field_validator("storage", mode="before")
    @classmethod
    def _refers_to_secrets(cls, storage: Any) -> Any:
        if not isinstance(storage, Mapping):
            return storage
        table = cast("Mapping[Any, Any]", storage)
        options = {str(name): _as_text(value) for name, value in table.items()}
        plain = [
            name
            for name, value in options.items()
            if is_secret_name(name) and not _is_reference(value)
        ]
        if plain:
            raise ValueError(
                f"{', '.join(plain)}: secrets are not allowed in the file. Set an environment "
                f'variable, and write {plain[0]} = "${{NAME_OF_THE_VARIABLE}}"'
            )
        return options


class IndexSettings(Settings):
    """`[[indexes]]`: one way to turn tools into vectors. `pegboard/documents.py` defines parts and
    shapes, `pegboard/text/words.py` the effect of the language.

    Attributes:
        written: which of the texts that an LLM wrote the index holds. Where it lacks the written
            description, the catalog's stands.
    """

    name: str = "full"
    encoder: str = DEFAULT_ENCODER
    parts: Annotated[tuple[Part, ...], Field(min_length=1)] = DEFAULT_PARTS
    shape: Shape = "centroid"
    questions: Annotated[int, Field(ge=0, le=1000)] = QUESTIONS
    written: tuple[WrittenText, ...] = WRITTEN_TEXTS
    language: str = DEFAULT_LANGUAGE
    options: dict[str, Any] = Field(default_factory=dict[str, Any])

    @field_validator("name")
    @classmethod
    def _names_a_table(cls, name: str) -> str:
        try:
            embedding_table(name)
        except ConfigurationError as error:
            raise ValueError(str(error)) from error
        return name

    @field_validator("language")
    @classmethod
    def _has_stems(cls, language: str) -> str:
        if language not in LANGUAGES:
            raise ValueError(
                f"expected one of {', '.join(LANGUAGES)}{did_you_mean(language, LANGUAGES)}"
            )
        return language

    @field_validator("options")
    @classmethod
    def _contains_no_secret(cls, options: dict[str, Any]) -> dict[str, Any]:
        for key in options:
            is_secret = any(word in key.lower() for word in ("key", "token", "secret"))
            if is_secret and key != "max_tokens" and not key.endswith("_env"):
                raise ValueError(f"{key}: secrets are read from the environment, never from a file")
        return options

    @field_validator("written")
    @classmethod
    def _once_each(cls, written: tuple[WrittenText, ...]) -> tuple[WrittenText, ...]:
        return tuple(text for text in WRITTEN_TEXTS if text in written)

    @property
    def written_recipe(self) -> list[tuple[WrittenText, ...]]:
        """What digests of the index's recipe say of `written`: nothing for the default, so that
        stored documents keep theirs.
        """
        return [] if self.written == WRITTEN_TEXTS else [self.written]

    @property
    def table(self) -> str:
        """The name of the index's table."""
        return embedding_table(self.name)


class RunSettings(Settings):
    """`[run]`: where the heavy steps of a build run, and how many parts of them at once. It does
    not change the release.

    Attributes:
        engine: `local` for threads of the build's process, `processes` for worker processes on its
            machine, `dask` for a Dask cluster.
        address: address of the Dask cluster's scheduler.
        workers: number of calls at once; by default one for each core that the build may use, or
            for each thread of the cluster.
    """

    engine: Literal["local", "processes", "dask"] = "local"
    address: Annotated[str, Field(pattern=r"^(tcp|tls|ucx|wss?)://[^\s/:]+:\d+$")] | None = None
    workers: Annotated[int, Field(ge=1)] | None = None

    @model_validator(mode="after")
    def _fits_the_engine(self) -> "RunSettings":
        if self.engine == "local" and self.workers is not None:
            raise ValueError(
                'workers: engine = "local" has none; set engine to "processes" or "dask"'
            )
        if (self.engine == "dask") != (self.address is not None):
            raise ValueError(
                'address: the scheduler of engine = "dask", as in tcp://scheduler:8786, and of no '
                "other engine"
            )
        return self


class Configuration(Settings):
    """The settings of a pegboard.toml, read from `file`; relative paths count from its folder."""

    file: Path
    board: BoardSettings
    catalogs: dict[str, Any]
    indexes: tuple[IndexSettings, ...] = (IndexSettings(),)
    default_index: str | None = None
    enrich: EnrichSettings | None = None
    untrusted: UntrustedSettings = UntrustedSettings()
    overrides: dict[str, OverrideSettings] = Field(default_factory=dict[str, OverrideSettings])
    graph: GraphSettings = GraphSettings()
    find: FindSettings = FindSettings()
    glossary: dict[str, str] = Field(default_factory=dict[str, str])
    examples: ExamplesSettings | None = None
    golden: GoldenSettings | None = None
    gate: GateSettings | None = None
    lock: LockSettings = LockSettings()
    run: RunSettings = RunSettings()
    serve: ServeSettings = ServeSettings()

    @field_validator("glossary")
    @classmethod
    def _has_words(cls, glossary: dict[str, str]) -> dict[str, str]:
        phrases = [term for term in glossary if not TERM.fullmatch(term)]
        if phrases:
            raise ValueError(f"{', '.join(phrases)}: expected a short form of one word, as PR")
        return {term.casefold(): " ".join(text.split()) for term, text in glossary.items()}

    @property
    def glossary_of_release(self) -> dict[str, str]:
        """The short forms and their meanings: the usual ones if an index is in English, overridden
        by `[glossary]`, where an empty text removes one.
        """
        is_english = any(index.language == DEFAULT_LANGUAGE for index in self.indexes)
        terms = {**(usual_short_forms() if is_english else {}), **self.glossary}
        return {term: text for term, text in sorted(terms.items()) if text}

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
        """The name of the index that a search uses by default."""
        return self.default_index or self.indexes[0].name

    def index(self, name: str) -> IndexSettings:
        """Return the settings of an index."""
        return next(index for index in self.indexes if index.name == name)

    def catalogs_named(self, name: str) -> list[str]:
        """Return the names of all catalogs for `all`, otherwise those that `name` lists: one, or
        several with commas between them.

        Raises:
            ConfigurationError: there is no such catalog; the message lists all catalogs.
        """
        if name == "all":
            return list(self.catalogs)
        names = [part.strip() for part in name.split(",")]
        for part in names:
            if part not in self.catalogs:
                raise ConfigurationError(
                    f"No catalog '{part}' in {self.file}; expected one of "
                    f"{', '.join(self.catalogs)}{did_you_mean(part, self.catalogs) or '.'}"
                )
        return names

    def options(self, catalog: str) -> SourceOptions:
        """Return the validated options of a catalog's source."""
        return self.catalogs[catalog]


def load_configuration(file: str | Path, run: Mapping[str, Any] | None = None) -> Configuration:
    """Read and check a pegboard.toml.

    From then on, this process opens the board with the options in `[board.storage]`, and its
    releases may use the encoders in `[[indexes]]`.

    Args:
        run: replaces the table `[run]` of the file.

    Raises:
        ConfigurationError: the file cannot be read, or is invalid; all problems are listed.
    """
    tables = read_toml(file, "write one with `pegboard init`")
    return check_configuration(file, tables if run is None else {**tables, "run": run})


def take_board_settings(file: str | Path) -> None:
    """Open the board of a pegboard.toml with its `[board.storage]` and hosted encoders from now on,
    even if the rest of the file is invalid.
    """
    try:
        tables = read_toml(file, "")
        allow_hosted(configured_encoders(tables))
        board = BoardSettings(**tables["board"])
    except (ConfigurationError, ValidationError, KeyError, TypeError):
        return
    remember_options(board.uri, board.storage)


def check_configuration(file: str | Path, tables: Mapping[str, Any]) -> Configuration:
    """Check the tables of a pegboard.toml; see `load_configuration`."""
    tables = {**tables}
    tables.pop("sweep", None)  # checked by tasks/settings/sweep.py
    problems: list[str] = []
    catalogs = _catalogs(tables.pop("catalogs", None), problems)
    if tables.pop("file", None) is not None:
        problems.append("file: no such setting")
    try:
        path = Path(file).expanduser().resolve()
        configuration = Configuration(**tables, catalogs=catalogs, file=path)
    except ValidationError as error:
        problems += problems_of(error, Configuration)
    else:
        problems += _index_problems(configuration)
        problems += _prompt_problems(configuration)
        if not problems:
            remember_options(configuration.uri, configuration.board.storage)
            allow_hosted(index.encoder for index in configuration.indexes)
            return configuration
    raise ConfigurationError.from_problems(
        str(file), problems, "`pegboard init example.toml` writes a commented example."
    )


def _as_text(value: Any) -> Any:
    """Return a boolean or number of TOML as the text that stores expect, other values unchanged."""
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
            "catalogs: expected at least one source, such as [catalogs.tools] with type and path"
        )
        return {}
    catalogs: dict[str, SourceOptions] = {}
    for name, table in tables.items():
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", name):
            problems.append(
                f"catalogs.{name}: expected a name of letters, digits, '.', '_' and '-', at most 64"
            )
        elif not isinstance(table, Mapping) or not isinstance(table.get("type"), str):
            problems.append(
                f"catalogs.{name}.type: expected the kind of source, such as 'mcp' or 'openapi'"
            )
        else:
            try:
                options = source_kind(table["type"]).options
            except ConfigurationError as error:
                hint = did_you_mean(table["type"], source_kinds())
                problems.append(f"catalogs.{name}.type: {str(error).rstrip('.')}{hint}")
                continue
            try:
                catalogs[name] = options(**table)
            except ValidationError as error:
                problems += problems_of(error, options, f"catalogs.{name}.")
    return catalogs


def _index_problems(configuration: Configuration) -> list[str]:
    names = [index.name for index in configuration.indexes]
    problems = [f"indexes: two are named '{name}'" for name in duplicates(names)]
    if not names:
        problems.append("indexes: expected at least one, or leave it out for the default")
    strategy = default_strategy(configuration.find.strategy) or {}
    if configuration.default_index is not None:
        problems += unknown_indexes("default_index", [configuration.default_index], names)
    problems += unknown_indexes("find.strategy", strategy.get("indexes", ()), names)
    if strategy and Strategy.from_dict(strategy).lacks_probability():
        problems.append(f"find.strategy: '{strategy['name']}' {LACKS_PROBABILITY}")
    return problems


def _prompt_problems(configuration: Configuration) -> list[str]:
    try:
        published_prompts(configuration.base)
    except ConfigurationError as error:
        return [str(error)]
    return []
