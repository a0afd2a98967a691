"""Scores of an agent's tool calls against the right calls, by the Toolshed Evaluation Framework
(Toolshed, appendix B).

Each right call has three scores, each a recall: its tool was called (weight .5), its argument names
were given (.25), with the right values (.25). A request's score is the mean over its right calls.
Additional calls do not lower the score; they are counted separately.

Decisions that the paper leaves open:

- Several calls are matched one to one so that the sum of the scores is highest; a right call is
  matched at most once.
- Arguments count only if the tool is right; a value counts only if its name was given. Names are
  compared exactly.
- A right call without arguments has both argument scores at 1 if its tool is called with readable
  arguments: a JSON object, or nothing.
- Values are compared as JSON, where 30, 30.0 and "30" are one number, and true and "true" one
  Boolean; texts are compared without regard to case, runs of white space and the compatibility
  forms of Unicode. Lists are ordered, objects are not.
- A value that stands for the result of another call (`API_call_0` in Seal-Tools) is unknown when
  all calls are made at once: it counts as right if its argument was given.
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
"""Weights of the tool name, argument names and argument values (Toolshed, appendix B)."""
PLACEHOLDER = re.compile(r"\bAPI_call_\d+\b")
"""Seal-Tools' placeholder for the result of an earlier call as the value of an argument."""

MadeCall = tuple[str | None, str]
"""A call that an agent made: the id of the tool, None if it was given no tool of that name, and the
text of the arguments.
"""


@dataclass(frozen=True, slots=True)
class RightCall:
    """A right call: the acceptable tools (several may share a name), and the arguments."""

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


def same_value(right: Any, actual: Any) -> bool:
    """Return whether two values of an argument are equal by the rules above."""
    if isinstance(right, dict) and isinstance(actual, dict):
        right_object = cast("dict[str, Any]", right)
        actual_object = cast("dict[str, Any]", actual)
        return right_object.keys() == actual_object.keys() and all(
            same_value(right_object[key], actual_object[key]) for key in right_object
        )
    if isinstance(right, list) and isinstance(actual, list):
        right_list = cast("list[Any]", right)
        actual_list = cast("list[Any]", actual)
        return len(right_list) == len(actual_list) and all(map(same_value, right_list, actual_list))
    if isinstance(right, dict | list) or isinstance(actual, dict | list):
        return False
    return _plain(right) == _plain(actual)


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
    shared_names = expected.keys() & arguments.keys()
    equal = [name for name in shared_names if _is_right(expected[name], arguments[name])]
    return 1.0, len(shared_names) / len(expected), len(equal) / len(expected)


def _is_right(expected: Any, actual: Any) -> bool:
    placeholder = isinstance(expected, str) and PLACEHOLDER.search(expected) is not None
    return placeholder or same_value(expected, actual)


def _arguments(text: str) -> Mapping[str, Any] | None:
    """Return the arguments of a call; None if their text cannot be read."""
    try:
        value: Any = json.loads(text) if text.strip() else None
    except (ValueError, RecursionError):
        return None
    value = {} if value is None else value
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else None
