"""Cells: what they hold is what `evaluate` says; what is done is not done again."""

import polars as pl
import pytest

from pegboard.errors import ConfigurationError
from pegboard.evaluation.experiment import ReleaseSystem, evaluate
from pegboard.evaluation.searcher import Searcher
from tasks.sweep.cells import is_done, measure_cell
from tasks.sweep.files import read_frame, read_json


def test_a_cell_holds_what_evaluate_says_of_the_sample(bench):
    laid = bench.design(
        tools="10,all", strategies=["clauses"], indexes=["names"], measures=["Recall", "nDCG"]
    )
    bench.measure(laid)
    searcher = Searcher.open(str(bench.folder / "board"), encoder=bench.encoder)

    for cell, sample in zip(laid.cells, laid.samples, strict=True):
        restricted = searcher.restricted(read_json(cell.sample))
        queries = [laid.sweep.queries[place] for place in sample.queries]
        direct = evaluate(
            ReleaseSystem.resolve(restricted, "clauses", "names"), queries, ["Recall@2", "nDCG@2"]
        )

        rows = read_frame(cell.rows).filter(k=2).sort("measure")  # capitals first
        assert rows.select("value", "low", "high", "n").to_dicts() == [
            direct.interval(measure).to_dict() for measure in direct.values
        ]
        values = read_frame(cell.values).filter(k=2, measure="Recall").sort("place")
        assert (
            values.get_column("value").to_list()
            == direct.values[next(iter(direct.values))].tolist()
        )
        assert values.get_column("query").to_list() == [query.id for query in queries]


def test_more_tools_take_more_tokens_and_requests_take_time(bench):
    laid = bench.design(strategies=["search"], indexes=["whole"])
    bench.measure(laid)

    rows = read_frame(laid.cells[0].rows).sort("k")

    tokens = rows.get_column("tokens").to_list()
    assert tokens[0] > 5
    assert tokens[2] == pytest.approx(3 * tokens[0], rel=0.2)
    assert 0 < rows.get_column("ms_p50")[0] <= rows.get_column("ms_p95")[0]


def test_what_is_done_is_not_measured_again(bench):
    laid = bench.design(tools="10,all")
    first, *others = laid.cells
    measure_cell(first, encoder=bench.encoder)
    before = first.rows.stat().st_mtime_ns

    again = bench.design(tools="10,all")

    assert (len(again.cells), again.finished) == (8, 1)
    assert [cell.key for cell in bench.measure(again)] == [cell.key for cell in others]
    assert first.rows.stat().st_mtime_ns == before
    assert bench.design(tools="10,all").finished == 8
    assert bench.measure(bench.design(tools="10,all")) == []


def test_a_cell_without_its_last_file_is_not_done(bench):
    laid = bench.design(strategies=["search"], indexes=["whole"])
    bench.measure(laid)

    laid.cells[0].rows.unlink()

    assert laid.cells[0].values.is_file()
    assert not is_done(laid.cells[0])


@pytest.mark.parametrize(
    "changed",
    [
        {"k": "1..2"},
        {"measures": ["MRR"]},
        {"timed": 1},
        {"strategies": [{"name": "search", "modes": ["text"]}]},
    ],
    ids=["k", "measure", "timed", "strategy"],
)
def test_whatever_decides_a_result_makes_another_cell(bench, changed):
    usual = {"strategies": ["search"], "indexes": ["whole"]}
    bench.measure(bench.design(**usual))

    assert bench.design(**usual).finished == 1
    assert bench.design(**{**usual, **changed}).finished == 0


def test_another_order_of_other_queries_makes_other_cells_and_another_seed_other_samples(bench):
    usual = {"strategies": ["search"], "indexes": ["whole"], "tools": "10,all"}
    bench.measure(bench.design(**usual))
    assert (
        bench.design(**usual, seed=5).finished == 1
    )  # the whole catalog is the same whatever the seed

    golden = bench.folder / "golden.jsonl"
    golden.write_text("\n".join(golden.read_text("utf-8").splitlines()[:-1]), "utf-8")

    laid = bench.design(**usual)
    assert laid.finished <= 1  # the small sample may do without the query that is gone
    assert not is_done(laid.cells[-1])


def test_an_index_that_comes_later_leaves_the_others_done(bench, workshop_type, workshop):
    laid = bench.design(strategies=["search"])
    bench.measure(laid)
    text = (
        bench.config.read_text("utf-8") + '\n[[indexes]]\nname = "third"\nparts = ["description"]\n'
    )
    bench.config.write_text(text, "utf-8")
    from tasks.settings.configuration import load_configuration

    release = workshop.run(load_configuration(bench.config), encoder=bench.encoder).release

    again = bench.design(strategies=["search"])

    assert release.id != bench.release
    assert again.finished == 2
    assert [cell.index for cell in bench.measure(again)] == ["third"]


def test_golden_queries_that_change_meanwhile_are_noticed(bench):
    laid = bench.design(strategies=["search"], indexes=["whole"])
    (bench.folder / "golden.jsonl").write_text(
        '{"query": "book a room", "tools": ["book_room"]}\n', "utf-8"
    )
    from tasks.sweep.opened import golden_queries

    golden_queries.cache_clear()
    with pytest.raises(ConfigurationError, match="changed while the sweep ran"):
        bench.measure(laid)


def test_the_vectors_of_queries_are_kept_and_no_encoder_is_loaded_for_them(tmp_path, hashing):
    from tasks.sweep.query_store import StoredQueries

    encoder = hashing(8)
    first = StoredQueries(tmp_path, encoder.name, encoder.fingerprint, 8, lambda: encoder)
    vectors = first.encode(["one", "two", "one"])

    def never():
        raise AssertionError("an encoder was loaded")

    again = StoredQueries(tmp_path, encoder.name, encoder.fingerprint, 8, never)

    assert (again.encode(["two", "one"]) == vectors[[1, 0]]).all()
    files = list(tmp_path.rglob("*.parquet"))
    assert len(files) == 1
    assert pl.read_parquet(files[0]).columns == [
        "text_digest",
        "vector",
    ]  # what people asked is not kept


def test_vectors_of_another_encoder_are_refused(tmp_path, hashing):
    from pegboard.errors import FingerprintMismatch
    from tasks.sweep.query_store import StoredQueries

    store = StoredQueries(tmp_path, "stub/hashing", "hashing-8", 8, lambda: hashing(16))

    with pytest.raises(FingerprintMismatch, match="hashing-16"):
        store.encode(["one"])
