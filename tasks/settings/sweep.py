"""`[sweep]` of a pegboard.toml and the parameters of `pegboard sweep`. Parameters override the
table, the table overrides the defaults, and all problems are reported in one message.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import Field, ValidationError, ValidationInfo, field_validator

from pegboard.errors import ConfigurationError, QueryError
from pegboard.evaluation.agent_search import AgentStrategy, agent_strategy
from pegboard.evaluation.golden import GoldenQuery, read_problems
from pegboard.evaluation.measures import KINDS
from pegboard.evaluation.overhead import asks_llm
from pegboard.evaluation.pools import ALL, Pool, parse_noise, parse_sizes
from pegboard.retrieval.strategies import load_strategy
from pegboard.retrieval.strategy import Strategy
from pegboard.toml_settings import Settings, duplicates, problems_of, read_toml
from tasks.settings.configuration import Configuration, check_configuration
from tasks.settings.release import LACKS_PROBABILITY, default_strategy

ASKS_LLM = "asks an LLM; give one: --llm MODEL"
SEARCH_AGENTS = ("both-hybrid", "both-vector", "both-BM25", "both-hybrid-clauses")
"""What `Board.search_agents` can do without an LLM, by its options `mode` and `decompose`."""
NOT_TIMED = "max_ms: strategies that ask an LLM are not timed; leave it out, or sweep them alone"
MAX_K = 128
"""Largest number of tools that LLM providers accept in one request."""


class SweepSettings(Settings):
    """`[sweep]` of a pegboard.toml, and the options of `pegboard sweep`. Paths in the table count
    from the file's folder.

    Attributes:
        golden: JSON lines of golden queries; by default `[golden] queries`.
        strategies: names, JSON files, or tables of parts.
        k: the cut-offs to measure, as numbers or as `1..20`.
        measures: kinds of measures; candidates are compared by the first.
        max_tokens, max_ms: limits on a candidate: mean prompt tokens of its k tools and of what its
            LLM reads and writes, and the 95th percentile of its milliseconds per request.
        margin: largest difference by the first measure of a cheaper candidate from the best.
        agents: whether agents are searched for instead of tools; `strategies` are then names of
            `pegboard.evaluation.agent_search`, by default those of `Board.search_agents`.
        tools, noise: pools to measure in beside the whole release, as `pegboard eval` takes them.
        release: a release of the board, or a channel; by default the configured channel.
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
    agents: bool = False
    tools: tuple[Pool, ...] = ()
    noise: tuple[Pool, ...] = ()
    release: str | None = None

    @field_validator("k", mode="before")
    @classmethod
    def _cut_offs(cls, value: Any) -> Any:
        cut_offs: set[int] = set()
        items: Any = value if isinstance(value, list | tuple) else [value]
        for item in ",".join(map(str, items)).split(","):
            match = re.fullmatch(r"\s*(\d{1,4})\s*(?:(?:\.\.|-)\s*(\d{1,4})\s*)?", item)
            start = int(match[1]) if match else 0
            end = int(match[2] or match[1]) if match else 0
            if not 1 <= start <= end <= MAX_K:
                raise ValueError(f"expected numbers from 1 to {MAX_K}, or 1..20 (got {item!r})")
            cut_offs.update(range(start, end + 1))
        return tuple(sorted(cut_offs))

    @field_validator("tools", "noise", mode="before")
    @classmethod
    def _pools(cls, value: Any, info: ValidationInfo) -> Any:
        items: Any = value if isinstance(value, list | tuple) else [value]
        parse = parse_sizes if info.field_name == "tools" else parse_noise
        try:
            return parse(",".join(map(str, items)))
        except ConfigurationError as error:
            raise ValueError(str(error)) from error

    @property
    def pools(self) -> tuple[Pool, ...]:
        """All pools, the whole release first; none if none are set."""
        if not (self.tools or self.noise):
            return ()
        return tuple(dict.fromkeys((ALL, *self.tools, *self.noise)))

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
    """The checked input of a sweep.

    Attributes:
        strategies: in the order of the settings; none if agents are searched for.
        agent_strategies: if they are, how.
    """

    settings: SweepSettings
    configuration: Configuration
    strategies: tuple[Strategy, ...]
    agent_strategies: tuple[AgentStrategy, ...]
    queries: tuple[GoldenQuery, ...]

    @property
    def asking(self) -> list[str]:
        """The names of the strategies that ask an LLM."""
        return [
            *(strategy.name for strategy in self.strategies if asks_llm(strategy)),
            *(strategy.name for strategy in self.agent_strategies if strategy.asks_llm),
        ]


def read_sweep(config: str | Path, parameters: Mapping[str, Any], *, llm: bool = False) -> Sweep:
    """Read and check the input of a sweep.

    Args:
        config: path of the pegboard.toml.
        llm: whether strategies may ask an LLM.
        parameters: options that override the table `[sweep]`, unless they are None. Their paths
            count from the working directory.

    Raises:
        ConfigurationError: the configuration or the sweep is invalid; lists every problem.
    """
    file = Path(config).expanduser().resolve()
    options = {name: value for name, value in parameters.items() if value is not None}
    tables = read_toml(config, "`pegboard init`")
    configuration = check_configuration(file, tables)
    problems: list[str] = []
    table = tables.get("sweep", {})
    if not isinstance(table, Mapping):
        raise ConfigurationError(f"{file}: sweep: expected a table [sweep] (got {table!r:.80})")
    settings = _settings({**cast("Mapping[str, Any]", table), **options}, problems)

    def path(name: str, value: str) -> Path:
        is_of_table = name in table and name not in options
        folder = file.parent if is_of_table else Path.cwd()
        return (folder / Path(value).expanduser()).resolve()

    strategies: list[Strategy] = []
    agent_strategies: list[AgentStrategy] = []
    if settings.agents:
        agent_strategies = _agent_strategies(settings, problems)
    else:
        references = settings.strategies
        strategies = _strategies(references, lambda name: path("strategies", name), problems)
    queries: list[GoldenQuery] = []
    if settings.golden is not None:
        queries = _queries(path("golden", settings.golden), settings.agents, problems)
    elif configuration.golden is not None:
        file = configuration.base / configuration.golden.queries
        queries = _queries(file, settings.agents, problems)
    else:
        problems.append(
            "golden: missing; give --golden FILE, or set [golden] queries in the configuration"
        )
    sweep = Sweep(
        settings, configuration, tuple(strategies), tuple(agent_strategies), tuple(queries)
    )
    asking = sweep.asking
    if not llm:
        problems += [f"strategies: '{name}' {ASKS_LLM}" for name in asking]
    elif asking and settings.max_ms is not None:
        problems.append(NOT_TIMED)
    if problems:
        raise ConfigurationError.from_problems(
            "The sweep", problems, "`pegboard sweep --help` has examples."
        )
    return sweep


def _settings(values: Mapping[str, Any], problems: list[str]) -> SweepSettings:
    """Return the settings, with defaults for invalid ones, so that later checks still run."""
    try:
        return SweepSettings(**values)
    except ValidationError as error:
        problems += problems_of(error, SweepSettings)
        invalid = {str(problem["loc"][0]) for problem in error.errors()}
        valid = {name: value for name, value in values.items() if name not in invalid}
        return SweepSettings(**valid)


def _strategies(
    references: Iterable[str | Mapping[str, Any]], path: Callable[[str], Path], problems: list[str]
) -> list[Strategy]:
    """Return the valid strategies; problems of the others are added to `problems`.

    Args:
        references: names of strategies, tables of parts, or names of JSON files.
        path: returns the path of a JSON file.
    """
    strategies: list[Strategy] = []
    for reference in references:
        try:
            table: Any = reference
            if isinstance(reference, str) and reference.endswith(".json"):
                parts: Any = load_strategy(str(path(reference)))
                table = {"name": Path(reference).stem, **parts}
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
    return strategies


def _agent_strategies(settings: SweepSettings, problems: list[str]) -> list[AgentStrategy]:
    """Return the valid ways of searching for agents; problems are added to `problems`."""
    if settings.pools:
        problems.append("agents: searched in whole releases; leave out `tools` and `noise`")
    is_set = "strategies" in settings.model_fields_set
    names: Sequence[Any] = settings.strategies if is_set else SEARCH_AGENTS
    strategies: list[AgentStrategy] = []
    for name in names:
        try:
            strategies.append(agent_strategy(str(name)))
        except QueryError as error:
            problems.append(f"strategies: {error}")
    return strategies


def _queries(golden: Path, agents: bool, problems: list[str]) -> list[GoldenQuery]:
    queries, query_problems = read_problems(golden, agents=agents)
    problems += [f"golden: {problem}" for problem in query_problems]
    if not queries and not query_problems:
        problems.append(f"golden: {golden} has no queries")
    return queries
