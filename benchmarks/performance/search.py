"""`python -m benchmarks search [--rows 1000 10000 100000] [--json]`: time of a search.

A board of synthetic tools (384 dimensions, 40 words each, frequent and rare ones) is searched by
vector, by text and by both: by `pegboard` in memory, by `pegboard` through Lance, and by `lancedb`
itself (the package's own calls on the same tables at the same settings, hybrid with its RRF
reranker). All three return the ten best tools with their rows; requests take turns, so that other
load on the machine affects all alike.
"""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.performance.boards import DIMENSIONS, random_words, synthetic_board
from benchmarks.performance.shared import parser_of, print_rows, seconds_of

K = 10
MODES = ("vector", "text", "hybrid")
WARM_UP = 3
Search = Callable[[str, Any, str], int]


def by_pegboard(uri: str, in_memory_rows: int) -> Search:
    """A search by `pegboard`."""
    import pegboard

    board: Any = pegboard.open(uri, in_memory_rows=in_memory_rows, refresh=3600)
    return lambda mode, vector, words: len(board.search(words, K, mode=mode, vector=vector))


def by_lancedb(uri: str) -> Search:
    """The same search by the package `lancedb`."""
    import lancedb
    from lancedb.rerankers import RRFReranker

    from pegboard.store.releases import ReleaseStore

    release = ReleaseStore(uri).all()[0]
    database, reranker = lancedb.connect(f"{uri}/tables"), RRFReranker()
    table: Any = database.open_table("emb_full", version=release.tables["emb_full"].version)
    tools = database.open_table("tools", version=release.tables["tools"].version)
    settings = release.tables["emb_full"].search or {}

    def near(query: Any) -> Any:
        for setting, value in (("nprobes", "nprobes"), ("ef", "ef"), ("refine_factor", "refine")):
            query = getattr(query, setting)(settings[value]) if settings.get(value) else query
        return query.distance_type("cosine")

    def search(mode: str, vector: Any, words: str) -> int:
        if mode == "vector":
            query = near(table.search(vector, vector_column_name="vector"))
        elif mode == "text":
            query = table.search(words, query_type="fts", fts_columns="tokens")
        else:
            query = table.search(
                query_type="hybrid", vector_column_name="vector", fts_columns="tokens"
            )
            query = near(query.vector(vector).text(words)).rerank(reranker)
        hits = query.limit(K).select(["tool"]).to_arrow().column("tool").to_pylist()
        ids = ", ".join(f"'{tool}'" for tool in hits) or "NULL"
        return len(tools.search().where(f"id IN ({ids})").to_list())

    return search


def measure(uri: str, rows: int, repeats: int) -> list[dict[str, Any]]:
    """The times of all ways and modes on one board."""
    ways = {
        "pegboard in memory": by_pegboard(uri, rows),
        "pegboard through Lance": by_pegboard(uri, 0),
        "lancedb": by_lancedb(uri),
    }
    numbers, measured = np.random.default_rng(1), []
    for mode in MODES:
        times: dict[str, list[float]] = {way: [] for way in ways}
        for number in range(repeats + WARM_UP):
            vector = numbers.normal(size=DIMENSIONS).astype(np.float32)
            vector /= np.linalg.norm(vector)
            words = random_words(numbers, 6)
            turn = number % len(ways)  # after a large matrix product processor caches are empty
            for way, search in [*ways.items()][turn:] + [*ways.items()][:turn]:
                taken = seconds_of(lambda: search(mode, vector, words)) * 1000  # noqa: B023
                if number >= WARM_UP:
                    times[way].append(taken)
        plain = float(np.median(times["lancedb"]))
        for way, taken in times.items():
            p50, p99 = (float(value) for value in np.percentile(taken, [50, 99]))
            row = {"mode": mode, "tools": rows, "way": way, "p50 ms": p50, "p99 ms": p99}
            measured.append(row | {"p50 / lancedb": p50 / plain})
    return measured


def main() -> None:
    """Print one line for each way and mode."""
    parser = parser_of(__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--repeats", type=int, default=50)
    options = parser.parse_args()
    os.environ.setdefault("LANCEDB_LOG", "error")  # else every hybrid search warns about itself
    with tempfile.TemporaryDirectory() as folder:
        measured = [
            row
            for rows in options.rows
            for row in measure(synthetic_board(Path(folder), rows), rows, options.repeats)
        ]
    print_rows("search", measured, as_json=options.json)
