"""Real tools with declared dependencies, through every step and the reader: what expanding by them is worth."""

import json
from pathlib import Path
from statistics import fmean

import pytest

import pegboard
from pegboard.measures import average_precision

TOOLLINKOS = Path(__file__).parents[3] / "shared" / "benchmarks" / "toollinkos"
CATALOG = f"""
[catalogs.toollinkos]
type = "records"
path = "{TOOLLINKOS}/tools.json"
columns = {{ parameters = "parameters"DECLARED, tags = "func_type" }}
"""
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not TOOLLINKOS.is_dir(), reason="the benchmark files are not beside this checkout"),
]


@pytest.mark.parametrize(
    ("declared", "least"), [(', dependencies = "depends_on"', 0.89), ("", 0.70)], ids=["declared", "inferred"]
)
def test_what_a_tool_depends_on_comes_with_it(workshop, encoder, declared, least):
    release = workshop.run(workshop.configure(catalogs=CATALOG.replace("DECLARED", declared))).release
    lines = [json.loads(line) for line in (TOOLLINKOS / "instances.jsonl").read_text("utf-8").splitlines()]
    requests, needed = [one["user_query"] for one in lines], [one["golden_function_names"] for one in lines]
    board = pegboard.open(workshop.uri, encoder=encoder, refresh=3600)

    def precision(plan):
        found = board.find_many(requests, 10, plan=plan)
        names = [[hit.tool.name for hit in one] for one in found]
        return fmean(average_precision(one, right, 10) for one, right in zip(names, needed, strict=True))

    assert release.tables["edges"].rows > 500
    assert precision("search") < 0.25
    assert precision("dependencies") >= least
    assert {edge.origin for edge in board.graph.edges} <= ({"declared", "inferred"} if declared else {"inferred"})
