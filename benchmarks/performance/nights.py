"""A hundred nights of 1 %: how fast a large table is searched, and how many bytes a night writes,
as the nights go by.

    python benchmarks/performance/nights.py [--rows 60000] [--dimensions 32] [--share 0.01]
    [--nights 100]

One embedding table is upserted and maintained as a run does, without pruning, so that every written
byte counts. Vectors lie in clusters; the requests lie far from any of them.
"""

import argparse
import shutil
import statistics
import tempfile
import time
from datetime import timedelta
from pathlib import Path

import lancedb
import numpy as np
import pyarrow as pa

from pegboard.store.contract import table_schema
from tasks.maintain import FILTERS, maintain, open_dataset, search_of, unindexed_rows

REQUESTS = 100
TOLD = (1, 2, 5, 10, 17, 25, 36, 50, 64, 75, 85, 100)


class Nights:
    def __init__(self, folder: Path, rows: int, dimensions: int) -> None:
        self.folder, self.rows, self.dimensions = folder, rows, dimensions
        self.dice = np.random.default_rng(0)
        centres = self.dice.normal(size=(max(1, rows // 20), dimensions))
        self.centres = (
            centres
            + self.dice.normal(size=(30, dimensions))[self.dice.integers(0, 30, len(centres))]
        )
        self.database = lancedb.connect(folder / "tables", read_consistency_interval=timedelta(0))
        self.table = self.database.create_table("emb_full", self.made(np.arange(rows)))
        self.requests = self.vectors(REQUESTS, 1.5)
        maintain(self.table, str(folder), rows)

    def vectors(self, count: int, spread: float) -> np.ndarray:
        found = self.centres[self.dice.integers(0, len(self.centres), count)]
        found = found + spread * self.dice.normal(size=found.shape)
        return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)

    def made(self, ids: np.ndarray) -> pa.Table:
        words = [" ".join(f"w{int(5_000 * one**2)}" for one in self.dice.random(12)) for _ in ids]
        digests = [f"{one:064x}" for one in self.dice.integers(0, 2**60, len(ids))]
        tools = [f"kit/server{one % 50}/tool_{one:06}" for one in ids]
        columns = {
            "key": [f"{tool}#document#0" for tool in tools],
            "tool": tools,
            "part": ["document"] * len(ids),
            "catalog": ["kit"] * len(ids),
            "agent": [tool.rpartition("/")[0] for tool in tools],
            "kind": ["mcp-server"] * len(ids),
            "tags": [["office"]] * len(ids),
            "text": words,
            "tokens": words,
            "vector": pa.FixedSizeListArray.from_arrays(
                pa.array(self.vectors(len(ids), 0.5).ravel()), self.dimensions
            ),
            "digest": digests,
            "checksum": digests,
        }
        return pa.table(columns, schema=table_schema("emb_full", self.dimensions))

    def night(self, share: float) -> None:
        ids = self.dice.choice(self.rows, max(1, int(self.rows * share)), replace=False)
        merge = (
            self.table.merge_insert("key").when_matched_update_all().when_not_matched_insert_all()
        )
        merge.execute(self.made(ids))
        maintain(self.table, str(self.folder), self.rows)

    def bytes(self) -> int:
        return sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())

    def told(self) -> str:
        """Medians of the two searches in ms, recall@10, fragments, parts of the vector index, rows
        outside of an index.
        """
        dataset = open_dataset(str(self.folder), "emb_full")
        search = search_of(dataset)
        table = self.database.open_table("emb_full")
        table.checkout(table.version)
        everything = table.search().select(["key", "vector"]).to_arrow()
        matrix = (
            everything.column("vector")
            .combine_chunks()
            .flatten()
            .to_numpy()
            .reshape(-1, self.dimensions)
        )
        keys = everything.column("key").to_pylist()
        by_vector, by_words, found = [], [], 0
        for number, request in enumerate(self.requests):
            began = time.perf_counter()
            query = table.search(
                request, vector_column_name="vector", query_type="vector"
            ).distance_type("cosine")
            query = query.nprobes(search["nprobes"]) if search else query
            rows = query.limit(100).select(["key", "_distance"]).to_arrow()
            by_vector.append(time.perf_counter() - began)
            exact = {keys[row] for row in np.argpartition(-(matrix @ request), 10)[:10]}
            found += len(exact & set(rows.column("key").to_pylist()[:10]))
            began = time.perf_counter()
            words = f"w{number} w{number * 7} w{number * 13}"
            table.search(words, query_type="fts", fts_columns="tokens").limit(100).select(
                ["key", "_score"]
            ).to_arrow()
            by_words.append(time.perf_counter() - began)
        index = [one for one in dataset.describe_indices() if one.field_names == ["vector"]]
        outside = (
            sum(unindexed_rows(dataset, column) for column in ("vector", "tokens", *FILTERS))
            if index
            else 0
        )
        return (
            f"vector {1000 * statistics.median(by_vector):5.1f} ms  text "
            f"{1000 * statistics.median(by_words):5.1f} ms  "
            f"recall@10 {found / (10 * REQUESTS):.3f}  fragments {len(dataset.get_fragments()):2}  "
            f"parts {len(index[0].segments) if index else 0}  unindexed {outside}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--dimensions", type=int, default=32)
    parser.add_argument("--share", type=float, default=0.01)
    parser.add_argument("--nights", type=int, default=100)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    try:
        nights = Nights(folder, options.rows, options.dimensions)
        base = before = nights.bytes()
        print(f"night   0  {base / 1e6:7.2f} MB in all       {nights.told()}", flush=True)
        written, seconds = [], []
        for night in range(1, options.nights + 1):
            began = time.perf_counter()
            nights.night(options.share)
            seconds.append(time.perf_counter() - began)
            after = nights.bytes()
            written.append(after - before)
            before = after
            if night in TOLD or night == options.nights:
                mean = statistics.mean(written)
                print(
                    f"night {night:3}  {written[-1] / 1e6:7.2f} MB, mean {mean / 1e6:5.2f} "
                    f"({100 * mean / base:4.1f} %)  "
                    f"{nights.told()}",
                    flush=True,
                )
        print(
            f"the most in one night: {max(written) / 1e6:.2f} MB; {statistics.mean(seconds):.2f} "
            f"s a night on average"
        )
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
