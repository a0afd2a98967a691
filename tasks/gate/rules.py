"""The rules of a gate, as people write them.

Recall@5 >= 0.9
Recall@5 of catalog github >= 0.8
Recall@5 no worse than live by more than 0.01 with 95 % confidence

Any measure may stand for Recall@5. `of catalog NAME` and `of kind NAME` judge the queries that need
a tool of that catalog, or are of that kind; a name with blanks stands in quotes. `live` is the
release that the channel names when the build begins."""

import re
from dataclasses import dataclass
from typing import Literal

from pegboard.errors import ConfigurationError
from pegboard.evaluation.measures import Measure, parse_measure

Group = Literal["catalog", "kind"]
FORMS = (
    "Recall@5 >= 0.9",
    "Recall@5 of catalog github >= 0.8",
    "Recall@5 of kind parallel >= 0.7",
    "Recall@5 no worse than live",
    "Recall@5 no worse than live by more than 0.01",
    "Recall@5 of kind parallel no worse than live by more than 0.02 with 95 % confidence",
)
"""What an error shows to someone whose rule is none."""
NUMBER = r"\d+(?:\.\d+)?|\.\d+"
RULE = re.compile(
    rf"""\s*(?P<measure>[A-Za-z][A-Za-z0-9]*\s*(?:@\s*\d+|>=\s*(?:{NUMBER}))?)
    (?:\s+of\s+(?P<by>catalog|kind)\s+(?P<name>"[^"]+"|'[^']+'|\S+))?
    (?:\s*>=\s*(?P<floor>{NUMBER})
      |\s+no\s+worse\s+than\s+live
       (?:\s+by\s+more\s+than\s+(?P<margin>{NUMBER}))?
       (?:\s+with\s+(?P<confidence>{NUMBER})\s*%\s+confidence)?
    )\s*""",
    re.VERBOSE | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: a floor for a measure, or a comparison with the live release.

    Attributes:
        text: as it was written.
        by, name: the catalog or the kind of queries that it is about; all queries if None.
        floor: the least value; None for a comparison with live.
        margin: by how much the value may be below that of live.
        confidence: between .5 and 1: how sure it has to be that it is no further below, by a paired
            bootstrap over the queries; None compares the two values as they are.
    """

    text: str
    measure: Measure
    by: Group | None = None
    name: str = ""
    floor: float | None = None
    margin: float = 0.0
    confidence: float | None = None


def parse_rule(text: str) -> Rule:
    """The rule that a text says. Raises ConfigurationError with what is wrong with it."""
    found = RULE.fullmatch(text)
    if found is None:
        raise ConfigurationError(f"'{text}' is no rule")
    measure = parse_measure(found["measure"])
    problems: list[str] = []
    floor, margin, confidence = (
        None if found[part] is None else float(found[part])
        for part in ("floor", "margin", "confidence")
    )
    if floor is not None and floor > 1:
        problems.append(f"a measure is at most 1, and {found['floor']} is asked for")
    if margin is not None and margin >= 1:
        problems.append(
            f"a measure is at most 1, so no release is worse by more than {found['margin']}"
        )
    if confidence is not None and not 50 < confidence < 100:
        problems.append(
            f"a confidence of {found['confidence']} % cannot be had; expected more than 50 and "
            f"less than 100"
        )
    if problems:
        raise ConfigurationError(f"'{text}': {'; '.join(problems)}")
    return Rule(
        text=" ".join(text.split()),
        measure=measure,
        by=_group(found["by"]),
        name=(found["name"] or "").strip("\"'"),
        floor=floor,
        margin=margin or 0.0,
        confidence=confidence / 100 if confidence is not None else None,
    )


def _group(by: str | None) -> Group | None:
    return None if by is None else "catalog" if by.lower() == "catalog" else "kind"
