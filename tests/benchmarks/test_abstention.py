"""What tells requests that a board answers from others: the measures, and one small board."""

from benchmarks.papers.benchmark import Benchmark, BenchmarkBoard
from benchmarks.performance.abstention import (
    Case,
    decisions,
    means,
    table,
)
from pegboard.encoders import load_encoder
from pegboard.evaluation.golden import GoldenQuery

ANIMALS = ["hen", "cow", "goat", "pig", "duck", "mule", "ram", "owl", "cat", "dog", "bee", "ox"]


def test_a_board_is_asked_by_score_and_by_probability(tmp_path):
    rows = "".join(
        f'{{"name": "feed_{animal}", "description": "Feeds the {animal}."}}\n' for animal in ANIMALS
    )
    board = BenchmarkBoard(
        "farm",
        '[catalogs.farm]\ntype = "records"\npath = "tools.jsonl"\n',
        '[[indexes]]\nname = "words"\nencoder = "hashing/64"\n',
        {"tools.jsonl": rows},
    )
    queries = tuple(
        GoldenQuery(f"{ask} the {animal}", (f"feed_{animal}",))
        for animal in ANIMALS
        for ask in ("please feed", "time to feed")
    )
    others = tuple(f"what is the square root of {number}?" for number in range(20))
    case = Case("real", "farm", Benchmark("farms", (board,), ()), queries, others)

    made = decisions(case, tmp_path, load_encoder("hashing/64"))

    by_name = {decision.decides: decision for decision in made}
    assert by_name.keys() == {"score", "probability"}
    likely = by_name["probability"]
    assert (likely.board, len(likely.right), len(likely.wrong)) == ("farm", 24, 20)
    assert likely.row()["auroc"] == 1.0
    assert "calibration_error" not in by_name["score"].row()
    rows = means(made)
    assert all(row["auroc"]["low"] <= row["auroc"]["value"] for row in rows)
    assert "| real (1) | probability | 1.000 [1.000, 1.000] |" in table(rows)
