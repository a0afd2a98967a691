"""What the gate of a configuration asks, and by which rules it decides: read, checked, and all
problems told at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pegboard.canonical import digest
from pegboard.errors import ConfigurationError, QueryError
from pegboard.evaluation.golden import GoldenQuery, read_problems
from pegboard.evaluation.measures import STANDARD, Measure, parse_measure
from pegboard.retrieval.strategies import DEFAULT_PLAN, named_strategy
from pegboard.retrieval.strategy import Strategy
from tasks.gate.rules import FORMS, Rule, parse_rule
from tasks.golden.reading import read_golden
from tasks.settings.configuration import Configuration
from tasks.settings.release import GateSettings, default_strategy

MAIN = Measure("Recall", 5)
"""The measure by which releases are compared where no other was chosen."""
SHOWN = 20
"""Problems that a message lists; it counts them all."""


@dataclass(frozen=True, slots=True)
class Gate:
    """What is asked and how it is judged.

    Attributes:
        strategies: what is measured in every index.
        choose: the measure that decides which strategy and index become the default; None leaves
            them as configured.
        measures: what is computed: those to report, and those that rules and the choice need.
    """

    queries: tuple[GoldenQuery, ...]
    strategies: tuple[Strategy, ...]
    canaries: tuple[GoldenQuery, ...] = ()
    canary_k: int = 5
    rules: tuple[Rule, ...] = ()
    choose: Measure | None = None
    measures: tuple[Measure, ...] = ()

    @property
    def main(self) -> Measure:
        """The measure that stands for all others where there is room for one."""
        return self.choose or MAIN

    @property
    def k(self) -> int:
        """Among how many a tool has to be, so that its query counts as found."""
        return self.main.k or MAIN.k or 5

    @property
    def digest(self) -> str:
        """Equal for equal golden queries in the same order."""
        return digest([one.to_dict() for one in self.queries])


def has_gate(configuration: Configuration) -> bool:
    """Whether staged releases are asked anything at all: there are rules for it, or at least golden
    queries.
    """
    return configuration.gate is not None or configuration.golden is not None


def own_strategy(configuration: Configuration) -> Strategy:
    """The strategy by which readers find tools unless they, or a gate, choose another."""
    configured = default_strategy(configuration.find.strategy)
    return named_strategy(DEFAULT_PLAN) if configured is None else Strategy.from_dict(configured)


def gate_digest(configuration: Configuration) -> str | None:
    """What a release owes to `[gate]`: the queries and the strategies among which it chooses, not
    the rules; None without `[gate]`.
    """
    gate = read_gate(configuration) if configuration.gate is not None else None
    if gate is None:
        return None
    return digest(
        gate.digest,
        [strategy.to_dict() for strategy in gate.strategies],
        str(gate.choose) if gate.choose else None,
    )


def read_gate(configuration: Configuration) -> Gate | None:
    """The gate of a configuration; without `[gate]`, the golden queries alone, which are measured;
    None without either.

    Raises ConfigurationError with every problem of the rules, the files, the strategies and the
    measures."""
    golden = read_golden(configuration)
    settings = configuration.gate
    if settings is None:
        if golden is None:
            return None
        measures = tuple(dict.fromkeys((MAIN, *map(parse_measure, STANDARD))))
        return Gate(golden.queries, (own_strategy(configuration),), measures=measures)
    problems: list[str] = []
    queries = _queries(configuration, settings, golden.queries if golden else (), problems)
    canaries = _file(configuration, "canaries", settings.canaries, problems)
    rules = _rules(configuration, settings, queries, problems)
    strategies = _strategies(configuration, settings, problems)
    choose = _measures("choose", [settings.choose] if settings.choose else [], problems)
    reported = _measures("measures", settings.measures or STANDARD, problems)
    if problems:
        raise ConfigurationError(_message(configuration, problems))
    measures = dict.fromkeys((*reported, *choose, MAIN, *(rule.measure for rule in rules)))
    return Gate(
        queries,
        strategies,
        canaries,
        settings.canary_k,
        rules,
        choose[0] if choose else None,
        measures=tuple(measures),
    )


def _queries(
    configuration: Configuration,
    settings: GateSettings,
    golden: tuple[GoldenQuery, ...],
    problems: list[str],
) -> tuple[GoldenQuery, ...]:
    if settings.queries is None and not golden:
        problems.append(
            "queries: there are none; name a file of golden queries here, or in [golden]"
        )
    return (
        golden
        if settings.queries is None
        else _file(configuration, "queries", settings.queries, problems)
    )


def _file(
    configuration: Configuration, what: str, name: str | None, problems: list[str]
) -> tuple[GoldenQuery, ...]:
    if name is None:
        return ()
    queries, wrong = read_problems(configuration.base / name)
    if not queries and not wrong:
        wrong = [f"{configuration.base / name} has no query"]
    problems += [f"{what}: {one}" for one in wrong]
    return tuple(queries)


def _rules(
    configuration: Configuration,
    settings: GateSettings,
    queries: Sequence[GoldenQuery],
    problems: list[str],
) -> tuple[Rule, ...]:
    rules: list[Rule] = []
    there = {"catalog": list(configuration.catalogs), "kind": sorted({one.kind for one in queries})}
    for text in settings.rules:
        try:
            rule = parse_rule(text)
        except ConfigurationError as error:
            problems.append(f"rules: {error}")
            continue
        if rule.by and queries and rule.name not in there[rule.by]:
            known = ", ".join(there[rule.by])
            problems.append(
                f"rules: '{rule.text}': there is no {rule.by} '{rule.name}'; expected one of "
                f"{known}"
            )
        rules.append(rule)
    return tuple(rules)


def _strategies(
    configuration: Configuration, settings: GateSettings, problems: list[str]
) -> tuple[Strategy, ...]:
    strategies: list[Strategy] = []
    indexes = [index.name for index in configuration.indexes]
    for given in settings.strategies:
        try:
            strategy = Strategy.from_dict(default_strategy(given) or {})
        except QueryError as error:
            problems.append(f"strategies: {error}")
            continue
        if strategy.name in [one.name for one in strategies]:
            problems.append(
                f"strategies: two are named '{strategy.name}'; give each a name of its own"
            )
        if strategy.needs_calibration() and configuration.golden is None:
            problems.append(
                f"strategies: '{strategy.name}' asks for probabilities, which need [golden] queries"
            )
        problems += [
            f"strategies: '{strategy.name}' searches index '{name}'; expected one of "
            f"{', '.join(indexes)}"
            for name in strategy.indexes
            if name not in indexes
        ]
        strategies.append(strategy)
    return tuple(strategies) or (own_strategy(configuration),)


def _measures(what: str, names: Sequence[str], problems: list[str]) -> list[Measure]:
    known: list[Measure] = []
    for name in names:
        try:
            known.append(parse_measure(name))
        except ConfigurationError as error:
            problems.append(f"{what}: {error}")
    return known


def _message(configuration: Configuration, problems: Sequence[str]) -> str:
    shown = [f"  - {problem}" for problem in problems[:SHOWN]]
    if len(problems) > SHOWN:
        shown.append(f"  ... and {len(problems) - SHOWN} more")
    forms = (
        [f"  {form}" for form in FORMS]
        if any(problem.startswith("rules:") for problem in problems)
        else []
    )
    return "\n".join(
        [
            f"[gate] of {configuration.file} has {len(problems)} "
            f"problem{'s' if len(problems) > 1 else ''}:",
            *shown,
            *(["Rules look like these:", *forms] if forms else []),
            'Golden queries and canaries are lines such as {"query": "what are 30 dollars in '
            'yen?", "tools": ["convert_currency"]}.',
        ]
    )
