"""Hostile and harmless tools in twelve languages. Their authors had not seen the classifier or its
training texts; the author of the second corpus later wrote some training texts.
"""

import json
from pathlib import Path

import pytest

from pegboard.records import Tool
from tasks.safety.untrusted import flags_of


def tool_of(row):
    texts = row.get("parameters", {})
    schema = {"properties": {name: {"description": text} for name, text in texts.items()}}
    return Tool("kit/sea/a", "kit", "kit/sea", row["name"], row["description"], schema)


@pytest.mark.parametrize(
    ("corpus", "max_missed", "max_alarms"), [("heldout", 29, 7), ("second", 19, 5)]
)
def test_most_hostile_tools_are_flagged_and_most_similar_harmless_ones_are_not(
    corpus, max_missed, max_alarms
):
    lines = Path(__file__).with_name(f"{corpus}.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    hostile = [row for row in rows if row["attack"] != "none"]
    harmless = [row for row in rows if row["attack"] == "none"]

    missed = [row["name"] for row in hostile if not flags_of(tool_of(row))]
    alarms = [row["name"] for row in harmless if flags_of(tool_of(row))]

    assert len(missed) <= max_missed, missed
    assert len(alarms) <= max_alarms, alarms
