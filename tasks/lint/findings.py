"""A finding, the rules that findings belong to, and the baseline of findings that are known.

`rules.json` has the rules: how severe a finding is, what it means, and the effect of the flaw.
`python -m benchmarks flaws` measures the effects and writes them there.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, get_args

from pegboard.errors import ConfigurationError, PegboardError

Severity = Literal["note", "warning", "error"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule.

    Attributes:
        summary: what is wrong with a tool that breaks it.
        effect: what the flaw costs, in one sentence with its figures.
    """

    id: str
    severity: Severity
    summary: str
    effect: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong.

    Attributes:
        rule: the id of its rule.
        tool: the id of the tool; that of the catalog, if it concerns many of its tools.
        reason: what was measured, with its numbers.
        suggestion: what to write instead; empty if the rule cannot know.
        parameter: the parameter that it is about, if any.
        file, line: where the tool stands, counted from 1; empty and 0 where unknown.

    Raises:
        PegboardError: rules.json has no entry for the rule.
    """

    rule: str
    tool: str
    reason: str
    suggestion: str = ""
    parameter: str = ""
    file: str = ""
    line: int = 0

    def __post_init__(self) -> None:
        if self.rule not in rules():
            raise PegboardError(
                f"The lint rule '{self.rule}' has no entry in tasks/lint/rules.json. Add its "
                "severity, summary and effect there."
            )

    @property
    def severity(self) -> Severity:
        """That of its rule."""
        return rules()[self.rule].severity

    @property
    def key(self) -> str:
        """What stays the same while the text around the finding changes."""
        return " ".join(part for part in (self.rule, self.tool, self.parameter) if part)

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {"severity": self.severity, **asdict(self)}


@cache
def rules() -> dict[str, Rule]:
    """Return the rules by id."""
    return {
        name: Rule(name, values["severity"], values["summary"], _effect(values))
        for name, values in _data().items()
    }


@cache
def vague_names() -> frozenset[str]:
    """Return names of parameters, in lower case, that say nothing of what belongs there."""
    return frozenset(_data()["unexplained-argument"]["names"].split())


@cache
def _data() -> dict[str, dict[str, Any]]:
    return json.loads(files("tasks.lint").joinpath("rules.json").read_text("utf-8"))


def _effect(values: dict[str, Any]) -> str:
    if (measured := values.get("measured")) is None:
        return values["effect"]
    rows = zip(measured["depths"], measured["recall"], measured["recall_with_flaw"], strict=True)
    figures = ", ".join(
        f"recall@{depth} {good:.3f} -> {flawed:.3f}" for depth, good, flawed in rows
    )
    return f"{values['effect']}: {figures} ({measured['requests']} requests)"


def at_least(findings: Iterable[Finding], severity: Severity) -> list[Finding]:
    """Return the findings that are as severe as that, or more."""
    minimum = SEVERITIES.index(severity)
    return [finding for finding in findings if SEVERITIES.index(finding.severity) >= minimum]


def read_baseline(path: Path) -> frozenset[str]:
    """Return the keys of the findings in a baseline file; none if it does not exist.

    Raises:
        ConfigurationError: it is not a baseline file.
    """
    try:
        return frozenset(map(str, json.loads(path.read_text("utf-8"))["findings"]))
    except FileNotFoundError:
        return frozenset()
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise ConfigurationError(
            f"{path} is not a baseline of findings: {error}. Expected what "
            "`pegboard lint --write-baseline` writes."
        ) from error


def baseline_text(findings: Sequence[Finding]) -> str:
    """Return the content of a baseline file: the keys of the findings, sorted, one a line."""
    keys = sorted({finding.key for finding in findings})
    return json.dumps({"findings": keys}, ensure_ascii=False, indent=1) + "\n"
