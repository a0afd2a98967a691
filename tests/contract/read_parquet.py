"""A reader of releases as Parquet files that knows only docs/reference/table-contract.md.

    python read_parquet.py FOLDER vectors.json

Every request is answered by polars and compared with what is expected. Ends with 1 if anything
differs. Neither lancedb nor pegboard is imported.
"""

import json
import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

K1 = 1.2
B = 0.75
Ranking = list[tuple[str, float]]
Request = Mapping[str, Any]


def rows_of(export: Path, table: str) -> pl.DataFrame:
    """Return the rows of a table."""
    return pl.read_parquet(export / f"{table}.parquet")


def rank(rows: pl.DataFrame, request: Request, mode: str, depth: int) -> Ranking:
    """Rank tools by their best row, equal scores by id."""
    if mode == "vector":
        scored = _cosines(rows, request)
    else:
        scored = _bm25(rows, request).filter(pl.col("score") > 0)
        scored = scored.with_columns(pl.col("score").round(4, mode="half_to_even"))
    best = _passing(scored, request).group_by("tool").agg(pl.col("score").max())
    return best.sort("score", "tool", descending=[True, False]).head(depth).rows()


def agents(export: Path, request: Request) -> Ranking:
    """Rank tools and agents together, each tool replaced by its owner (Tool-to-Agent Retrieval,
    Algorithm 1).
    """
    tools = rows_of(export, f"emb_{request['index']}")
    own = rows_of(export, f"agents_{request['index']}")
    frames = [_passing(_cosines(tools, request), request).select("agent", "score", entity="tool")]
    if "tags" not in (request["where"] or {}):
        passing = _passing(_cosines(own, request), request)
        frames.append(passing.select("agent", "score", entity="agent"))
    entities = pl.concat(frames).sort("score", "entity", descending=[True, False])
    best = entities.unique("agent", keep="first", maintain_order=True)
    return best.select("agent", "score").head(request["k"]).rows()


def _passing(rows: pl.DataFrame, request: Request) -> pl.DataFrame:
    for name, values in (request["where"] or {}).items():
        allowed = pl.Series(values, dtype=pl.String)
        tags = pl.col("tags").list.set_intersection(pl.lit(allowed).implode()).list.len() > 0
        rows = rows.filter(tags) if name == "tags" else rows.filter(_is_in(name, allowed))
    return rows


def _is_in(name: str, allowed: pl.Series) -> pl.Expr:
    return pl.col(name).is_in(allowed.implode())


def _cosines(rows: pl.DataFrame, request: Request) -> pl.DataFrame:
    vector = enumerate(request["vector"])
    parts = [pl.col("vector").arr.get(at).cast(pl.Float64) * value for at, value in vector]
    return rows.with_columns(pl.sum_horizontal(parts).round(5, mode="half_to_even").alias("score"))


def _bm25(rows: pl.DataFrame, request: Request) -> pl.DataFrame:
    words = pl.col("tokens").str.split(" ").list.eval(pl.element().filter(pl.element() != ""))
    rows = rows.with_columns(words.alias("words"))
    length = pl.col("words").list.len()
    score = pl.lit(0.0)
    for word in dict.fromkeys(request["words"]):
        count = pl.col("words").list.count_matches(word)
        documents = (count > 0).sum()
        idf = (1 + (pl.len() - documents + 0.5) / (documents + 0.5)).log()
        score += idf * count * (1 + K1) / (count + K1 * (1 - B + B * length / length.mean()))
    return rows.with_columns(score.alias("score"))


def ranked(
    found: Sequence[str], rows: pl.DataFrame, request: Request, ranker: Mapping[str, Any]
) -> Ranking:
    """Rank the tools that were found by the weighted sum of eleven features."""
    words = set(request["words"])
    wanted = set(request["actions"])
    scored = _bm25(rows, request)
    documents = [set(words) for words in scored.get_column("words")]
    idf = partial(_idf, documents)
    whole = sum(map(idf, words)) or 1.0
    unknown = words - set().union(*documents)
    short = [word for word in unknown if re.fullmatch("[a-z]{2,6}", word)]
    scores: dict[str, float] = {}
    for tool in found:
        own = scored.filter(pl.col("tool") == tool)
        first = own.row(0, named=True)
        in_order = first["name_tokens"].split()
        name = set(in_order)
        actions = set(first["actions"].split())
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
            "abbreviation": sum(_abbreviates(form, in_order) for form in short) / (len(short) or 1),
            "named_agent": first["agent"] in request["named_agents"],
            "action": bool(actions & wanted),
            "other_action": bool(actions and wanted) and not actions & wanted,
            "unasked_delete": actions == {"delete"} and "delete" not in wanted,
        }
        weights = ranker["weights"]
        scores[tool] = round(sum(weights.get(name, 0) * features[name] for name in features), 5)
    return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))


def _abbreviates(form: str, name: Sequence[str]) -> bool:
    consonants = "" if re.search("[aeiou]", form[1:]) else ".*".join(form)
    longer = [word for word in name if word[0] == form[0] and len(word) >= len(form) + 2]
    return form in "".join(word[0] for word in name) or any(
        word.startswith(form) or (consonants and re.match(consonants, word)) for word in longer
    )


def _dot(first: Sequence[float], second: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(first, second, strict=True))


def _idf(documents: Sequence[set[str]], word: str) -> float:
    having = sum(word in document for document in documents)
    return math.log(1 + (len(documents) - having + 0.5) / (having + 0.5))


def tools(export: Path, request: Request) -> Ranking:
    """Return the ranking of a request for tools."""
    rows = rows_of(export, f"emb_{request['index']}")
    mode = request["mode"]
    depth = max(100, 4 * request["k"])
    if mode != "hybrid":
        return rank(rows, request, mode, depth)[: request["k"]]
    found = dict([*rank(rows, request, "vector", depth), *rank(rows, request, "text", depth)])
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
    own = rows_of(export, "edges").filter(pl.col("source") == request["tool"]).sort("place")
    return own.select("target", "type", "parameter", "origin", "confidence").to_dicts()


def differences(folder: Path, vectors: Mapping[str, Any], kind: str) -> Iterator[str]:
    """Yield one line for each request that is answered differently."""
    for request in vectors[kind]:
        release = vectors["channels"][request["channel"]]["release"]
        export = folder / release
        record = json.loads((export / "release.json").read_text("utf-8"))
        if record["contract"] > vectors["contract"]:
            yield f"release {release} has contract {record['contract']}, which is not known"
            continue
        if kind == "dependencies":
            found: Any = dependencies(export, request)
            equal = found == request["expected"]
        else:
            found = agents(export, request) if kind == "agents" else tools(export, request)
            equal = same(found, request, vectors["tolerance"][request.get("mode", "vector")])
        if not equal:
            yield f"{kind}: {request} got {found}"


def main() -> int:
    """Compare, and print what differs."""
    export = Path(sys.argv[1])
    vectors = json.loads(Path(sys.argv[2]).read_text("utf-8"))
    wrong = 0
    for kind in ("requests", "agents", "dependencies"):
        lines = list(differences(export, vectors, kind))
        print(*lines, sep="\n", end="\n" if lines else "", file=sys.stderr)
        print(f"{kind}: {len(vectors[kind])}, {len(lines)} differences")
        wrong += len(lines)
    assert not {"lancedb", "pegboard"} & sys.modules.keys()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
