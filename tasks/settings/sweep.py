"""`[sweep]` of a pegboard.toml and the parameters of `pegboard sweep`: parameters override the
table, the table overrides the defaults, and all problems are in one message.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import Field, ValidationError, field_validator

from pegboard.errors import ConfigurationError, QueryError
from pegboard.evaluation.golden import GoldenQuery, read_problems
from pegboard.evaluation.measures import KINDS
from pegboard.evaluation.overhead import asks_llm
from pegboard.retrieval.strategies import load_strategy
from pegboard.retrieval.strategy import Strategy
from pegboard.toml_settings import Settings, duplicates, problems_of, read_toml
from tasks.settings.configuration import Configuration, check_configuration
from tasks.settings.release import LACKS_PROBABILITY, default_strategy

MAX_K = 128
"""The most tools that LLM providers accept in one request."""


class SweepSettings(Settings):
    """`[sweep]` of a pegboard.toml, and the options of `pegboard sweep`. Paths in the table
    count from the file's folder.

    Attributes:
        golden: JSON lines of golden queries; `[golden] queries` if None.
        strategies: names, JSON files, or tables of parts.
        k: the cut-offs to measure: numbers, or `1..20`.
        measures: kinds of measures; the first decides.
        max_tokens, max_ms: limits on a choice: mean prompt tokens of its k tools, and the 95th
            percentile of its milliseconds per request.
        margin: by how much a cheaper choice may be worse than the best by the first measure.
        release: a release of the board, or a channel; that of the configuration if None.
    """

    golden: str | None = None
    strategies: Annotated[tuple[str | dict[str, Any], ...], Field(min_length=1)] = (
        "search",
        "clauses",
    )
    k: Annotated[tuple[int, ...], Field(min_length=1)] = tuple(range(1, 21))
    measures: Annotated[tuple[str, ...], Field(min_length=1)] = ("Recall", "Complete")
    max_tokens: Annotated[float | None, Field(gt=0)] = None
    max_ms: Annotated[float | None, Field(gt=0)] = None
    margin: Annotated[float, Field(ge=0, lt=1)] = 0.02
    release: str | None = None

    @field_validator("k", mode="before")
    @classmethod
    def _cut_offs(cls, value: Any) -> Any:
        cut_offs: set[int] = set()
        items: Any = value if isinstance(value, list | tuple) else [value]
        for item in ",".join(map(str, items)).split(","):
            span = re.fullmatch(r"\s*(\d{1,4})\s*(?:(?:\.\.|-)\s*(\d{1,4})\s*)?", item)
            first, last = (int(span[1]), int(span[2] or span[1])) if span else (0, 0)
            if not 1 <= first <= last <= MAX_K:
                raise ValueError(f"expected numbers from 1 to {MAX_K}, or 1..20 (got {item!r})")
            cut_offs.update(range(first, last + 1))
        return tuple(sorted(cut_offs))

    @field_validator("measures")
    @classmethod
    def _kinds(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if name not in KINDS:
                raise ValueError(
                    f"expected measures of {', '.join(KINDS)}, without @k: k is swept (got {name})"
                )
        return value


@dataclass(frozen=True, slots=True)
class Sweep:
    """A sweep that is ready to run: its settings, and what they name.

    Attributes:
        strategies: in the order in which they were given.
    """

    settings: SweepSettings
    configuration: Configuration
    strategies: tuple[Strategy, ...]
    queries: tuple[GoldenQuery, ...]


def read_sweep(config: str | Path, parameters: Mapping[str, Any]) -> Sweep:
    """Read and check what a sweep needs, before anything is searched.

    Args:
        config: the pegboard.toml.
        parameters: the options; None counts as not given. Their paths count from the
            working directory.

    Raises:
        ConfigurationError: lists every problem of the configuration, or of the sweep.
    """
    file = Path(config).expanduser().resolve()
    given = {name: value for name, value in parameters.items() if value is not None}
    tables = read_toml(config, "`pegboard init`")
    configuration, problems = check_configuration(file, tables), list[str]()
    table = tables.get("sweep", {})
    if not isinstance(table, Mapping):
        raise ConfigurationError(f"{file}: sweep: expected a table [sweep] (got {table!r:.80})")
    settings = _settings({**cast("Mapping[str, Any]", table), **given}, problems)

    def path(name: str, value: str) -> Path:
        folder = file.parent if name in table and name not in given else Path.cwd()
        return (folder / Path(value).expanduser()).resolve()

    strategies = _strategies(settings.strategies, lambda name: path("strategies", name), problems)
    queries: list[GoldenQuery] = []
    if settings.golden is not None:
        queries = _queries(path("golden", settings.golden), problems)
    elif configuration.golden is not None:
        queries = _queries(configuration.base / configuration.golden.queries, problems)
    else:
        problems.append(
            "golden: missing; give --golden FILE, or set [golden] queries in the configuration"
        )
    if problems:
        raise ConfigurationError.from_problems(
            "The sweep", problems, "`pegboard sweep --help` has examples."
        )
    return Sweep(settings, configuration, tuple(strategies), tuple(queries))


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
                own: Any = load_strategy(str(path(reference)))
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
