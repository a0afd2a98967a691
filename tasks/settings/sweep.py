"""What a sweep is asked for: its parameters, over the `[sweep]` table of the configuration, over
defaults; every problem in one message.
"""

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from pegboard.canonical import digest
from pegboard.errors import ConfigurationError, QueryError
from pegboard.evaluation.golden import GoldenQuery, read_problems
from pegboard.evaluation.measures import KINDS
from pegboard.retrieval.strategies import named_strategy
from pegboard.retrieval.strategy import Strategy
from tasks.settings.configuration import Configuration, load_configuration

MOST_K = 128
"""The most tools that providers of models take with one request."""
PROBLEMS = 20
"""Problems that a message lists; it counts them all."""


class SweepSettings(BaseModel):
    """`[sweep]` of a pegboard.toml, and the parameters of the flow. Paths in the table count from
    the file's folder.

    Attributes:
        golden: JSON lines of golden queries; `[golden] queries` if None.
        strategies: names, JSON files, or tables of parts.
        k: how many of the first tools are looked at: numbers, or `1..20`.
        tools: sizes of samples of the catalog; `all` is the whole. By default 100, 500, 1000, 5000
            and 10000, as far as they are smaller.
        measures: kinds of measures; the first decides.
        indexes: those that are asked; all if empty.
        seed, samples: the first seed of the samples, and how many samples of each size are drawn.
        share: of a sample, how much of it are tools that golden queries need, as long as there are
            any.
        max_tokens, max_ms: what a choice may cost: mean prompt tokens of its k tools, and
            milliseconds of 95 of 100 requests.
        timed: requests of each cell that are asked one at a time to measure how long they take.
        out: the folder for results; `sweep` beside the configuration if None.
        board: where the sweep's own board is built, or that of `release`.
        release: a published release, or a channel, that is measured instead of building one.
        llm, llm_api_base: the model that parts of strategies may ask.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    golden: str | None = None
    strategies: Annotated[tuple[str | dict[str, Any], ...], Field(min_length=1)] = (
        "search",
        "clauses",
    )
    k: Annotated[tuple[int, ...], Field(min_length=1)] = tuple(range(1, 21))
    tools: tuple[int | Literal["all"], ...] = ()
    measures: Annotated[tuple[str, ...], Field(min_length=1)] = ("Recall", "Complete")
    indexes: tuple[str, ...] = ()
    seed: Annotated[int, Field(ge=0)] = 0
    samples: Annotated[int, Field(ge=1, le=100)] = 1
    share: Annotated[float, Field(gt=0, le=1)] = 0.75
    max_tokens: Annotated[float | None, Field(gt=0)] = None
    max_ms: Annotated[float | None, Field(gt=0)] = None
    timed: Annotated[int, Field(ge=0, le=1000)] = 20
    out: str | None = None
    board: str | None = None
    release: str | None = None
    llm: str | None = None
    llm_api_base: str | None = None

    @field_validator("k", mode="before")
    @classmethod
    def _numbers(cls, value: Any) -> Any:
        numbers: set[int] = set()
        for one in _listed(value):
            span = re.fullmatch(r"\s*(\d{1,4})\s*(?:(?:\.\.|-)\s*(\d{1,4})\s*)?", str(one))
            first, last = (int(span[1]), int(span[2] or span[1])) if span else (0, 0)
            if not 1 <= first <= last <= MOST_K or isinstance(one, bool):
                raise ValueError(
                    f"{one!r} is no number of tools; expected such as 5, or 1..20, from 1 to "
                    f"{MOST_K}"
                )
            numbers.update(range(first, last + 1))
        return tuple(sorted(numbers))

    @field_validator("tools", mode="before")
    @classmethod
    def _sizes(cls, value: Any) -> Any:
        sizes = [int(one) if str(one).isdecimal() else one for one in _listed(value)]
        if wrong := [one for one in sizes if one != "all" and (type(one) is not int or one < 1)]:
            raise ValueError(
                f"{wrong[0]!r} is no size of a catalog; expected numbers such as 100,500,1000, or "
                f"all"
            )
        return tuple(dict.fromkeys(sizes))

    @field_validator("measures", mode="before")
    @classmethod
    def _kinds(cls, value: Any) -> Any:
        known = {kind.lower(): kind for kind in KINDS}
        named = [str(one).strip() for one in _listed(value)]
        if unknown := [one for one in named if one.lower() not in known]:
            raise ValueError(
                f"there is no measure {', '.join(unknown)}; expected one of {', '.join(KINDS)}, "
                f"without @k: k is swept"
            )
        return tuple(dict.fromkeys(known[one.lower()] for one in named))


@dataclass(frozen=True, slots=True)
class Sweep:
    """A sweep that is ready to run: what was asked for, with everything found that it names.

    Attributes:
        settings: what was asked for; `release` is set as soon as the board is built.
        configuration: the pegboard.toml, None where a published release is measured without one.
        strategies: in the order in which they were given.
        queries: the golden queries.
        golden: where they stand.
        out, uri: absolute; the board may be an address.
    """

    settings: SweepSettings
    configuration: Configuration | None
    strategies: tuple[Strategy, ...]
    queries: tuple[GoldenQuery, ...]
    golden: Path
    out: Path
    uri: str

    def of(self, release: str) -> "Sweep":
        """The same sweep of the release that was built for it."""
        return replace(self, settings=self.settings.model_copy(update={"release": release}))

    @property
    def golden_digest(self) -> str:
        """Equal for equal queries in the same order."""
        return digest([one.to_dict() for one in self.queries])


def read_sweep(config: str | Path, given: Mapping[str, Any], *, write: bool = False) -> Sweep:
    """Read and check what a sweep needs, before anything is built or asked.

    Args:
        config: the pegboard.toml; need not be there where `given` names a board and a release.
        given: the parameters of the flow; those that are None count as not given. Their paths count
            from the working directory.
        write: whether the choice is to be written into the configuration, which then has to be
            there.

    Raises ConfigurationError that lists every problem.
    """
    file = Path(config).expanduser().resolve()
    stated = {name: value for name, value in given.items() if value is not None}
    problems: list[str] = []
    configuration: Configuration | None = None
    table: dict[str, Any] = {}
    if file.exists() or not {"board", "release"} <= stated.keys():
        table = _sweep_table(file)
        try:
            configuration = load_configuration(file)
        except ConfigurationError as error:
            problems.append(str(error))
    settings = _settings({**table, **stated}, problems)
    base = {
        name: file.parent if name in table and name not in stated else Path.cwd()
        for name in ("golden", "strategies", "out")
    }
    strategies = _strategies(settings.strategies, base["strategies"], problems)
    golden = _golden_path(settings, configuration, base["golden"], problems)
    queries = _queries(golden, problems) if golden else []
    _check(settings, configuration, strategies, problems)
    if write and configuration is None:
        problems.append(
            f"write: there is no configuration at {config} to write into; give one with -c"
        )
    if problems or golden is None:
        raise _refused(problems)
    folder = configuration.base if configuration else Path.cwd()
    out = (
        base["out"] / Path(settings.out).expanduser() if settings.out else folder / "sweep"
    ).resolve()
    return Sweep(
        settings,
        configuration,
        strategies,
        tuple(queries),
        golden,
        out,
        _uri(settings, configuration, out),
    )


def _sweep_table(file: Path) -> dict[str, Any]:
    """The `[sweep]` table of a pegboard.toml, empty if it has none."""
    try:
        table = tomllib.loads(file.read_text("utf-8")).get("sweep", {})
    except FileNotFoundError as error:
        raise ConfigurationError(
            f"There is no configuration at {file}. Give one with -c, or measure a published "
            f"release with --board and --release."
        ) from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError(
            f"{file} cannot be read as TOML: {error}. Correct that place."
        ) from error
    if not isinstance(table, Mapping):
        raise ConfigurationError(f"{file}: sweep is {table!r:.80}; expected a table [sweep].")
    return dict(cast("Mapping[str, Any]", table))


def _settings(values: Mapping[str, Any], problems: list[str]) -> SweepSettings:
    """The settings; with defaults in the place of those that are wrong, so that what else is wrong
    is found, too.
    """
    try:
        return SweepSettings(**values)
    except ValidationError as error:
        wrong: set[str] = set()
        for one in error.errors(include_url=False):
            name = str(one["loc"][0])
            unknown = one["type"] == "extra_forbidden"
            said = (
                "there is no such setting" if unknown else one["msg"].removeprefix("Value error, ")
            )
            problems.append(f"{name}: {said[0].lower()}{said[1:]}")
            wrong.add(name)
        return SweepSettings(**{name: value for name, value in values.items() if name not in wrong})


def _strategies(
    named: Iterable[str | Mapping[str, Any]], base: Path, problems: list[str]
) -> tuple[Strategy, ...]:
    strategies: list[Strategy] = []
    for one in named:
        try:
            strategies.append(_strategy(one, base))
        except (QueryError, OSError, ValueError) as error:
            problems.append(f"strategies: {error}")
    names = [strategy.name for strategy in strategies]
    problems += [
        f"strategies: two are named '{name}'"
        for name in dict.fromkeys(names)
        if names.count(name) > 1
    ]
    problems += [
        f"strategies: '{strategy.name}' names indexes of its own; leave `indexes` out of it, "
        f"since a sweep asks every index"
        for strategy in strategies
        if strategy.indexes
    ]
    return tuple(strategies)


def _strategy(one: str | Mapping[str, Any], base: Path) -> Strategy:
    if isinstance(one, str) and not one.endswith(".json"):
        return named_strategy(one)
    read: Any = json.loads((base / one).read_text("utf-8")) if isinstance(one, str) else one
    if not isinstance(read, Mapping):
        raise QueryError(f"{one} holds {type(read).__name__}; expected a JSON object")
    named = cast("Mapping[str, Any]", read)
    return Strategy.from_dict(
        named if "name" in named or not isinstance(one, str) else {"name": Path(one).stem, **named}
    )


def _golden_path(
    settings: SweepSettings, configuration: Configuration | None, base: Path, problems: list[str]
) -> Path | None:
    if settings.golden is not None:
        return (base / Path(settings.golden).expanduser()).resolve()
    if configuration is not None and configuration.golden is not None:
        return (configuration.base / configuration.golden.queries).resolve()
    problems.append(
        "golden: no golden queries are named; give --golden FILE, or [golden] queries in the "
        "configuration"
    )
    return None


def _queries(golden: Path, problems: list[str]) -> list[GoldenQuery]:
    queries, wrong = read_problems(golden)
    problems += [f"golden: {one}" for one in wrong]
    if not queries and not wrong:
        problems.append(f"golden: {golden} has no queries")
    return queries


def _check(
    settings: SweepSettings,
    configuration: Configuration | None,
    strategies: Iterable[Strategy],
    problems: list[str],
) -> None:
    if settings.max_ms is not None and not settings.timed:
        problems.append(
            "max_ms: with timed = 0 nothing is known of milliseconds; time some requests"
        )
    if settings.llm_api_base and not settings.llm:
        problems.append("llm_api_base: it is about a model; name one with llm")
    if configuration is None or settings.release is not None:
        return
    names = [index.name for index in configuration.indexes]
    problems += [
        f"indexes: there is no index '{one}'; expected one of {', '.join(names)}"
        for one in settings.indexes
        if one not in names
    ]
    problems += [
        f"strategies: '{strategy.name}' asks for probabilities, which need [golden] queries in "
        f"{configuration.file}"
        for strategy in strategies
        if strategy.needs_calibration() and configuration.golden is None
    ]


def _uri(settings: SweepSettings, configuration: Configuration | None, out: Path) -> str:
    """The board: the one named; that of the configuration, if a release of it is measured or an
    LLM's replies are kept there.
    """
    if settings.board is not None:
        return (
            settings.board
            if "://" in settings.board
            else str(Path(settings.board).expanduser().resolve())
        )
    if configuration is not None and (
        settings.release is not None or configuration.enrich is not None
    ):
        return configuration.uri
    return str(out / "board")


def _listed(value: Any) -> list[Any]:
    """The pieces of a list, of one value, or of a text with commas between them."""
    several = cast("list[Any]", list(value)) if isinstance(value, list | tuple) else [value]
    return [
        piece
        for one in several
        for piece in (
            [part.strip() for part in one.split(",") if part.strip()]
            if isinstance(one, str)
            else [one]
        )
    ]


def _refused(problems: list[str]) -> ConfigurationError:
    if len(problems) == 1:
        return ConfigurationError(problems[0])
    more = f"\n  ... and {len(problems) - PROBLEMS} more" if len(problems) > PROBLEMS else ""
    listed = "\n".join(f"  - {one}" for one in problems[:PROBLEMS])
    return ConfigurationError(
        f"The sweep cannot run, for {len(problems)} reasons:\n{listed}{more}\n`pegboard sweep "
        f"--help` has examples."
    )
