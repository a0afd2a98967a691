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
  arguments that can be read: a JSON object, or nothing.
- Values are equal as JSON, where 30, 30.0 and "30" are one number, and true and "true" one truth;
  texts are equal but for case, for runs of white space and for the compatibility forms of Unicode.
  Lists have an order, objects have not.
- A value that stands for the result of another call (`API_call_0` in Seal-Tools) cannot be known
  when all calls are made at once: it counts as right where its argument was given.
"""

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, cast

from pegboard.evaluation.intervals import evaluation_module

WEIGHTS = (0.5, 0.25, 0.25)
"""Of tool name, argument names and argument values: Toolshed, appendix B."""
PLACEHOLDER = re.compile(r"\bAPI_call_\d+\b")
"""How Seal-Tools writes the result of an earlier call as the value of an argument."""

MadeCall = tuple[str | None, str]
"""A call that an agent made: the id of the tool, None if it was given no tool of that name, and the
text of the arguments.
"""


@dataclass(frozen=True, slots=True)
class RightCall:
    """A right call: the tools that will do (several may share a name), and the arguments."""

    tools: frozenset[str]
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CallScore:
    """How an agent's calls for one request compare with the right ones.

    Attributes:
        name, arguments, values: recall of tools, of argument names and of argument values, from 0
            to 1.
        weighted: the three together, by `WEIGHTS`.
        made: how many calls the agent made.
        matched: how many of them call the tool of a right call.
    """

    name: float
    arguments: float
    values: float
    weighted: float
    made: int
    matched: int


def score_calls(right: Sequence[RightCall], made: Sequence[MadeCall]) -> CallScore:
    """Return the score of the calls that an agent made for one request.

    Args:
        right: at least one.

    Raises ConfigurationError if scipy is not installed.
    """
    import numpy as np

    calls = [(tool, _arguments(text)) for tool, text in made]
    pairs = np.array([[_pair(call, *other) for other in calls] for call in right], np.float64)
    pairs = pairs.reshape(len(right), len(made), len(WEIGHTS))
    assign = evaluation_module("scipy.optimize", "scipy").linear_sum_assignment
    matches = pairs[assign(pairs @ WEIGHTS, maximize=True)]
    parts = matches.sum(axis=0) / len(right)
    name, arguments, values = parts.tolist()
    matched = int(matches[:, 0].sum())
    return CallScore(name, arguments, values, float(parts @ WEIGHTS), len(made), matched)


def same_value(right: Any, given: Any) -> bool:
    """Return whether two values of an argument are equal by the rules above."""
    if isinstance(right, dict) and isinstance(given, dict):
        ours, theirs = cast("dict[str, Any]", right), cast("dict[str, Any]", given)
        return ours.keys() == theirs.keys() and all(
            same_value(ours[key], theirs[key]) for key in ours
        )
    if isinstance(right, list) and isinstance(given, list):
        pair = cast("list[Any]", right), cast("list[Any]", given)
        return len(pair[0]) == len(pair[1]) and all(map(same_value, *pair))
    if isinstance(right, dict | list) or isinstance(given, dict | list):
        return False
    return _plain(right) == _plain(given)


def _plain(value: Any) -> tuple[str, Any]:
    """Return a value that is neither list nor object in the form in which it is compared."""
    if value is None:
        return "null", None
    text = value if isinstance(value, str) else json.dumps(value)
    text = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    # A number or truth may stand as text, as JSON writes it: `007` stays a text.
    with suppress(ValueError, ArithmeticError, RecursionError):
        number = json.loads(text, parse_int=Decimal, parse_float=Decimal)
        if isinstance(number, bool | Decimal):
            return type(number).__name__, number
    return "text", text


def _pair(
    right: RightCall, tool: str | None, arguments: Mapping[str, Any] | None
) -> tuple[float, float, float]:
    """Return the recall of tool name, argument names and values in a pair of calls."""
    if tool not in right.tools:
        return 0.0, 0.0, 0.0
    if arguments is None:
        return 1.0, 0.0, 0.0
    expected = right.arguments
    if not expected:
        return 1.0, 1.0, 1.0
    given = expected.keys() & arguments.keys()
    equal = [name for name in given if _is_right(expected[name], arguments[name])]
    return 1.0, len(given) / len(expected), len(equal) / len(expected)


def _is_right(expected: Any, given: Any) -> bool:
    placeholder = isinstance(expected, str) and PLACEHOLDER.search(expected) is not None
    return placeholder or same_value(expected, given)


def _arguments(text: str) -> Mapping[str, Any] | None:
    """Return the arguments of a call; None if their text cannot be read."""
    try:
        value: Any = json.loads(text) if text.strip() else None
    except (ValueError, RecursionError):
        return None
    value = {} if value is None else value
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else None
