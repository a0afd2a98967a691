"""The gate of a configuration: its golden queries and rules, all checked."""

from collections.abc import Sequence
from dataclasses import dataclass

from pegboard.canonical import digest
from pegboard.errors import ConfigurationError
from pegboard.evaluation.golden import GoldenQuery, read_problems
from pegboard.evaluation.measures import STANDARD, Measure, parse_measure
from tasks.gate.rules import FORMS, Rule, parse_rule
from tasks.golden.reading import read_golden
from tasks.settings.configuration import Configuration
from tasks.settings.release import GateSettings

MAIN_MEASURE = Measure("Recall", 5)
"""The measure by which releases are compared where no rule names one."""


@dataclass(frozen=True, slots=True)
class GateSpec:
    """What a gate measures, and how it decides.

    Attributes:
        canaries: queries each of which has to find all its tools among the first `canary_k`.
        captured: the largest share of captured queries; None without `[gate]`.
    """

    queries: tuple[GoldenQuery, ...]
    canaries: tuple[GoldenQuery, ...] = ()
    canary_k: int = 5
    rules: tuple[Rule, ...] = ()
    captured: float | None = None

    @property
    def main(self) -> Measure:
        """The measure that is shown where there is room for one: that of the first rule."""
        return self.rules[0].measure if self.rules else MAIN_MEASURE

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measures that are reported, or that rules need."""
        needed = (rule.measure for rule in self.rules)
        return tuple(dict.fromkeys((*map(parse_measure, STANDARD), MAIN_MEASURE, *needed)))

    @property
    def k(self) -> int:
        """The cut-off by which a query counts as lost or won."""
        return self.main.k or MAIN_MEASURE.k or 5

    @property
    def digest(self) -> str:
        """Equal for equal golden queries in the same order."""
        return digest([query.to_dict() for query in self.queries])


def has_gate(configuration: Configuration) -> bool:
    """Return whether staged releases are measured: there are rules, or at least golden queries."""
    return configuration.gate is not None or configuration.golden is not None


def read_gate(configuration: Configuration) -> GateSpec | None:
    """Read the gate of a configuration; without `[gate]`, its golden queries alone.

    Returns:
        None without `[gate]` and `[golden]`.

    Raises:
        ConfigurationError: lists every problem of the rules and files.
    """
    golden = read_golden(configuration)
    settings = configuration.gate
    if settings is None:
        return None if golden is None else GateSpec(golden)
    problems: list[str] = []
    queries = golden or ()
    if settings.queries is not None:
        queries = _read_queries(configuration, "queries", settings.queries, problems)
    elif not queries:
        problems.append("queries: missing; name a file of golden queries here, or in [golden]")
    canaries = _read_queries(configuration, "canaries", settings.canaries, problems)
    rules = _rules(configuration, settings, queries, problems)
    if problems:
        raise ConfigurationError.from_problems(
            f"[gate] of {configuration.file}", problems, _next_step(problems)
        )
    return GateSpec(queries, canaries, settings.canary_k, rules, settings.captured)


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
