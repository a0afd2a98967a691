"""The kinds of evidence for an edge, and how often edges with each are right.

On ToolLinkOS, which declares its dependencies, the share of inferred edges that are declared, by
the parity of the first byte of the sha256 of the dependent tool's name (the rules were written with
all of that catalog in view, so neither half is unseen):

    kind           even       odd        kind           even       odd
    id-named       72/72      51/51      check          30/30      19/19
    session        66/66      57/57      login          11/11      11/12
    here           132/145    104/113    connection     144/201    132/197
    id-found       8/8        4/4        mentioned      18/18      6/6
    named          22/26      15/32

A confidence is about the lower of the two shares and of what was read by hand in samples of some 60
edges of real MCP servers and of two collections of functions with output schemas, at most .9."""

from dataclasses import dataclass
from typing import Literal

from pegboard.records import DependencyType

Kind = Literal[
    "collection", "id-named", "id-found", "id-created", "id-result", "named", "here", "mentioned",
    "mentioned-before", "session", "login", "check", "state-switch", "state-needed", "connection",
]  # fmt: skip

CONFIDENCE: dict[Kind, float] = {
    "collection": 0.9, "id-named": 0.9, "id-found": 0.8, "id-created": 0.6, "id-result": 0.6,
    "named": 0.6, "here": 0.75, "mentioned": 0.9, "mentioned-before": 0.8, "session": 0.9,
    "login": 0.8, "check": 0.8, "state-switch": 0.8, "state-needed": 0.7, "connection": 0.65,
}  # fmt: skip

_REASONS: dict[Kind, str] = {
    "here": "{target} tells the {what}, which {parameter} may refer to.",
    "mentioned": "The description of {parameter} names {target}.",
    "mentioned-before": "The description of {source} says that {target} comes before.",
    "session": "A login with {target} gives the {what}.",
    "login": "{source} belongs to {what}, and {target} logs in there.",
    "check": "{target} checks whether the {what} is valid.",
    "collection": "{target} provides the {what} that {parameter} names.",
    "state-switch": "{target} switches the {what} that {source} tells.",
    "state-needed": "{source} works with {what}, which may be off; {target} tells.",
    "connection": "{source} may reach out over the {what}, which may be off; {target} tells.",
}
_PROVIDES = "{target} provides the {what} that {parameter} asks for."


@dataclass(frozen=True, slots=True)
class Evidence:
    """One finding: two tools, how the first needs the second, and why.

    Attributes:
        source, target: the ids of the tools.
        what: what is provided, told or switched, in words.
        share: scales the confidence of its kind.
    """

    source: str
    target: str
    type: DependencyType
    parameter: str | None
    kind: Kind
    what: str
    share: float = 1.0

    @property
    def confidence(self) -> float:
        """0 to 1: how often edges with such evidence are right."""
        return round(CONFIDENCE[self.kind] * self.share, 3)

    def reason(self, source: str, target: str) -> str:
        """Return the reason, a sentence with the names of the two tools."""
        return _REASONS.get(self.kind, _PROVIDES).format(
            source=source, target=target, what=self.what, parameter=self.parameter or ""
        )


def dependency_type(parameter: str | None, direct: bool) -> DependencyType:
    """Return the type of an edge for a parameter, or for the tool as a whole if that is None."""
    if parameter is None:
        return "tool-directly-depends-on" if direct else "tool-indirectly-depends-on"
    return "parameter-directly-depends-on" if direct else "parameter-indirectly-depends-on"
