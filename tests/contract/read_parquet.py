"""A reader of a Parquet export that knows only docs/reference/table-contract.md.

    python read_parquet.py EXPORT vectors.json

Every request is answered twice, by DuckDB in SQL and by polars in expressions, and compared with
what has to be found. Ends with 1 if anything differs. Neither lancedb nor pegboard is imported.
"""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import duckdb
import polars as pl

K1, B, SHARE = 1.2, 0.75, 0.8
Ranking = list[tuple[str, float]]
Asked = Mapping[str, Any]

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
asked AS (SELECT DISTINCT unnest($words::VARCHAR[]) AS word),
having_it AS (
    SELECT word, count(*) FILTER (list_contains(words, word)) AS documents
    FROM asked, documents GROUP BY word),
scored AS (
    SELECT key, tool, agent, catalog, kind, tags, sum(
        ln(1 + (total - having_it.documents + 0.5) / (having_it.documents + 0.5))
        * found * (1 + $k1) / (found + $k1 * (1 - $b + $b * len(words) / average))) AS score
    FROM (
        SELECT documents.*, word, len(list_filter(words, lambda one: one = word)) AS found
        FROM documents, asked)
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


def by_duckdb(folder: Path, asked: Asked, mode: str, depth: int) -> Ranking:
    """The ranking that SQL gives."""
    own = (
        {"vector": asked["vector"]}
        if mode == "vector"
        else {"words": asked["words"], "k1": K1, "b": B}
    )
    return _filtered(
        VECTOR if mode == "vector" else TEXT,
        asked,
        {"files": f"{folder}/**/*.parquet", "depth": depth, **own},
    )


def agents(export: Path, asked: Asked) -> Ranking:
    """Tool-to-Agent Retrieval, Algorithm 1: tools and agents in one ranking, each tool replaced by
    its owner.
    """
    files = {
        "tools": f"{export}/emb_{asked['index']}/**/*.parquet",
        "own": f"{export}/agents_{asked['index']}/**/*.parquet",
    }
    return _filtered(AGENTS, asked, {**files, "vector": asked["vector"], "k": asked["k"]})


def _filtered(sql: str, asked: Asked, values: Mapping[str, Any]) -> Ranking:
    where = asked["where"] or {}
    for name in FILTERS:
        sql = sql.replace(f"${name}", f"${name}::VARCHAR[]")
    return duckdb.execute(sql, {**values, **{name: where.get(name) for name in FILTERS}}).fetchall()


def by_polars(folder: Path, asked: Asked, mode: str, depth: int) -> Ranking:
    """The ranking that expressions over a frame give."""
    rows = pl.read_parquet(f"{folder}/**/*.parquet", hive_partitioning=True)
    if mode == "vector":
        parts = [
            pl.col("vector").arr.get(at).cast(pl.Float64) * value
            for at, value in enumerate(asked["vector"])
        ]
        scored = rows.with_columns(
            pl.sum_horizontal(parts).round(5, mode="half_to_even").alias("score")
        )
    else:
        rows = rows.with_columns(
            pl.col("tokens")
            .str.split(" ")
            .list.eval(pl.element().filter(pl.element() != ""))
            .alias("words")
        )
        length, score = pl.col("words").list.len(), pl.lit(0.0)
        for word in dict.fromkeys(asked["words"]):
            found = pl.col("words").list.count_matches(word)
            having = (found > 0).sum()
            idf = (1 + (pl.len() - having + 0.5) / (having + 0.5)).log()
            score += idf * found * (1 + K1) / (found + K1 * (1 - B + B * length / length.mean()))
        scored = rows.with_columns(score.alias("score")).filter(pl.col("score") > 0)
        scored = scored.with_columns(pl.col("score").round(4, mode="half_to_even"))
    for name, values in (asked["where"] or {}).items():
        wanted = pl.Series(values, dtype=pl.String)
        hit = pl.col("tags").list.set_intersection(pl.lit(wanted).implode()).list.len() > 0
        scored = scored.filter(hit if name == "tags" else pl.col(name).is_in(wanted.implode()))
    best = (
        scored.group_by("tool")
        .agg(pl.col("score").max())
        .sort("score", "tool", descending=[True, False])
    )
    return best.head(depth).rows()


def fused(vector: Ranking, text: Ranking) -> Ranking:
    """The convex combination of both."""
    cosine, bm25 = dict(vector), dict(text)
    top, most = max(cosine.values(), default=0.0) + 1, max(bm25.values(), default=0.0)
    last = vector[-1][1] if vector else -1.0
    scores = {
        one: SHARE * (cosine.get(one, last) + 1) / top
        + (1 - SHARE) * (bm25.get(one, 0.0) / most if most else 0.0)
        for one in {**cosine, **bm25}
    }
    return sorted(
        ((one, round(score, 5)) for one, score in scores.items()),
        key=lambda pair: (-pair[1], pair[0]),
    )


def differences(
    rank: Callable[[Path, Asked, str, int], Ranking], export: Path, vectors: Mapping[str, Any]
) -> Iterator[str]:
    """One line for each request that was answered otherwise."""
    for asked in vectors["requests"]:
        release = vectors["channels"][asked["channel"]]["release"]
        folder = export / f"release={release}" / f"emb_{asked['index']}"
        record = json.loads((folder.parent / "release.json").read_text("utf-8"))
        if record["contract"] > vectors["contract"]:
            yield (
                f"release {release} has contract {record['contract']}, which this reader does "
                f"not know"
            )
            continue
        depth, mode = max(100, 4 * asked["k"]), asked["mode"]
        rankings = [
            rank(folder, asked, one, depth)
            for one in (("vector", "text") if mode == "hybrid" else (mode,))
        ]
        found = (fused(*rankings) if mode == "hybrid" else rankings[0])[: asked["k"]]
        expected = [(one["id"], one["score"]) for one in asked["expected"]]
        near = all(
            abs(one[1] - other[1]) <= vectors["tolerance"][mode]
            for one, other in zip(found, expected, strict=False)
        )
        if [one for one, _ in found] != [one for one, _ in expected] or not near:
            yield (
                f"{asked['channel']} {asked['index']} {mode} {asked['where']} "
                f"{asked['request']}: {found}, not {expected}"
            )


def others(export: Path, vectors: Mapping[str, Any]) -> Iterator[str]:
    """One line for each request for agents, and for each tool's dependencies, that SQL answers
    otherwise.
    """
    for asked in vectors["agents"]:
        found = agents(
            export / f"release={vectors['channels'][asked['channel']]['release']}", asked
        )
        expected = [(one["id"], one["score"]) for one in asked["expected"]]
        near = all(
            abs(one[1] - other[1]) <= vectors["tolerance"]["vector"]
            for one, other in zip(found, expected, strict=False)
        )
        if [one for one, _ in found] != [one for one, _ in expected] or not near:
            yield (
                f"agents {asked['channel']} {asked['index']} {asked['where']} "
                f"{asked['request']}: {found}, not {expected}"
            )
    for asked in vectors["dependencies"]:
        release = vectors["channels"][asked["channel"]]["release"]
        rows = duckdb.execute(
            DEPENDENCIES,
            {"files": f"{export}/release={release}/edges/*.parquet", "tool": asked["tool"]},
        )
        names = [column[0] for column in rows.description or ()]
        found = [dict(zip(names, row, strict=True)) for row in rows.fetchall()]
        if found != asked["expected"]:
            yield (
                f"dependencies {asked['channel']} {asked['tool']}: {found}, not {asked['expected']}"
            )


def main() -> int:
    """Compare, and say what differs."""
    export, vectors = Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text("utf-8"))
    wrong = 0
    for name, rank in (("duckdb", by_duckdb), ("polars", by_polars)):
        found = list(differences(rank, export, vectors))
        print(*found, sep="\n", end="\n" if found else "", file=sys.stderr)
        print(f"{name}: {len(vectors['requests'])} requests, {len(found)} differences")
        wrong += len(found)
    found = list(others(export, vectors))
    print(*found, sep="\n", end="\n" if found else "", file=sys.stderr)
    print(
        f"agents and dependencies: {len(vectors['agents']) + len(vectors['dependencies'])} "
        f"requests, {len(found)} differences"
    )
    wrong += len(found)
    assert not {"lancedb", "pegboard"} & sys.modules.keys()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
