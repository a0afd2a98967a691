"""Real tools with declared dependencies, through every step and the reader: what expanding by them
is worth.
"""

from pathlib import Path

import pytest

from benchmarks.papers.loading import load_benchmark
from pegboard.evaluation.comparison import evaluate
from pegboard.evaluation.searcher import Searcher
from pegboard.evaluation.systems import ReleaseSystem

TOOLLINKOS = Path(__file__).parents[3] / "shared" / "benchmarks" / "toollinkos"
INDEXES = '[[indexes]]\nencoder = "local/minilm-tools-v1"\n'
CATALOG = f"""
[catalogs.toollinkos]
type = "records"
path = "{TOOLLINKOS}/tools.json"
columns = {{ parameters = "parameters"DECLARED, tags = "func_type" }}
"""
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not TOOLLINKOS.is_dir(), reason="the benchmark files are not beside this checkout"
    ),
]


@pytest.mark.parametrize(
    ("declared", "least"),
    [(', dependencies = "depends_on"', 0.89), ("", 0.70)],
    ids=["declared", "inferred"],
)
def test_what_a_tool_depends_on_comes_with_it(workshop, declared, least):
    release = workshop.run(
        workshop.configure(INDEXES, CATALOG.replace("DECLARED", declared))
    ).release
    queries = load_benchmark("toollinkos", TOOLLINKOS).query_sets[0].queries
    searcher = Searcher.open(workshop.uri)

    def precision(strategy):
        system = ReleaseSystem.resolve(searcher, strategy)
        return evaluate(system, queries, ["mAP@10"]).interval("mAP@10").value

    assert release.tables["edges"].rows > 500
    assert precision("search") < 0.25
    assert precision("dependencies") >= least
    assert {edge.origin for edge in searcher.loaded.graph.edges} <= (
        {"declared", "inferred"} if declared else {"inferred"}
    )
