"""Seal-Tools (Wu and others, 2024): requests for one or several of some 4,000 tools.

tool.jsonl: {"api_name", "api_description", "field", "parameters", "required", "responses"}; every
other file of JSON lines but train*.jsonl
holds queries: {"id", "query", "calling": [{"api": a tool's name, "parameters": ...}, ...]}.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.papers.benchmark import Asked, Benchmark, BenchmarkBoard, catalog_toml, tasks_of
from benchmarks.papers.reading import Folder, LeftOut, text_of, texts_of
from pegboard.evaluation.golden import GoldenQuery

COLUMNS = {
    "name": "api_name",
    "description": "api_description",
    "parameters": "parameters",
    "required": "required",
    "output": "responses",
    "tags": "field",
}


def load(path: Path) -> Benchmark:
    """The benchmark of that folder. Raises ConfigurationError if it is none."""
    folder = Folder(path, "seal-tools")
    files = folder.files(
        {"its tools": ["tool.jsonl", "tool.json"], "queries": ["dev*.jsonl", "test*.jsonl"]}
    )
    tools = files["its tools"][0]
    others = sorted(set(folder.path.glob("*.jsonl")) - {tools})
    trained = [one for one in others if one.name.startswith("train")]
    if trained:
        folder.say(
            f"{', '.join(one.name for one in trained)}: not asked, since they are for training"
        )
    queries: list[GoldenQuery] = []
    parts: dict[str, list[int]] = {}
    for file in (one for one in others if one not in trained and not one.name.startswith(".")):
        found = _queries(folder, file)
        parts[file.stem] = list(range(len(queries), len(queries) + len(found)))
        queries += found
    catalog = catalog_toml("seal", "records", tools, COLUMNS)
    asked = Asked("tools", tuple(queries), tasks_of(queries, parts if len(parts) > 1 else None))
    count = len(folder.listed(catalog).tools)
    return Benchmark(
        "seal-tools",
        (BenchmarkBoard("tools", catalog),),
        (asked,),
        tools=count,
        problems=tuple(folder.problems()),
    )


def _queries(folder: Folder, file: Path) -> Sequence[GoldenQuery]:
    queries: list[GoldenQuery] = []
    for where, row in folder.rows(file):
        try:
            names = texts_of([_api(call) for call in _calls(row.get("calling"))], "api")
            queries.append(GoldenQuery(text_of(row.get("query"), "query"), tuple(names)))
        except LeftOut as why:
            folder.leave_out(where, why, file)
    return queries


def _calls(calling: Any) -> list[Any]:
    if not isinstance(calling, list):
        raise LeftOut(f"its calling is {calling!r:.80}, expected a list of calls")
    return calling


def _api(call: Any) -> Any:
    return call.get("api") if isinstance(call, dict) else call
