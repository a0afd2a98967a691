"""Golden queries are read, and every invalid line of their file is named."""

import json
import re

import pytest

from pegboard.errors import ConfigurationError
from tasks.golden.reading import read_golden

GOLDEN = '[golden]\nqueries = "golden.jsonl"\n'
NAMES = [
    f"{verb}_{thing}"
    for verb in ("open", "close", "paint", "sell")
    for thing in ("door", "window", "roof", "gate", "fence")
]
QUERIES = [
    {
        "query": f"{please} {name.replace('_', ' the ')}",
        "tools": [name if at % 2 else f"kit/shop/{name}"],
    }
    for please in ("please", "kindly")
    for at, name in enumerate(NAMES)
]


@pytest.fixture
def shop(workshop):
    tools = [workshop.tool(name, f"{name.replace('_', 's the ')} of a house.") for name in NAMES]
    workshop.servers({"shop": tools})
    return workshop


def write(shop, *queries, file="golden.jsonl"):
    shop.write(file, "\n".join(json.dumps(query) for query in queries))


def run(shop, hashing, settings=GOLDEN, queries=QUERIES, **options):
    write(shop, *queries)
    return shop.run(shop.configure(settings), encoder=hashing(64), **options)


def test_golden_queries_alone_change_no_release(shop, hashing):
    first = run(shop, hashing).release

    assert run(shop, hashing, queries=QUERIES[:35]).release is None
    assert read_golden(shop.configure("")) is None
    assert "strategy" not in first.manifest


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


def test_the_least_number_of_queries_is_a_setting(shop):
    write(shop, *QUERIES[:12])

    assert len(read_golden(shop.configure(f"{GOLDEN}min_queries = 12\n"))) == 12
    with pytest.raises(
        ConfigurationError, match=r"has 12 queries; expected 13 or more.*lower min_"
    ):
        read_golden(shop.configure(f"{GOLDEN}min_queries = 13\n"))
