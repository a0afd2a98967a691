"""Templates of prompts: whatever a release brings is refused, or rendered in bounded steps."""

import pytest

from pegboard.llm.prompts import Examples
from pegboard.llm.templates import MAX_TEXT, TemplateProblem, names_of, render

VALUES = {"request": "r" * 100_000, "examples": Examples([{"input": "a", "output": "b"}] * 100)}
LOOP = "{% for shot in examples %}{{ shot.input }}{% endfor %}"


def nested(template: str, depth: int) -> str:
    return LOOP.replace("{{ shot.input }}", nested(template, depth - 1)) if depth else template


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        (nested("x", 2), "more than one loop"),
        (nested("x", 9), "more than one loop"),
        (LOOP * 2, "more than one loop"),
        ("{% for letter in request %}x{% endfor %}", "loops over something else than `examples`"),
        ("{% for n in range(999999999) %}x{% endfor %}", "loops over something else"),
        ("{% for shot in examples recursive %}{{ loop(examples) }}{% endfor %}", "not allowed"),
        (LOOP.replace("{{ shot.input }}", "{{ request|upper }}" * 99), "its loop is too long"),
        ("{{ 'x' * 999999999 }}", "`Mul` is not allowed"),
        ("{{ 9 ** 9 ** 9 }}", "`Pow` is not allowed"),
        ("{{ request ~ request ~ request }}", "`Concat` is not allowed"),
        ("{{ request + request }}", "`Add` is not allowed"),
        ("{{ request|center(999999999) }}", "the filter `center` is not allowed"),
        ("{{ request|replace('r', request) }}", "the filter `replace` is not allowed"),
        ("{{ '%0999999999d'|format(1) }}", "the filter `format` is not allowed"),
        ("{{ request|join(request) }}", "the filter `join` is not allowed"),
        ("{{ lipsum(n=9999999) }}", "`Call` is not allowed"),
        ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "`Macro` is not allowed"),
        ("{% set a = request %}{{ a }}", "`Assign` is not allowed"),
        ("{% include 'x' %}", "`Include` is not allowed"),
        ("{{ request[::1] }}", "`Slice` is not allowed"),
        ("x" * 20_001, "more than 20,000 characters"),
    ],
)
def test_syntax_that_can_take_any_time_is_refused_with_what_is_allowed(source, problem):
    with pytest.raises(TemplateProblem) as raised:
        names_of(source)

    assert problem in str(raised.value)


def test_a_text_stops_growing_at_its_bound():
    with pytest.raises(TemplateProblem, match=f"more than {MAX_TEXT:,} characters"):
        render("{{ request }}" * 1_500, VALUES)


def test_values_conditions_and_one_loop_are_rendered():
    source = (
        "{% if request and not other %}{{ request|trim|upper }}{% elif 1 < 2 %}no{% endif %}"
        "{% for shot in examples if shot.input %}{{ loop.index }}{{ shot['output'] }} {% endfor %}"
        "{{ examples|length }}{{ 'yes' if other is defined else 'no' }}"
    )

    assert names_of(source) == {"request": 1, "other": 1, "examples": 1}
    values = {"request": " r ", "other": "", "examples": Examples(VALUES["examples"][:2])}
    assert render(source, values) == "R1b 2b 2yes"
