"""What speaks for an edge, and how often edges with such evidence are right.

How the confidences were set. ToolLinkOS declares its dependencies. Found there and declared, of all
found, by the parity of the first byte of the sha256 of the dependent tool's name, which shows how
far such shares move from one set of tools to another (whoever wrote the rules had read all of that
catalog, so neither half is unseen):

    kind           even       odd        kind           even       odd
    id-named       72/72      51/51      check          30/30      19/19
    session        66/66      57/57      login          11/11      11/12
    here           132/145    104/113    state-*        19/22      16/18
    named          22/26      15/32      connection     144/201    132/197
    id-found       8/8        4/4        mentioned      18/18      6/6

A catalog made for the purpose flatters. So samples of edges in catalogs without declarations (real
MCP servers; two collections of functions with output schemas) were read while the rules were made,
some 60 of each, and a confidence is about the lower of the two shares, and at most .9: what is
named for just that parameter, or named by a description, was nearly always right; ids from output
schemas in three of four cases; incidental results of tools about something else in less than half.
`connection` is the share in the only catalog in which it was found, one for an assistant on a
device."""

from dataclasses import dataclass
from typing import Literal

from pegboard.records import DependencyType

Kind = Literal[
    "collection", "id-named", "id-found", "id-created", "id-result", "id-far",
    "named", "named-partly", "result", "told", "here", "here-far", "mentioned", "mentioned-before",
    "session", "login", "check", "state-before", "thing-before", "state-switch", "state-needed",
    "connection",
]  # fmt: skip

CONFIDENCE: dict[Kind, float] = {
    "collection": 0.9, "id-named": 0.9, "id-found": 0.8, "id-created": 0.6, "id-result": 0.6,
    "id-far": 0.5, "named": 0.6, "named-partly": 0.5, "result": 0.45, "told": 0.5, "here": 0.75,
    "here-far": 0.6, "mentioned": 0.9, "mentioned-before": 0.8, "session": 0.9, "login": 0.8,
    "check": 0.8, "state-before": 0.7, "thing-before": 0.4, "state-switch": 0.8,
    "state-needed": 0.7, "connection": 0.65,
}  # fmt: skip

_REASONS: dict[Kind, str] = {
    "here": "{target} tells the {what}, which {parameter} may refer to.",
    "here-far": "{target} tells the {what}, which {parameter} may refer to.",
    "mentioned": "The description of {parameter} names {target}.",
    "mentioned-before": "The description of {source} says that {target} comes before.",
    "session": "A login with {target} gives the {what}.",
    "login": "{source} belongs to {what}, and {target} logs in there.",
    "check": "{target} checks whether the {what} is valid.",
    "collection": "{target} provides the {what} that {parameter} names.",
    "state-before": "{target} tells the {what} that {source} changes.",
    "thing-before": "{target} shows the {what} that {source} changes.",
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
        """Say why, in a sentence with the names of the two tools."""
        return _REASONS.get(self.kind, _PROVIDES).format(
            source=source, target=target, what=self.what, parameter=self.parameter or ""
        )


def dependency_type(parameter: str | None, direct: bool) -> DependencyType:
    """Return the type of an edge for a parameter, or for the tool as a whole if that is None."""
    if parameter is None:
        return "tool-directly-depends-on" if direct else "tool-indirectly-depends-on"
    return "parameter-directly-depends-on" if direct else "parameter-indirectly-depends-on"
