"""MetaTool's ToolE (Huang and others, 2024): requests for one of some 200 plugins, and for two
tools at once.

One tool:  plugin_des.json {name: description}, single_tool_queries.jsonl {"query", "tool"}, and
perhaps example_queries.jsonl with the
           same fields, which become example requests of the plugins. Several: big_tool_des.json,
           multi_tool_queries.jsonl {"query", "tool": [...]}.
Either of the two may be missing.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from benchmarks.papers import NAMES
from benchmarks.papers.benchmark import Asked, Benchmark, BenchmarkBoard, catalog_toml
from benchmarks.papers.reading import Folder, LeftOut, counted, text_of, texts_of
from pegboard.errors import ConfigurationError
from pegboard.evaluation.golden import GoldenQuery

TASKS = {
    "single": ("plugin_des.json", "single_tool_queries.jsonl"),
    "multi": ("big_tool_des.json", "multi_tool_queries.jsonl"),
}
EXAMPLES = "example_queries.jsonl"


def load(path: Path) -> Benchmark:
    """The benchmark of that folder. Raises ConfigurationError if it holds neither task."""
    folder = Folder(path, "metatool")
    folder.files({"any of its files": [name for names in TASKS.values() for name in names]})
    boards: list[BenchmarkBoard] = []
    asked: list[Asked] = []
    tools = 0
    for task, names in TASKS.items():
        if missing := [name for name in names if folder.optional(name) is None]:
            folder.say(
                f"the task `{task}` is left out: {' and '.join(missing)} {_is(missing)} missing"
            )
            continue
        described, requests = (folder.path / name for name in names)
        queries = _queries(folder, requests)
        if not queries:
            folder.say(
                f"the task `{task}` is left out: {requests.name} has no row that can be used"
            )
            continue
        catalog = catalog_toml(
            "metatool",
            "records",
            described,
            more=_examples(folder, queries) if task == "single" else "",
        )
        boards.append(BenchmarkBoard(task, catalog))
        asked.append(Asked(task, tuple(queries), {task: tuple(range(len(queries)))}))
        tools += len(folder.listed(catalog).tools)
    if not asked:
        raise ConfigurationError(
            f"{folder.path} holds no whole task of metatool: {'; '.join(folder.problems())}. "
            f"Expected {NAMES['metatool']}."
        )
    return Benchmark(
        "metatool", tuple(boards), tuple(asked), tools=tools, problems=tuple(folder.problems())
    )


def _queries(folder: Folder, file: Path) -> list[GoldenQuery]:
    queries: list[GoldenQuery] = []
    for where, row in folder.rows(file):
        try:
            names = texts_of(row.get("tool"), "tool")
            queries.append(GoldenQuery(text_of(row.get("query"), "query"), tuple(names)))
        except LeftOut as why:
            folder.leave_out(where, why, file)
    return queries


def _examples(folder: Folder, queries: Sequence[GoldenQuery]) -> str:
    """The catalog's line for example requests, if there are some; requests that are asked word for
    word are told.
    """
    file = folder.optional(EXAMPLES)
    if file is None:
        return ""
    known = {
        row["query"].strip() for _, row in folder.rows(file) if isinstance(row.get("query"), str)
    }
    if not known:
        return ""
    if same := sum(one.query.strip() in known for one in queries):
        folder.say(
            f"{counted(same, 'request')} that {'is' if same == 1 else 'are'} asked "
            f"stand{'s' if same == 1 else ''} in {EXAMPLES}, word for word"
        )
    return (
        f'examples = {{ path = {json.dumps(str(file), ensure_ascii=False)}, query = "query", '
        f'tool = "tool" }}\n'
    )


def _is(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"
