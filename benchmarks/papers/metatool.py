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
from pegboard.errors import ConfigurationError
from pegboard.evaluation.golden import GoldenQuery
from pegboard.formatting import count_text

TASKS = {
    "single": ("plugin_des.json", "single_tool_queries.jsonl"),
    "multi": ("big_tool_des.json", "multi_tool_queries.jsonl"),
}
EXAMPLES = "example_queries.jsonl"
FILE = "tools.json"
CATALOG = catalog_toml("metatool", "records", Path(FILE)) + 'columns.examples = "examples"\n'


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
        catalog = catalog_toml("metatool", "records", folder.path / TASKS[task][0])
        if text := _with_examples(folder, queries, task):
            boards.append(BenchmarkBoard(task, CATALOG, files={FILE: text}))
            query_sets.append(QuerySet.of_task(task, task, queries))
            task = f"{task}-without-examples"
        boards.append(BenchmarkBoard(task, catalog))
        query_sets.append(QuerySet.of_task(task, task, queries))
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


def _with_examples(folder: Folder, queries: Sequence[GoldenQuery], task: str) -> str:
    """The plugins of a task with their example requests, as JSON; "" if there are none."""
    file = folder.optional(EXAMPLES)
    if task != "single" or file is None:
        return ""
    described = json.loads((folder.path / TASKS[task][0]).read_text("utf-8"))
    plugins = {name: {"description": described[name], "examples": []} for name in described}
    for _, row in folder.rows(file):
        query, plugin = row.get("query"), plugins.get(str(row.get("tool")).strip())
        if isinstance(query, str) and plugin:
            plugin["examples"].append(query.strip())
    texts = {text for plugin in plugins.values() for text in plugin["examples"]}
    if repeated := sum(query.query.strip() in texts for query in queries):
        folder.note(f"{EXAMPLES} contains {count_text(repeated, 'query', 'queries')} word for word")
    return json.dumps(plugins) if texts else ""
