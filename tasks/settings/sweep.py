"""`[sweep]` of a pegboard.toml and the parameters of `pegboard sweep`: parameters override the
table, the table overrides the defaults, and all problems are in one message.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import Field, ValidationError, field_validator

from pegboard.cli.find import strategy_option
from pegboard.errors import ConfigurationError, QueryError
from pegboard.evaluation.golden import GoldenQuery, read_problems
from pegboard.evaluation.measures import KINDS
from pegboard.evaluation.overhead import asks_llm
from pegboard.retrieval.strategy import Strategy
from pegboard.toml_settings import Settings, duplicates, problems_of, read_toml
from tasks.settings.configuration import Configuration, check_configuration
from tasks.settings.release import LACKS_PROBABILITY, default_strategy, unknown_indexes

MAX_K = 128
"""The most tools that LLM providers accept in one request."""


class SweepSettings(Settings):
    """`[sweep]` of a pegboard.toml, and the parameters of the flow. Paths in the table count from
    the file's folder.

    Attributes:
        golden: JSON lines of golden queries; `[golden] queries` if None.
        strategies: names, JSON files, or tables of parts.
        k: the cut-offs to measure: numbers, or `1..20`.
        tools: sizes of samples of the catalog; the whole is always measured. By default 100, 500,
            1000, 5000 and 10000, as far as they have the tools that queries need.
        measures: kinds of measures; the first decides.
        indexes: the indexes to search; all if empty.
        max_tokens, max_ms: limits on a choice: mean prompt tokens of its k tools, and the 95th
            percentile of its milliseconds per request.
        margin: by how much a cheaper choice may be worse than the best by the first measure.
        out: the folder for results; `sweep` beside the configuration if None.
        release: a release of the configured board, or a channel, to measure instead of building
            one.
    """

    golden: str | None = None
    strategies: Annotated[tuple[str | dict[str, Any], ...], Field(min_length=1)] = (
        "search",
        "clauses",
    )
    k: Annotated[tuple[int, ...], Field(min_length=1)] = tuple(range(1, 21))
    tools: tuple[int | Literal["all"], ...] = ()
    measures: Annotated[tuple[str, ...], Field(min_length=1)] = ("Recall", "Complete")
    indexes: tuple[str, ...] = ()
    max_tokens: Annotated[float | None, Field(gt=0)] = None
    max_ms: Annotated[float | None, Field(gt=0)] = None
    margin: Annotated[float, Field(ge=0, lt=1)] = 0.02
    out: str | None = None
    release: str | None = None

    @field_validator("k", mode="before")
    @classmethod
    def _cut_offs(cls, value: Any) -> Any:
        cut_offs: set[int] = set()
        for item in _items(value):
            span = re.fullmatch(r"\s*(\d{1,4})\s*(?:(?:\.\.|-)\s*(\d{1,4})\s*)?", str(item))
            first, last = (int(span[1]), int(span[2] or span[1])) if span else (0, 0)
            if not 1 <= first <= last <= MAX_K or isinstance(item, bool):
                raise ValueError(f"expected numbers from 1 to {MAX_K}, or 1..20 (got {item!r})")
            cut_offs.update(range(first, last + 1))
        return tuple(sorted(cut_offs))

    @field_validator("tools", mode="before")
    @classmethod
    def _sizes(cls, value: Any) -> Any:
        sizes = [int(item) if str(item).isdecimal() else item for item in _items(value)]
        for size in sizes:
            if size != "all" and (type(size) is not int or size < 1):
                raise ValueError(f"expected numbers such as 100,500,1000, or all (got {size!r})")
        return tuple(dict.fromkeys(sizes))

    @field_validator("measures", mode="before")
    @classmethod
    def _kinds(cls, value: Any) -> Any:
        kinds = {kind.lower(): kind for kind in KINDS}
        names = [str(item).strip() for item in _items(value)]
        for name in names:
            if name.lower() not in kinds:
                raise ValueError(
                    f"expected measures of {', '.join(KINDS)}, without @k: k is swept (got {name})"
                )
        return tuple(dict.fromkeys(kinds[name.lower()] for name in names))


@dataclass(frozen=True, slots=True)
class Sweep:
    """A sweep that is ready to run: its settings, and what they name.

    Attributes:
        settings: `release` is set as soon as the board is built.
        strategies: in the order in which they were given.
        queries: the golden queries.
        golden: their file.
        out: the folder for results, absolute.
        uri: the board, an absolute folder or an address: the configured one if a release of it is
            measured or if it holds LLM replies, else one in `out`.
    """

    settings: SweepSettings
    configuration: Configuration
    strategies: tuple[Strategy, ...]
    queries: tuple[GoldenQuery, ...]
    golden: Path
    out: Path
    uri: str

    def of(self, release: str) -> "Sweep":
        """Return the same sweep of the release that was built for it."""
        return replace(self, settings=self.settings.model_copy(update={"release": release}))


def read_sweep(config: str | Path, parameters: Mapping[str, Any]) -> Sweep:
    """Read and check what a sweep needs, before anything is built or searched.

    Args:
        config: the pegboard.toml.
        parameters: the parameters of the flow; None counts as not given. Their paths count from the
            working directory.

    Raises:
        ConfigurationError: lists every problem.
    """
    file = Path(config).expanduser().resolve()
    given = {name: value for name, value in parameters.items() if value is not None}
    tables, problems, configuration = read_toml(config, "`pegboard init`"), list[str](), None
    table = tables.get("sweep", {})
    if not isinstance(table, Mapping):
        problems.append(f"{file}: sweep: expected a table [sweep] (got {table!r:.80})")
        table = {}
    try:
        configuration = check_configuration(file, tables)
    except ConfigurationError as error:
        problems.append(str(error))
    settings = _settings({**cast("Mapping[str, Any]", table), **given}, problems)

    def path(name: str, value: str) -> Path:
        folder = file.parent if name in table and name not in given else Path.cwd()
        return (folder / Path(value).expanduser()).resolve()

    strategies = _strategies(settings.strategies, lambda name: path("strategies", name), problems)
    golden, queries = Path(), list[GoldenQuery]()
    if settings.golden is not None:
        golden = path("golden", settings.golden)
        queries = _queries(golden, problems)
    elif configuration is not None and configuration.golden is not None:
        golden = (configuration.base / configuration.golden.queries).resolve()
        queries = _queries(golden, problems)
    else:
        problems.append(
            "golden: missing; give --golden FILE, or set [golden] queries in the configuration"
        )
    if configuration is not None and settings.release is None:
        names = [index.name for index in configuration.indexes]
        problems += unknown_indexes("indexes", settings.indexes, names)
    if configuration is None or problems:
        raise ConfigurationError.from_problems(
            "The sweep", problems, "`pegboard sweep --help` has examples."
        )
    out = path("out", settings.out) if settings.out else file.parent / "sweep"
    configured = settings.release is not None or configuration.enrich is not None
    uri = configuration.uri if configured else str(out / "board")
    return Sweep(settings, configuration, tuple(strategies), tuple(queries), golden, out, uri)


def _settings(values: Mapping[str, Any], problems: list[str]) -> SweepSettings:
    """The settings, with defaults for those that are wrong, so that later checks still run."""
    try:
        return SweepSettings(**values)
    except ValidationError as error:
        problems += problems_of(error, SweepSettings)
        wrong = {str(problem["loc"][0]) for problem in error.errors()}
        return SweepSettings(**{name: value for name, value in values.items() if name not in wrong})


def _strategies(
    references: Iterable[str | Mapping[str, Any]], path: Callable[[str], Path], problems: list[str]
) -> list[Strategy]:
    """The valid ones of strategies given by name, as tables of parts or as JSON files at `path`."""
    strategies: list[Strategy] = []
    for reference in references:
        try:
            table: Any = reference
            if isinstance(reference, str) and reference.endswith(".json"):
                own: Any = strategy_option(str(path(reference)))
                table = {"name": Path(reference).stem, **own}
            strategies.append(Strategy.from_dict(default_strategy(table) or {}))
        except QueryError as error:
            problems.append(f"strategies: {error}")
    names = [strategy.name for strategy in strategies]
    problems += [f"strategies: two are named '{name}'; rename one" for name in duplicates(names)]
    problems += [
        f"strategies: '{strategy.name}' names its indexes; leave `indexes` out of it, since a "
        f"sweep searches every index"
        for strategy in strategies
        if strategy.indexes
    ]
    problems += [
        f"strategies: '{strategy.name}' {LACKS_PROBABILITY}"
        for strategy in strategies
        if strategy.lacks_probability()
    ]
    problems += [
        f"strategies: '{strategy.name}' asks an LLM, and a sweep has none; measure it with "
        f"`pegboard eval --llm`"
        for strategy in strategies
        if asks_llm(strategy)
    ]
    return strategies


def _queries(golden: Path, problems: list[str]) -> list[GoldenQuery]:
    queries, wrong = read_problems(golden)
    problems += [f"golden: {problem}" for problem in wrong]
    if not queries and not wrong:
        problems.append(f"golden: {golden} has no queries")
    return queries


def _items(value: Any) -> list[Any]:
    """Return the items of a list, of one value, or of a text with commas between them."""
    items: list[Any] = []
    for item in cast("list[Any]", list(value)) if isinstance(value, list | tuple) else [value]:
        if isinstance(item, str):
            items += [part.strip() for part in item.split(",") if part.strip()]
        else:
            items.append(item)
    return items
