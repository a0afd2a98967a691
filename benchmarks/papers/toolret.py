"""ToolRet (Shi and others, 2025): queries from 35 sources for tools of every form.

Files with `tools` in their names: {"id", "documentation": an object, JSON text or plain text,
optionally "category"}; files with `queries`: {"id", "query", "instruction", "labels": [{"id": a
tool's id, "relevance": 1}, ...] or that as JSON text, "category"}. They may lie in folders below,
as in the published data sets (`web/tools-00000-of-00001.parquet`, `apibank/queries-...`).
BFCL and ACEBench are read in the same layout.

Documentations have no form in common, so they are converted to records: see `toolret_tools.py`.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.papers.benchmark import Benchmark, BenchmarkBoard, QuerySet, tasks_of
from benchmarks.papers.reading import Folder, LeftOut, text_of, texts_of
from benchmarks.papers.toolret_tools import FILE, ToolRecords
from pegboard.evaluation.golden import GoldenQuery

PATTERNS = ("jsonl", "json", "parquet")
CATALOG = f"""[catalogs.toolret]
type = "records"
path = "{FILE}"
columns = {{ parameters = "parameters", agent = "agent" }}
"""


def load(path: Path, name: str = "toolret") -> Benchmark:
    """Read the benchmark of that folder. Raises ConfigurationError for another folder.

    Args:
        name: of the benchmark; only toolret has its categories as tasks.
    """
    folder = Folder(path, name)
    below = "**/*" if name == "toolret" else ""  # the others' files lie in one folder
    patterns = {
        what: [f"{below}{what}*.{one}" for one in PATTERNS] for what in ("tools", "queries")
    }
    files = folder.files(patterns)
    records = ToolRecords()
    for file in files["tools"]:
        folder.converted(file, records.add)
    text = records.json_lines()
    for problem in records.problems:
        folder.note(problem)
    queries: list[GoldenQuery] = []
    instructed: list[GoldenQuery] = []
    categories: dict[str, list[int]] = {}
    for file in files["queries"]:
        if file in files["tools"]:
            continue
        for query, row in folder.converted(file, lambda row: (_query(row, records.names), row)):
            categories.setdefault(_category(row, file, folder.path), []).append(len(queries))
            queries.append(query)
            instruction = row.get("instruction")
            if isinstance(instruction, str) and instruction.strip():
                instructed.append(GoldenQuery(f"{instruction.strip()}\n{query.query}", query.tools))
    tasks = {
        f"category-{name}" if name in ("all", "single", "multi") else name: places
        for name, places in categories.items()
    }
    shown = tasks if name == "toolret" else None
    query_sets = [QuerySet("tools", tuple(queries), tasks_of(queries, shown))]
    if instructed:
        query_sets.append(QuerySet.of_task("tools", "instructed", instructed))
    return Benchmark(
        name,
        (BenchmarkBoard("tools", CATALOG, files={FILE: text}),),
        tuple(query_sets),
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
    relevant = [str(label["id"]) for label in map(_label, labels) if _relevance(label) > 0]
    tools = dict.fromkeys(names.get(tool, tool) for tool in texts_of(relevant, "right tool"))
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
    """The row's own; else the file's folder, or the source in its id (`apigen_query_5`)."""
    category = row.get("category")
    if isinstance(category, str) and category.strip():
        return category.strip()
    if file.parent != base:
        return file.parent.name
    return str(row.get("id", "")).partition("_query")[0] or "unknown"
