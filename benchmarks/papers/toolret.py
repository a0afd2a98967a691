"""ToolRet (Shi and others, 2025): queries from 35 sources for tools of every form.

Files with `tools` in their names: {"id", "documentation": an object, JSON text or plain text,
perhaps "category"}; files with `queries`: {"id", "query", "instruction", "labels": [{"id": a tool's
id, "relevance": 1}, ...] or that as JSON text, "category"}. They may lie in folders below, as in
the published data sets (`web/tools-00000-of-00001.parquet`, `apibank/queries-...`).

Documentations have no form in common, so they are made into records of one: see `toolret_tools.py`.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.papers.benchmark import Asked, Benchmark, BenchmarkBoard, tasks_of
from benchmarks.papers.reading import Folder, LeftOut, text_of, texts_of
from benchmarks.papers.toolret_tools import FILE, ToolRecords
from pegboard.evaluation.golden import GoldenQuery

PATTERNS = ("jsonl", "json", "parquet")
CATALOG = f"""[catalogs.toolret]
type = "records"
path = "{FILE}"
columns = {{ parameters = "parameters", agent = "agent" }}
"""


def load(path: Path) -> Benchmark:
    """The benchmark of that folder. Raises ConfigurationError if it is none."""
    folder = Folder(path, "toolret")
    patterns = {what: [f"**/*{what}*.{one}" for one in PATTERNS] for what in ("tools", "queries")}
    files = folder.files(patterns)
    records = ToolRecords()
    queries_files = [file for file in files["queries"] if file not in files["tools"]]
    for file in files["tools"]:
        for where, row in folder.rows(file):
            try:
                records.add(row)
            except LeftOut as why:
                folder.leave_out(where, why, file)
    written = records.written()
    for problem in records.problems:
        folder.say(problem)
    queries: list[GoldenQuery] = []
    instructed: list[GoldenQuery] = []
    categories: dict[str, list[int]] = {}
    for file in queries_files:
        for where, row in folder.rows(file):
            try:
                query = _query(row, records.names)
            except LeftOut as why:
                folder.leave_out(where, why, file)
                continue
            categories.setdefault(_category(row, file, folder.path), []).append(len(queries))
            queries.append(query)
            if isinstance(row.get("instruction"), str) and row["instruction"].strip():
                instructed.append(
                    GoldenQuery(f"{row['instruction'].strip()}\n{query.query}", query.tools)
                )
    named = {
        f"category-{name}" if name in ("all", "single", "multi") else name: own
        for name, own in categories.items()
    }
    asked = [Asked("tools", tuple(queries), tasks_of(queries, named))]
    if instructed:
        asked.append(
            Asked("tools", tuple(instructed), {"instructed": tuple(range(len(instructed)))})
        )
    board = BenchmarkBoard("tools", CATALOG, files={FILE: written})
    return Benchmark(
        "toolret",
        (board,),
        tuple(asked),
        tools=len(records.names),
        problems=tuple(folder.problems()),
    )


def _query(row: Mapping[str, Any], names: Mapping[str, str]) -> GoldenQuery:
    labels = row.get("labels")
    if isinstance(labels, str):
        try:
            labels = json.loads(labels)
        except (ValueError, RecursionError) as error:
            raise LeftOut(f"its labels are not JSON: {error}") from None
    if not isinstance(labels, list):
        raise LeftOut(f"its labels are {labels!r:.80}, expected a list")
    right = texts_of(
        [str(one["id"]) for one in map(_label, labels) if _relevance(one) > 0], "right tool"
    )
    tools = dict.fromkeys(names.get(one, one) for one in right)
    return GoldenQuery(text_of(row.get("query"), "query"), tuple(tools))


def _label(value: Any) -> Mapping[str, Any]:
    label = value if isinstance(value, Mapping) else {"id": value}
    if not isinstance(label.get("id"), str | int):
        raise LeftOut(f"a label is {value!r:.80}, expected an object with the id of a tool")
    return label


def _relevance(label: Mapping[str, Any]) -> float:
    try:
        return float(label.get("relevance", 1))
    except (TypeError, ValueError):
        raise LeftOut(
            f"a label has the relevance {label['relevance']!r:.80}, expected a number"
        ) from None


def _category(row: Mapping[str, Any], file: Path, base: Path) -> str:
    """What the row says; else the folder that the file lies in, or the source in its id
    (`apigen_query_5`).
    """
    said = row.get("category")
    if isinstance(said, str) and said.strip():
        return said.strip()
    if file.parent != base:
        return file.parent.name
    return str(row.get("id", "")).partition("_query")[0] or "unknown"
