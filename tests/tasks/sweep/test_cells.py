"""Cells hold what `evaluate` returns for the sample, and none is measured twice."""

import pytest

from pegboard.errors import CompletionError
from pegboard.evaluation.comparison import evaluate
from pegboard.evaluation.searcher import Searcher
from pegboard.evaluation.systems import ReleaseSystem
from pegboard.retrieval.llm.caller import LlmCaller
from tasks.sweep import cells
from tasks.sweep.cells import measure_cell

CELL = {"strategies": ["search"], "indexes": ["whole"]}


def test_a_cell_holds_what_evaluate_returns_for_the_sample(bench):
    design, _ = bench.measure(
        tools="10,all", strategies=["clauses"], indexes=["names"], measures=["Recall", "nDCG"]
    )
    searcher = Searcher.open(str(bench.folder / "board"))

    for cell, sample in zip(design.cells, design.samples, strict=True):
        restricted = searcher.restricted(sample.tools)
        queries = [design.sweep.queries[place] for place in sample.queries]
        system = ReleaseSystem.resolve(restricted, "clauses", "names")
        direct = evaluate(system, queries, ["Recall@2", "nDCG@2"])

        rows = cell.files.read(cell.rows).sort("measure", "k")  # capitals first
        intervals = [direct.interval(measure).to_dict() for measure in direct.values]
        assert rows.filter(k=2).select("value", "low", "high", "n").to_dicts() == intervals
        values = cell.files.read(cell.values).filter(k=2, measure="Recall").sort("place")
        recall = next(iter(direct.values.values()))
        assert values.get_column("value").to_list() == recall.tolist()
        assert values.get_column("query").to_list() == [query.id for query in queries]
        # More tools take more tokens, and requests take time.
        tokens = rows.filter(measure="Recall").get_column("tokens").to_list()
        assert tokens[0] > 5
        assert tokens[2] == pytest.approx(3 * tokens[0], rel=0.2)
        assert 0 < rows.get_column("ms_p50")[0] <= rows.get_column("ms_p95")[0]


def test_everything_that_decides_a_value_makes_another_cell(bench):
    bench.measure(**CELL, tools="10,all")
    text = {"name": "search", "modes": ["text"]}
    changes = [{"k": "1..2"}, {"measures": ["MRR"]}, {"strategies": [text]}]

    assert bench.design(**CELL).finished == 1
    for change in changes:
        assert bench.design(**{**CELL, **change}).finished == 0
    # Another seed draws other samples, and the whole catalog stays.
    assert bench.design(**CELL, tools="10,all", seed=5).finished == 1
    lines = bench.golden.read_text("utf-8").splitlines()
    bench.golden.write_text("\n".join(lines[:-1]), "utf-8")
    # The small sample may do without the query that is gone.
    assert not bench.design(**CELL, tools="10,all").cells[-1].is_done


class DeadCompleter:
    name = "dead/model"

    async def complete(self, request):
        raise CompletionError("connection refused", kind="connection", may_pass=False)


def test_a_cell_whose_llm_is_gone_is_not_kept_under_the_name_of_its_strategy(bench, monkeypatch):
    monkeypatch.setattr(cells, "open_caller", lambda *_: LlmCaller(DeadCompleter()))
    design = bench.design(**{**CELL, "strategies": ["step-back"]}, llm="dead/model")

    with pytest.raises(CompletionError, match="step-back in whole") as refused:
        measure_cell(design.cells[0])

    assert "repeat the sweep: finished cells are kept" in str(refused.value)
    assert not design.cells[0].is_done
