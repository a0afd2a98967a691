"""MetaTool's ToolE (Huang and others, 2024): requests for one of some 200 plugins, or two tools.

single  plugin_des.json {name: description}, single_tool_queries.jsonl {"query", "tool"}, and
        optionally example_queries.jsonl with the same fields: example requests of the plugins;
        then the task `single-without-examples` asks the same without them
multi   big_tool_des.json, multi_tool_queries.jsonl {"query", "tool": [...]}

Either of the two tasks may be missing.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.papers import NAMES
from benchmarks.papers.benchmark import Benchmark, BenchmarkBoard, QuerySet, catalog_toml
from benchmarks.papers.reading import Folder, text_of, texts_of
from pegboard.cli.tables import count_text
from pegboard.errors import ConfigurationError
from pegboard.evaluation.golden import GoldenQuery

TASKS = {
    "single": ("plugin_des.json", "single_tool_queries.jsonl"),
    "multi": ("big_tool_des.json", "multi_tool_queries.jsonl"),
}
EXAMPLES = "example_queries.jsonl"


def load(path: Path) -> Benchmark:
    """Read the benchmark of that folder. Raises ConfigurationError if it holds neither task."""
    folder = Folder(path, "metatool")
    folder.files({"any of its files": [name for names in TASKS.values() for name in names]})
    boards: list[BenchmarkBoard] = []
    query_sets: list[QuerySet] = []
    tools = 0
    for task in TASKS:
        queries = _queries(folder, task)
        if not queries:
            continue
        more = _examples(folder, queries) if task == "single" else ""
        catalog = catalog_toml("metatool", "records", folder.path / TASKS[task][0], more=more)
        boards.append(BenchmarkBoard(task, catalog))
        query_sets.append(QuerySet.of_task(task, task, queries))
        if more:
            bare = f"{task}-without-examples"
            boards.append(BenchmarkBoard(bare, catalog.removesuffix(more)))
            query_sets.append(QuerySet.of_task(bare, bare, queries))
        tools += len(folder.listed(catalog).tools)
    if not query_sets:
        raise ConfigurationError(
            f"{folder.path} holds no whole task of metatool: {'; '.join(folder.problems())}. "
            f"Expected {NAMES['metatool']}."
        )
    return Benchmark("metatool", tuple(boards), tuple(query_sets), tools, tuple(folder.problems()))


def _queries(folder: Folder, task: str) -> list[GoldenQuery]:
    """The queries of a task; none, with a note, if the task is not complete."""
    names = TASKS[task]
    if missing := [name for name in names if folder.optional(name) is None]:
        verb = "is" if len(missing) == 1 else "are"
        folder.note(f"the task `{task}` is left out: {' and '.join(missing)} {verb} missing")
        return []
    queries = folder.converted(folder.path / names[1], _query)
    if not queries:
        folder.note(f"the task `{task}` is left out: {names[1]} has no row that can be used")
    return queries


def _query(row: dict[str, Any]) -> GoldenQuery:
    tools = texts_of(row.get("tool"), "tool")
    return GoldenQuery(text_of(row.get("query"), "query"), tuple(tools))


def _examples(folder: Folder, queries: Sequence[GoldenQuery]) -> str:
    """The catalog's line for example requests, if there are any; queries among them are noted."""
    file = folder.optional(EXAMPLES)
    if file is None:
        return ""
    examples = {
        row["query"].strip() for _, row in folder.rows(file) if isinstance(row.get("query"), str)
    }
    if not examples:
        return ""
    if repeated := sum(query.query.strip() in examples for query in queries):
        folder.note(f"{EXAMPLES} contains {count_text(repeated, 'query', 'queries')} word for word")
    path = json.dumps(str(file), ensure_ascii=False)
    return f'examples = {{ path = {path}, query = "query", tool = "tool" }}\n'
