"""A reader of a Parquet export that knows only docs/reference/table-contract.md.

    python read_parquet.py EXPORT vectors.json

Every request is answered twice, by DuckDB in SQL and by polars in expressions, and compared with
what is expected. Ends with 1 if anything differs. Neither lancedb nor pegboard is imported.
"""

import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import polars as pl

K1, B = 1.2, 0.75
Ranking = list[tuple[str, float]]
Request = Mapping[str, Any]

CONDITION = """
WHERE (len($agent) IS NULL OR list_contains($agent, agent))
  AND (len($catalog) IS NULL OR list_contains($catalog, catalog))
  AND (len($kind) IS NULL OR list_contains($kind, kind))
  AND (len($tags) IS NULL OR list_has_any(tags, $tags))
"""
VECTOR = """
SELECT tool, max(round(list_dot_product(vector::DOUBLE[], $vector::DOUBLE[]), 5)) AS score
FROM read_parquet($files, hive_partitioning = true)
""" + CONDITION + "GROUP BY tool ORDER BY score DESC, tool LIMIT $depth"  # fmt: skip
TEXT = """
WITH documents AS (
    SELECT *, list_filter(string_split(tokens, ' '), lambda word: word <> '') AS words
    FROM read_parquet($files, hive_partitioning = true)),
counted AS (SELECT count(*) AS total, avg(len(words)) AS average FROM documents),
query AS (SELECT DISTINCT unnest($words::VARCHAR[]) AS word),
having_it AS (
    SELECT word, count(*) FILTER (list_contains(words, word)) AS documents
    FROM query, documents GROUP BY word),
scored AS (
    SELECT key, tool, agent, catalog, kind, tags, sum(
        ln(1 + (total - having_it.documents + 0.5) / (having_it.documents + 0.5))
        * found * (1 + $k1) / (found + $k1 * (1 - $b + $b * len(words) / average))) AS score
    FROM (
        SELECT documents.*, word, len(list_filter(words, lambda one: one = word)) AS found
        FROM documents, query)
    JOIN having_it USING (word), counted
    WHERE found > 0 GROUP BY ALL)
SELECT tool, max(round(score, 4)) AS score FROM scored
""" + CONDITION + "GROUP BY tool ORDER BY score DESC, tool LIMIT $depth"  # fmt: skip
FILTERS = ("agent", "catalog", "kind", "tags")
AGENTS = """
WITH entities AS (
    SELECT tool AS entity, agent, catalog, kind, tags, vector
    FROM read_parquet($tools, hive_partitioning = true)
    UNION ALL BY NAME
    SELECT agent AS entity, agent, catalog, kind,
        CASE WHEN len($tags) IS NULL THEN [] END AS tags, vector
    FROM read_parquet($own, hive_partitioning = true)),
scored AS (
    SELECT entity, agent,
        max(round(list_dot_product(vector::DOUBLE[], $vector::DOUBLE[]), 5)) AS score
    FROM entities
""" + CONDITION + """GROUP BY ALL)
SELECT agent, max(score) AS score FROM scored
GROUP BY agent ORDER BY score DESC, arg_min(entity, (-score, entity)) LIMIT $k
"""  # fmt: skip
DEPENDENCIES = """
SELECT target, type, parameter, origin, confidence FROM read_parquet($files)
WHERE source = $tool ORDER BY place
"""


def by_duckdb(folder: Path, request: Request, mode: str, depth: int) -> Ranking:
    """Rank in SQL."""
    values = {"files": f"{folder}/**/*.parquet", "depth": depth}
    if mode == "vector":
        return _filtered(VECTOR, request, {**values, "vector": request["vector"]})
    return _filtered(TEXT, request, {**values, "words": request["words"], "k1": K1, "b": B})


def agents(export: Path, request: Request) -> Ranking:
    """Rank tools and agents together, each tool replaced by its owner (Tool-to-Agent Retrieval,
    Algorithm 1).
    """
    tables = {"tools": f"emb_{request['index']}", "own": f"agents_{request['index']}"}
    files = {name: f"{export}/{table}/**/*.parquet" for name, table in tables.items()}
    return _filtered(AGENTS, request, {**files, "vector": request["vector"], "k": request["k"]})


def _filtered(sql: str, request: Request, values: Mapping[str, Any]) -> Ranking:
    where = request["where"] or {}
    for name in FILTERS:
        sql = sql.replace(f"${name}", f"${name}::VARCHAR[]")
    return duckdb.execute(sql, {**values, **{name: where.get(name) for name in FILTERS}}).fetchall()


def by_polars(folder: Path, request: Request, mode: str, depth: int) -> Ranking:
    """Rank by expressions over a frame."""
    rows = pl.read_parquet(f"{folder}/**/*.parquet", hive_partitioning=True)
    scored = _cosines(rows, request) if mode == "vector" else _bm25(rows, request)
    for name, values in (request["where"] or {}).items():
        allowed = pl.Series(values, dtype=pl.String)
        tags = pl.col("tags").list.set_intersection(pl.lit(allowed).implode()).list.len() > 0
        scored = scored.filter(tags if name == "tags" else pl.col(name).is_in(allowed.implode()))
    best = scored.group_by("tool").agg(pl.col("score").max())
    return best.sort("score", "tool", descending=[True, False]).head(depth).rows()


def _cosines(rows: pl.DataFrame, request: Request) -> pl.DataFrame:
    vector = enumerate(request["vector"])
    parts = [pl.col("vector").arr.get(at).cast(pl.Float64) * value for at, value in vector]
    return rows.with_columns(pl.sum_horizontal(parts).round(5, mode="half_to_even").alias("score"))


def _bm25(rows: pl.DataFrame, request: Request, least: float = 0.0) -> pl.DataFrame:
    words = pl.col("tokens").str.split(" ").list.eval(pl.element().filter(pl.element() != ""))
    rows = rows.with_columns(words.alias("words"))
    length, score = pl.col("words").list.len(), pl.lit(0.0)
    for word in dict.fromkeys(request["words"]):
        count = pl.col("words").list.count_matches(word)
        documents = (count > 0).sum()
        idf = (1 + (pl.len() - documents + 0.5) / (documents + 0.5)).log()
        score += idf * count * (1 + K1) / (count + K1 * (1 - B + B * length / length.mean()))
    scored = rows.with_columns(score.alias("score")).filter(pl.col("score") > least)
    return scored.with_columns(pl.col("score").round(4, mode="half_to_even"))


def ranked(
    found: Sequence[str], rows: pl.DataFrame, request: Request, ranker: Mapping[str, Any]
) -> Ranking:
    """Rank the tools that were found by the weighted sum of nine features."""
    words, wanted = set(request["words"]), set(request["actions"])
    scored = _bm25(rows, request, least=-1.0)
    documents = [set(words) for words in scored.get_column("words")]
    idf = partial(_idf, documents)
    whole = sum(map(idf, words)) or 1.0
    scores: dict[str, float] = {}
    for tool in found:
        own = scored.filter(pl.col("tool") == tool)
        first = own.row(0, named=True)
        name, actions = set(first["name_tokens"].split()), set(first["actions"].split())
        shared = sum(map(idf, words & name))
        features = {
            "document": max(_dot(each, request["vector"]) for each in own.get_column("vector")),
            "summary": _dot(first["summary_vector"], request["vector"]),
            "words": own.get_column("score").max() / 20,
            "request_in_document": max(
                sum(map(idf, words & set(each))) for each in own.get_column("words")
            )
            / whole,
            "request_in_name": shared / whole,
            "name_in_request": shared / (sum(map(idf, name)) or 1.0),
            "action": bool(actions & wanted),
            "other_action": bool(actions and wanted) and not actions & wanted,
            "unasked_delete": actions == {"delete"} and "delete" not in wanted,
        }
        scores[tool] = round(sum(ranker["weights"][name] * features[name] for name in features), 5)
    return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))


def _dot(first: Sequence[float], second: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(first, second, strict=True))


def _idf(documents: Sequence[set[str]], word: str) -> float:
    having = sum(word in document for document in documents)
    return math.log(1 + (len(documents) - having + 0.5) / (having + 0.5))


Rank = Callable[[Path, Request, str, int], Ranking]


def tools(rank: Rank, export: Path, request: Request) -> Ranking:
    """Return the ranking of a request for tools."""
    folder, mode = export / f"emb_{request['index']}", request["mode"]
    depth = max(100, 4 * request["k"])
    if mode != "hybrid":
        return rank(folder, request, mode, depth)[: request["k"]]
    found = dict([*rank(folder, request, "vector", depth), *rank(folder, request, "text", depth)])
    rows = pl.read_parquet(f"{folder}/**/*.parquet", hive_partitioning=True)
    manifest = json.loads((export / "release.json").read_text("utf-8"))["manifest"]
    ranker = manifest["indexes"][request["index"]]["ranker"]
    return ranked(list(found), rows, request, ranker)[: request["k"]]


def same(ranking: Ranking, request: Request, tolerance: float) -> bool:
    """Return whether a ranking is the expected one."""
    expected = [(hit["id"], hit["score"]) for hit in request["expected"]]
    pairs = zip(ranking, expected, strict=False)
    near = all(abs(score - right) <= tolerance for (_, score), (_, right) in pairs)
    return near and [name for name, _ in ranking] == [name for name, _ in expected]


def dependencies(export: Path, request: Request) -> list[dict[str, Any]]:
    """Return what a tool depends on."""
    values = {"files": f"{export}/edges/*.parquet", "tool": request["tool"]}
    rows = duckdb.execute(DEPENDENCIES, values)
    names = [column[0] for column in rows.description or ()]
    return [dict(zip(names, row, strict=True)) for row in rows.fetchall()]


def differences(
    rank: Rank, folder: Path, vectors: Mapping[str, Any], kinds: Sequence[str]
) -> Iterator[str]:
    """Yield one line for each request that is answered differently."""
    for kind, request in [(name, case) for name in kinds for case in vectors[name]]:
        release = vectors["channels"][request["channel"]]["release"]
        export = folder / f"release={release}"
        record = json.loads((export / "release.json").read_text("utf-8"))
        if record["contract"] > vectors["contract"]:
            yield f"release {release} has contract {record['contract']}, which is not known"
            continue
        if kind == "dependencies":
            found: Any = dependencies(export, request)
            equal = found == request["expected"]
        else:
            found = agents(export, request) if kind == "agents" else tools(rank, export, request)
            equal = same(found, request, vectors["tolerance"][request.get("mode", "vector")])
        if not equal:
            yield f"{kind}: {request} got {found}"


def main() -> int:
    """Compare, and print what differs."""
    export, vectors = Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text("utf-8"))
    wrong = 0
    for name, rank, kinds in (
        ("duckdb", by_duckdb, ["requests"]),
        ("polars", by_polars, ["requests"]),
        ("agents and dependencies", by_duckdb, ["agents", "dependencies"]),
    ):
        lines = list(differences(rank, export, vectors, kinds))
        print(*lines, sep="\n", end="\n" if lines else "", file=sys.stderr)
        total = sum(len(vectors[kind]) for kind in kinds)
        print(f"{name}: {total} requests, {len(lines)} differences")
        wrong += len(lines)
    assert not {"lancedb", "pegboard"} & sys.modules.keys()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
