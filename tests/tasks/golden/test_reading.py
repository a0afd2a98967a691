"""Golden queries are read, and every invalid line of their file is named."""

import json
import re

import pytest

from pegboard.errors import ConfigurationError
from tasks.golden.reading import read_golden

GOLDEN = '[golden]\nqueries = "golden.jsonl"\n'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{not json", ":1: not JSON"),
        ('{"query": "q", "tools": ["a"]}', " has 1 query; expected 30 or more"),
    ],
)
def test_every_invalid_line_is_named(workshop, text, problem):
    workshop.write("golden.jsonl", text)

    with pytest.raises(ConfigurationError, match=re.escape(f"golden.jsonl{problem}")):
        read_golden(workshop.configure(GOLDEN))


def test_the_least_number_of_queries_is_a_setting(workshop):
    lines = [json.dumps({"query": f"open door {n}", "tools": ["open_door"]}) for n in range(12)]
    workshop.write("golden.jsonl", "\n".join(lines))

    assert read_golden(workshop.configure("")) is None
    assert len(read_golden(workshop.configure(f"{GOLDEN}min_queries = 12\n"))) == 12
    with pytest.raises(
        ConfigurationError, match=r"has 12 queries; expected 13 or more.*lower min_"
    ):
        read_golden(workshop.configure(f"{GOLDEN}min_queries = 13\n"))
