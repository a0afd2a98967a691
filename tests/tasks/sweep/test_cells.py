"""Cells hold what `evaluate` returns for the sample, and none is measured twice."""

import polars as pl
import pytest

from pegboard.errors import ConfigurationError, FingerprintMismatch
from pegboard.evaluation.experiment import ReleaseSystem, evaluate
from pegboard.evaluation.searcher import Searcher
from tasks.lake.query_vectors import CachedQueryEncoder
from tasks.settings.configuration import load_configuration
from tasks.sweep.cells import golden_queries, measure_cell
from tasks.sweep.files import SweepFolder

ONE = {"strategies": ["search"], "indexes": ["whole"]}


def test_a_cell_holds_what_evaluate_returns_for_the_sample(bench):
    design, _ = bench.measure(
        tools="10,all", strategies=["clauses"], indexes=["names"], measures=["Recall", "nDCG"]
    )
    searcher = Searcher.open(str(bench.folder / "board"), encoder=bench.encoder)

    for cell, sample in zip(design.cells, design.samples, strict=True):
        restricted = searcher.restricted(cell.files.read_json(cell.sample))
        queries = [design.sweep.queries[place] for place in sample.queries]
        direct = evaluate(
            ReleaseSystem.resolve(restricted, "clauses", "names"), queries, ["Recall@2", "nDCG@2"]
        )

        rows = cell.files.read(cell.rows).filter(k=2).sort("measure")  # capitals first
        intervals = [direct.interval(measure).to_dict() for measure in direct.values]
        assert rows.select("value", "low", "high", "n").to_dicts() == intervals
        values = cell.files.read(cell.values).filter(k=2, measure="Recall").sort("place")
        recall = next(iter(direct.values.values()))
        assert values.get_column("value").to_list() == recall.tolist()
        assert values.get_column("query").to_list() == [query.id for query in queries]


def test_more_tools_take_more_tokens_and_requests_take_time(bench):
    design, _ = bench.measure(**ONE)
    cell = design.cells[0]

    rows = cell.files.read(cell.rows).sort("k")

    tokens = rows.get_column("tokens").to_list()
    assert tokens[0] > 5
    assert tokens[2] == pytest.approx(3 * tokens[0], rel=0.2)
    assert 0 < rows.get_column("ms_p50")[0] <= rows.get_column("ms_p95")[0]


def test_what_is_done_is_not_measured_again(bench):
    first, *others = bench.design(tools="10,all").cells
    measure_cell(first, encoder=bench.encoder)
    file = bench.folder / "sweep" / first.rows
    before = file.stat().st_mtime_ns

    design, measured = bench.measure(tools="10,all")

    assert (len(design.cells), design.finished) == (8, 1)
    assert [cell.key for cell in measured] == [cell.key for cell in others]
    assert file.stat().st_mtime_ns == before
    assert bench.measure(tools="10,all")[1] == []


def test_a_cell_without_its_last_file_is_not_done(bench):
    cell = bench.measure(**ONE)[0].cells[0]

    cell.files.delete(cell.rows)

    assert cell.files.exists(cell.values)
    assert not cell.is_done


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
def test_whatever_decides_a_value_makes_another_cell(bench, changed):
    bench.measure(**ONE)

    assert bench.design(**ONE).finished == 1
    assert bench.design(**{**ONE, **changed}).finished == 0


def test_other_queries_make_other_cells_and_another_seed_other_samples(bench):
    bench.measure(**ONE, tools="10,all")
    assert bench.design(**ONE, tools="10,all", seed=5).finished == 1  # the whole catalog

    lines = bench.golden.read_text("utf-8").splitlines()
    bench.golden.write_text("\n".join(lines[:-1]), "utf-8")

    design = bench.design(**ONE, tools="10,all")
    assert design.finished <= 1  # the small sample may do without the query that is gone
    assert not design.cells[-1].is_done


def test_a_new_index_leaves_the_others_done(bench, workshop):
    bench.measure(strategies=["search"])
    third = '\n[[indexes]]\nname = "third"\nparts = ["description"]\n'
    bench.config.write_text(bench.config.read_text("utf-8") + third, "utf-8")
    release = workshop.run(load_configuration(bench.config), encoder=bench.encoder).release

    design, measured = bench.measure(strategies=["search"])

    assert release.id != bench.release
    assert design.finished == 2
    assert [cell.index for cell in measured] == ["third"]


def test_golden_queries_that_change_meanwhile_are_noticed(bench):
    cell = bench.design(**ONE).cells[0]
    bench.golden.write_text('{"query": "book a room", "tools": ["book_room"]}\n', "utf-8")

    golden_queries.cache_clear()
    with pytest.raises(ConfigurationError, match="changed while the sweep ran"):
        measure_cell(cell, encoder=bench.encoder)


def test_query_vectors_are_kept_and_no_encoder_is_loaded_for_them(tmp_path, hashing):
    def never():
        raise AssertionError("an encoder was loaded")

    folder, encoder = SweepFolder(tmp_path), hashing(8)
    vectors = CachedQueryEncoder.of(encoder, folder).encode(["one", "two", "one"])
    again = CachedQueryEncoder(folder, encoder.name, encoder.fingerprint, 8, never)

    assert (again.encode(["two", "one"]) == vectors[[1, 0]]).all()
    (file,) = tmp_path.rglob("*.parquet")
    assert pl.read_parquet(file).columns == ["text_digest", "vector"]  # the texts are not kept


def test_vectors_of_another_encoder_are_refused(tmp_path, hashing):
    encoder = CachedQueryEncoder(
        SweepFolder(tmp_path), "stub/hashing", "hashing-8", 8, lambda: hashing(16)
    )

    with pytest.raises(FingerprintMismatch, match="hashing-16"):
        encoder.encode(["one"])
