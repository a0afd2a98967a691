"""How long a search takes: `python -m benchmarks.performance.search [--rows 1000 10000 100000]
[--json]`.

A board of synthetic tools (384 dimensions, 40 words each, frequent and rare ones) is searched by
vector, by text and by both: by `pegboard` in memory, by `pegboard` through Lance, and by `lancedb`
itself (the package's own calls on the same tables at the same settings, hybrid with its RRF
reranker). All three return the ten best tools with their rows; requests take turns, so that other
load on the machine hits all alike."""

import argparse
import json
import os
import platform
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

K = 10
DIMENSIONS = 384
WORDS = 40
MODES = ("vector", "text", "hybrid")
Ask = Callable[[str, Any, str], int]


def machine() -> str:
    """What this runs on."""
    cpus = Path("/proc/cpuinfo").read_text("utf-8") if Path("/proc/cpuinfo").exists() else ""
    model = next(
        (
            line.partition(":")[2].strip()
            for line in cpus.splitlines()
            if line.startswith("model name")
        ),
        "",
    )
    packages = ", ".join(f"{name} {version(name)}" for name in ("lancedb", "pyarrow", "numpy"))
    return (
        f"{model or platform.machine()}, {os.cpu_count()} cores, Python "
        f"{platform.python_version()}, {packages}"
    )


def make_board(
    folder: Path, rows: int, encoder: tuple[str, str] = ("none", "none"), edges: int = 0
) -> str:
    """A board with one release of so many tools, its index as a run makes it.

    `encoder` is the name and the fingerprint that the release says; `edges` are the dependencies of
    each tool."""
    import lancedb
    import numpy as np
    import pyarrow as pa

    from pegboard.store.contract import CONTRACT, table_schema
    from pegboard.store.releases import Pin, Release, ReleaseStore
    from tasks.maintain import IndexSizes, VectorIndex, fit_indices

    numbers = np.random.default_rng(0)
    topics = numbers.normal(size=(max(rows // 100, 1), DIMENSIONS))
    vectors = topics[np.arange(rows) % len(topics)] + numbers.normal(size=(rows, DIMENSIONS))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    picked = (20_000 * numbers.random((rows, WORDS)) ** 3).astype(int)
    agents = [f"c/a{number % 100}" for number in range(rows)]
    names = [f"{agent}/t{number:07}" for number, agent in enumerate(agents)]
    own: dict[str, Any] = {
        "id": names, "tool": names, "key": [f"{name}#document#0" for name in names], "part": ["document"] * rows,
        "catalog": ["c"] * rows, "agent": agents, "kind": ["library"] * rows,
        "tokens": [" ".join(f"w{word}" for word in line) for line in picked],
        "tags": pa.array([[f"t{number % 5}"] for number in range(rows)]),
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIMENSIONS),
        "input_schema": ['{"type": "object", "properties": {"one": {"type": "string"}}}'] * rows,
        "annotations": ["{}"] * rows, "dependencies": ["[]"] * rows,
    }  # fmt: skip

    def table(schema: pa.Schema, count: int, values: dict[str, Any]) -> pa.Table:
        def column(field: pa.Field) -> Any:
            filler = (
                [[]] * count
                if pa.types.is_list(field.type)
                else [None if field.nullable else "text"] * count
            )
            return values.get(field.name, filler)

        return pa.table({field.name: column(field) for field in schema}, schema=schema)

    uri = str(folder / f"board-{rows}")
    store = ReleaseStore(uri)
    store.create()
    database = lancedb.connect(f"{uri}/tables")
    people = sorted(set(agents))
    owners = {
        "id": people,
        "catalog": ["c"] * len(people),
        "name": people,
        "kind": ["library"] * len(people),
    }
    tables = {
        "tools": table(table_schema("tools"), rows, own),
        "agents": table(table_schema("agents"), len(people), owners),
        "emb_full": table(table_schema("emb_full", DIMENSIONS), rows, own),
    }
    if edges:
        pairs = [
            (one, (one * 7 + 13 * step) % rows)
            for one in range(rows)
            for step in range(1, edges + 1)
        ]
        keys = [f"{names[one]}#{names[other]}##" for one, other in pairs]
        graph: dict[str, Any] = {
            "key": keys, "source": [names[one] for one, _ in pairs], "target": [names[other] for _, other in pairs],
            "type": ["tool-directly-depends-on"] * len(pairs), "origin": ["declared"] * len(pairs),
            "confidence": [1.0] * len(pairs), "place": [step for _ in range(rows) for step in range(edges)],
        }  # fmt: skip
        tables["edges"] = table(table_schema("edges"), len(pairs), graph)
        said = {
            **own,
            "key": people,
            "agent": people,
            "vector": own["vector"][: len(people)],
            "tokens": own["tokens"][: len(people)],
        }
        said |= {name: own[name][: len(people)] for name in ("part", "catalog", "kind")}
        tables["agents_full"] = table(table_schema("agents_full", DIMENSIONS), len(people), said)
    opened = {name: database.create_table(name, data) for name, data in tables.items()}
    fit_indices(opened["emb_full"], rows, changed=True)
    wanted = VectorIndex.fitting(rows, IndexSizes())
    pins = {
        name: Pin(
            name,
            one.version,
            one.count_rows(),
            "",
            "",
            wanted.search() if wanted and name == "emb_full" else None,
        )
        for name, one in opened.items()
    }
    index = {
        "encoder": encoder[0],
        "fingerprint": encoder[1],
        "dimensions": DIMENSIONS,
        "shape": "single",
        "options": {},
    }
    manifest = {"default_index": "full", "indexes": {"full": index}}
    store.add(Release(f"{rows:012x}", f"{rows:064x}", CONTRACT, datetime.now(UTC), pins, manifest))
    store.promote(f"{rows:012x}")
    return uri


def by_pegboard(uri: str, in_memory_rows: int) -> Ask:
    """What `pegboard` does."""
    import pegboard

    board = pegboard.open(uri, in_memory_rows=in_memory_rows, refresh=3600)
    return lambda mode, vector, words: len(board.search(words, K, mode=mode, vector=vector))  # pyright: ignore[reportArgumentType]


def by_lancedb(uri: str) -> Ask:
    """The same with the package `lancedb`."""
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

    def ask(mode: str, vector: Any, words: str) -> int:
        if mode == "vector":
            query = near(table.search(vector, vector_column_name="vector"))
        elif mode == "text":
            query = table.search(words, query_type="fts", fts_columns="tokens")
        else:
            query = table.search(
                query_type="hybrid", vector_column_name="vector", fts_columns="tokens"
            )
            query = near(query.vector(vector).text(words)).rerank(reranker)
        found = query.limit(K).select(["tool"]).to_arrow().column("tool").to_pylist()
        ids = ", ".join(f"'{one}'" for one in found) or "NULL"
        return len(tools.search().where(f"id IN ({ids})").to_list())

    return ask


def measure(uri: str, rows: int, repeats: int) -> list[dict[str, Any]]:
    """The times of all ways and modes on one board."""
    import numpy as np

    ways = {
        "pegboard in memory": by_pegboard(uri, rows),
        "pegboard through Lance": by_pegboard(uri, 0),
        "lancedb": by_lancedb(uri),
    }
    numbers, measured = np.random.default_rng(1), []
    for mode in MODES:
        times: dict[str, list[float]] = {way: [] for way in ways}
        for number in range(repeats + 3):  # three warm up
            vector = numbers.normal(size=DIMENSIONS).astype(np.float32)
            vector /= np.linalg.norm(vector)
            words = " ".join(f"w{int(20_000 * chance**3)}" for chance in numbers.random(6))
            turn = number % len(
                ways
            )  # whoever comes after a large matrix product finds the processor's caches empty
            for way, ask in [*ways.items()][turn:] + [*ways.items()][:turn]:
                begin = time.perf_counter()
                ask(mode, vector, words)
                if number >= 3:
                    times[way].append((time.perf_counter() - begin) * 1000)
        plain = float(np.median(times["lancedb"]))
        for way, taken in times.items():
            half, most = np.percentile(taken, [50, 99])
            measured.append(
                {
                    "mode": mode,
                    "rows": rows,
                    "way": way,
                    "p50": float(half),
                    "p99": float(most),
                    "ratio": half / plain,
                }
            )
    return measured


def main() -> None:
    """Print one line for each measurement, or all as one JSON object."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--repeats", type=int, default=50)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    os.environ.setdefault(
        "LANCEDB_LOG", "error"
    )  # else hybrid search warns with every request of what it does itself
    measured: list[dict[str, Any]] = []
    if not options.json:
        print(
            f"{machine()}\n{'MODE':<9}{'TOOLS':>9}  "
            f"{'WAY':<24}{'P50 ms':>9}{'P99 ms':>9}{'P50 / LANCEDB':>15}"
        )
    with tempfile.TemporaryDirectory() as name:
        for rows in options.rows:
            found = measure(make_board(Path(name), rows), rows, options.repeats)
            measured += found
            for one in [] if options.json else found:
                head = f"{one['mode']:<9}{one['rows']:>9,}  {one['way']:<24}"
                print(
                    f"{head}{one['p50']:>9.2f}{one['p99']:>9.2f}{one['ratio']:>15.2f}", flush=True
                )
    if options.json:
        print(json.dumps({"machine": machine(), "search": measured}, indent=2))


if __name__ == "__main__":
    main()
