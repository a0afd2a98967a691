"""An agent's tool calls against the right ones, by the Toolshed Evaluation Framework (Toolshed,
appendix B).

Each right call scores three ways, each a recall: its tool was called (weight .5), its argument
names were given (.25), with their values (.25). A request's score is the mean over its right calls.
Calls beside these lower nothing; they are counted apart.

What the paper leaves open is decided here:

- Several calls are matched one to one so that the sum of the scores is highest; a right call is
  matched at most once.
- Arguments count only where the tool is right; a value counts only where its name was given. Names
  are compared as they stand.
- A right call without arguments has full marks for both as soon as its tool is called with
  arguments that can be read.
- Values are equal as JSON, where 30, 30.0 and "30" are one number, and true and "true" one truth;
  texts are equal but for case, for runs of white space and for the compatibility forms of Unicode.
  Lists have an order, objects have not.
- A value that stands for the result of another call (`API_call_0` in Seal-Tools) cannot be known
  when all calls are made at once: it counts as right where its argument was given.
- Arguments that are no JSON object count as none given, and as malformed; empty text and `null` are
  an empty object.
"""

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, cast

from pegboard.errors import ConfigurationError
from pegboard.evaluation.intervals import evaluation_module

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WEIGHTS = (0.5, 0.25, 0.25)
"""Of tool name, argument names and argument values: Toolshed, appendix B."""
PLACEHOLDER = re.compile(r"\bAPI_call_\d+\b")
"""How Seal-Tools writes the result of an earlier call as the value of an argument."""

_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,39})(?:\.\d{1,40})?(?:[eE][+-]?\d{1,3})?")
"""Numbers as JSON writes them, so that `007` stays a text, and short enough to be compared at once.
"""
_TIE = 1e-6
"""What values are worth beside their weight in the matching: of equal scores the one with more
right values is taken.
"""


@dataclass(frozen=True, slots=True)
class RightCall:
    """A right call: the tools that will do (several may share a name), and the arguments."""

    tools: frozenset[str]
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class MadeCall:
    """A call that an agent made.

    Attributes:
        tool: which tool was called; None if none of that name was given to the agent.
        arguments: None if their text is no JSON object.
    """

    tool: str | None
    arguments: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class CallScore:
    """How an agent's calls for one request compare with the right ones.

    Attributes:
        name, arguments, values: recall of tools, of argument names and of argument values, from 0
            to 1.
        weighted: the three together, by `WEIGHTS`.
        made: how many calls the agent made.
        matched: how many of them call the tool of a right call.
        unknown: calls of tools that the agent was not given.
        malformed: calls whose arguments cannot be read.
    """

    name: float
    arguments: float
    values: float
    weighted: float
    made: int
    matched: int
    unknown: int
    malformed: int


def made_call(name: str, arguments: str, tools: Mapping[str, str]) -> MadeCall:
    """A call as a model wrote it.

    Args:
        name: the name by which it calls the tool.
        arguments: their text.
        tools: the id of each tool that the model was given, by the name under which it was.
    """
    return MadeCall(tools.get(name.strip()), _arguments(arguments))


def score_calls(right: Sequence[RightCall], made: Sequence[MadeCall]) -> CallScore:
    """The score of the calls that an agent made for one request. No calls at all score 0.

    Raises ConfigurationError if there is no right call to compare with, or scipy is not installed.
    """
    import numpy as np

    if not right:
        raise ConfigurationError("There is no right call to compare with. Give the query `calls`.")
    pairs = np.array([[_pair(call, other) for other in made] for call in right], np.float64)
    pairs = pairs.reshape(len(right), len(made), 3)
    matched = [(row, column) for row, column in _assigned(pairs) if pairs[row, column, 0]]
    parts = [float(sum(pairs[at][part] for at in matched)) / len(right) for part in range(3)]
    return CallScore(
        *parts,
        weighted=sum(weight * part for weight, part in zip(WEIGHTS, parts, strict=True)),
        made=len(made),
        matched=len(matched),
        unknown=sum(call.tool is None for call in made),
        malformed=sum(call.arguments is None for call in made),
    )


def same_value(right: Any, given: Any) -> bool:
    """Whether two values of an argument are equal by the rules above."""
    if isinstance(right, Mapping) and isinstance(given, Mapping):
        ours, theirs = cast("Mapping[str, Any]", right), cast("Mapping[str, Any]", given)
        return ours.keys() == theirs.keys() and all(
            same_value(ours[key], theirs[key]) for key in ours
        )
    if isinstance(right, list | tuple) and isinstance(given, list | tuple):
        pairs = (cast("Sequence[Any]", right), cast("Sequence[Any]", given))
        return len(pairs[0]) == len(pairs[1]) and all(map(same_value, *pairs))
    if isinstance(right, Mapping | list | tuple) or isinstance(given, Mapping | list | tuple):
        return False
    return _plain(right) == _plain(given)


def _plain(value: Any) -> tuple[str, Any]:
    """A value that is neither list nor object, in the form in which it is compared."""
    if isinstance(value, bool):
        return "truth", value
    if value is None:
        return "null", None
    text = value if isinstance(value, str) else str(value)
    if _NUMBER.fullmatch(trimmed := text.strip()):
        return "number", Decimal(trimmed)
    if not isinstance(value, str):
        return "number", text  # nan, infinity and very long numbers
    if trimmed.lower() in ("true", "false"):
        return "truth", trimmed.lower() == "true"
    return "text", " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _pair(right: RightCall, made: MadeCall) -> tuple[float, float, float]:
    """Recall of tool name, argument names and values in a pair of calls."""
    if made.tool not in right.tools:
        return 0.0, 0.0, 0.0
    if made.arguments is None:
        return 1.0, 0.0, 0.0
    expected = right.arguments
    if not expected:
        return 1.0, 1.0, 1.0
    given = expected.keys() & made.arguments.keys()
    equal = [name for name in given if _is_right(expected[name], made.arguments[name])]
    return 1.0, len(given) / len(expected), len(equal) / len(expected)


def _is_right(expected: Any, given: Any) -> bool:
    placeholder = isinstance(expected, str) and PLACEHOLDER.search(expected) is not None
    return placeholder or same_value(expected, given)


def _assigned(pairs: "NDArray[np.float64]") -> list[tuple[int, int]]:
    """Which made call answers which right one."""
    if pairs.shape[:2] == (1, 1):
        return [(0, 0)]
    worth = pairs @ [*WEIGHTS[:2], WEIGHTS[2] + _TIE]
    solver = evaluation_module("scipy.optimize", "scipy")
    rows, columns = solver.linear_sum_assignment(worth, maximize=True)
    return list(zip(rows.tolist(), columns.tolist(), strict=True))


def _arguments(text: str) -> Mapping[str, Any] | None:
    if not text.strip():
        return {}
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if value is None:
        return {}
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else None
