"""Hostile and harmless tools in twelve languages, by authors who had seen neither the classifier
nor the texts that it was fitted on; the author of the second wrote some of these later.
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
    ("corpus", "most_missed", "most_alarms"), [("heldout", 29, 7), ("second", 19, 5)]
)
def test_most_hostile_tools_of_a_corpus_are_flagged_and_most_that_look_alike_are_not(
    corpus, most_missed, most_alarms
):
    lines = Path(__file__).with_name(f"{corpus}.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    hostile = [row for row in rows if row["attack"] != "none"]
    harmless = [row for row in rows if row["attack"] == "none"]

    missed = [row["name"] for row in hostile if not flags_of(tool_of(row))]
    alarms = [row["name"] for row in harmless if flags_of(tool_of(row))]

    assert len(missed) <= most_missed, missed
    assert len(alarms) <= most_alarms, alarms
