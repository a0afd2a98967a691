"""The gate of a configuration: its golden queries, strategies, rules and measures, all checked."""

from collections.abc import Sequence
from dataclasses import dataclass

from pegboard.canonical import digest
from pegboard.errors import ConfigurationError
from pegboard.evaluation.golden import GoldenQuery, read_problems
from pegboard.evaluation.measures import STANDARD, Measure, parse_measure
from pegboard.retrieval.strategies import DEFAULT_STRATEGY, named_strategy
from pegboard.retrieval.strategy import Strategy
from tasks.gate.rules import FORMS, Rule, parse_rule
from tasks.golden.reading import read_golden
from tasks.settings.configuration import Configuration
from tasks.settings.release import (
    GateSettings,
    default_strategy,
    read_strategies,
    unknown_indexes,
)

MAIN_MEASURE = Measure("Recall", 5)
"""The measure by which releases are compared where no other was chosen."""


@dataclass(frozen=True, slots=True)
class GateSpec:
    """What a gate measures, and how it decides.

    Attributes:
        strategies: measured in every index.
        canaries: queries each of which has to find all its tools among the first `canary_k`.
        choose: the measure that decides which strategy and index become the default; None leaves
            them as configured.
        measures: those to report, and those that rules and the choice need.
        captured: the largest share of captured queries; None without `[gate]`.
    """

    queries: tuple[GoldenQuery, ...]
    strategies: tuple[Strategy, ...]
    canaries: tuple[GoldenQuery, ...] = ()
    canary_k: int = 5
    rules: tuple[Rule, ...] = ()
    choose: Measure | None = None
    measures: tuple[Measure, ...] = ()
    captured: float | None = None

    @property
    def main(self) -> Measure:
        """The measure that is shown where there is room for one."""
        return self.choose or MAIN_MEASURE

    @property
    def k(self) -> int:
        """The cut-off by which a query counts as lost or won."""
        return self.main.k or MAIN_MEASURE.k or 5

    @property
    def digest(self) -> str:
        """Equal for equal golden queries in the same order."""
        return digest([query.to_dict() for query in self.queries])

    @property
    def release_digest(self) -> str:
        """What a release owes to `[gate]`: queries, strategies and the choice, not the rules."""
        strategies = [strategy.to_dict() for strategy in self.strategies]
        return digest(self.digest, strategies, str(self.choose) if self.choose else None)


def has_gate(configuration: Configuration) -> bool:
    """Return whether staged releases are measured: there are rules, or at least golden queries."""
    return configuration.gate is not None or configuration.golden is not None


def configured_strategy(configuration: Configuration) -> Strategy:
    """Return the strategy that readers use unless they, or a gate, choose another."""
    configured = default_strategy(configuration.find.strategy)
    return (
        named_strategy(DEFAULT_STRATEGY) if configured is None else Strategy.from_dict(configured)
    )


def read_gate(configuration: Configuration) -> GateSpec | None:
    """Read the gate of a configuration; without `[gate]`, its golden queries alone.

    Returns:
        None without `[gate]` and `[golden]`.

    Raises:
        ConfigurationError: lists every problem of the rules, files, strategies and measures.
    """
    golden = read_golden(configuration)
    settings = configuration.gate
    if settings is None:
        if golden is None:
            return None
        measures = tuple(dict.fromkeys((MAIN_MEASURE, *map(parse_measure, STANDARD))))
        return GateSpec(golden, (configured_strategy(configuration),), measures=measures)
    problems: list[str] = []
    queries = golden or ()
    if settings.queries is not None:
        queries = _read_queries(configuration, "queries", settings.queries, problems)
    elif not queries:
        problems.append("queries: missing; name a file of golden queries here, or in [golden]")
    canaries = _read_queries(configuration, "canaries", settings.canaries, problems)
    rules = _rules(configuration, settings, queries, problems)
    strategies = _strategies(configuration, settings, problems)
    choose = _measures("choose", [settings.choose] if settings.choose else [], problems)
    reported = _measures("measures", settings.measures or STANDARD, problems)
    if problems:
        raise ConfigurationError.from_problems(
            f"[gate] of {configuration.file}", problems, _next_step(problems)
        )
    needed = dict.fromkeys((*reported, *choose, MAIN_MEASURE, *(rule.measure for rule in rules)))
    return GateSpec(
        queries,
        strategies,
        canaries,
        settings.canary_k,
        rules,
        choose[0] if choose else None,
        measures=tuple(needed),
        captured=settings.captured,
    )


def _read_queries(
    configuration: Configuration, setting: str, name: str | None, problems: list[str]
) -> tuple[GoldenQuery, ...]:
    if name is None:
        return ()
    file = configuration.base / name
    queries, wrong = read_problems(file)
    if not queries and not wrong:
        wrong = [f"{file} has no query"]
    problems += [f"{setting}: {problem}" for problem in wrong]
    return tuple(queries)


def _rules(
    configuration: Configuration,
    settings: GateSettings,
    queries: Sequence[GoldenQuery],
    problems: list[str],
) -> tuple[Rule, ...]:
    rules: list[Rule] = []
    names = {
        "catalog": list(configuration.catalogs),
        "kind": sorted({query.kind for query in queries}),
    }
    for text in settings.rules:
        try:
            rule = parse_rule(text)
        except ConfigurationError as error:
            problems.append(f"rules: {error}")
            continue
        if rule.by and queries and rule.name not in names[rule.by]:
            problems.append(
                f"rules: '{rule.text}': no {rule.by} '{rule.name}'; expected one of "
                f"{', '.join(names[rule.by])}"
            )
        rules.append(rule)
    return tuple(rules)


def _strategies(
    configuration: Configuration, settings: GateSettings, problems: list[str]
) -> tuple[Strategy, ...]:
    strategies = read_strategies(settings.strategies, problems)
    indexes = [index.name for index in configuration.indexes]
    for strategy in strategies:
        problems += unknown_indexes(f"strategies: '{strategy.name}'", strategy.indexes, indexes)
    return tuple(strategies) or (configured_strategy(configuration),)


def _measures(setting: str, names: Sequence[str], problems: list[str]) -> list[Measure]:
    measures: list[Measure] = []
    for name in names:
        try:
            measures.append(parse_measure(name))
        except ConfigurationError as error:
            problems.append(f"{setting}: {error}")
    return measures


def _next_step(problems: Sequence[str]) -> str:
    forms = [f"  {form}" for form in FORMS]
    about_rules = any(problem.startswith("rules:") for problem in problems)
    return "\n".join(
        [
            *(["Rules look like these:", *forms] if about_rules else []),
            'Golden queries and canaries are lines such as {"query": "what are 30 dollars in '
            'yen?", "tools": ["convert_currency"]}.',
        ]
    )
