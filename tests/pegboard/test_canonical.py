"""The canonical form: what means the same has one digest, and nothing else has."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.canonical import canonical_json, digest

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def _shuffled(value):
    if isinstance(value, dict):
        return {key: _shuffled(value[key]) for key in reversed(list(value))}
    return [_shuffled(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": [1, 2], "a": "ä"}, '{"a":"ä","b":[1,2]}'),
        ([5.0, 5.5, -0.0, 1e300], "[5,5.5,0,1e+300]"),
        ({"required": [2, 1]}, '{"required":[2,1]}'),
        ({"required": ["b", "a"], "enum": ["b", "a"]}, '{"enum":["b","a"],"required":["a","b"]}'),
        (("a", ("b", True)), '["a",["b",true]]'),
        ("half \ud800", '"half \ud800"'),
    ],
)
def test_equal_meanings_have_one_text(value, text):
    assert canonical_json(value) == text
    assert digest(value) == digest(json.loads(text))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_json_does_not_have_is_refused(value):
    with pytest.raises(ValueError, match="JSON"):
        canonical_json({"default": value})


def test_several_values_are_not_run_together():
    assert len({digest("ab", "c"), digest("a", "bc"), digest("abc"), digest(["ab", "c"])}) == 4


@given(VALUES)
def test_the_order_of_keys_and_a_way_through_json_text_change_nothing(value):
    assert digest(_shuffled(value)) == digest(value)
    assert canonical_json(json.loads(canonical_json(value))) == canonical_json(value)
    assert canonical_json(json.loads(json.dumps(value, indent=3))) == canonical_json(value)
