"""Seal-Tools (Wu and others, 2024): requests for one or several of some 4,000 tools.

tool.jsonl: {"api_name", "api_description", "field", "parameters", "required", "responses"}. Every
other file of JSON lines except train*.jsonl holds queries: {"id", "query", "calling": [{"api": a
tool's name, "parameters": ...}, ...]}.
"""

from pathlib import Path
from typing import Any

from benchmarks.papers.benchmark import Benchmark, BenchmarkBoard, QuerySet, catalog_toml, tasks_of
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
    """Read the benchmark of that folder. Raises ConfigurationError for another folder."""
    folder = Folder(path, "seal-tools")
    files = folder.files(
        {"its tools": ["tool.jsonl", "tool.json"], "queries": ["dev*.jsonl", "test*.jsonl"]}
    )
    tools = files["its tools"][0]
    others = sorted(set(folder.path.glob("*.jsonl")) - {tools})
    training = [file for file in others if file.name.startswith("train")]
    if training:
        names = ", ".join(file.name for file in training)
        folder.note(f"{names}: not asked, since they are for training")
    queries: list[GoldenQuery] = []
    parts: dict[str, list[int]] = {}
    for file in others:
        if file not in training and not file.name.startswith("."):
            own = folder.converted(file, _query)
            parts[file.stem] = list(range(len(queries), len(queries) + len(own)))
            queries += own
    catalog = catalog_toml("seal", "records", tools, COLUMNS)
    tasks = tasks_of(queries, parts if len(parts) > 1 else None)
    return Benchmark(
        "seal-tools",
        (BenchmarkBoard("tools", catalog),),
        (QuerySet("tools", tuple(queries), tasks),),
        tools=len(folder.listed(catalog).tools),
        problems=tuple(folder.problems()),
    )


def _query(row: dict[str, Any]) -> GoldenQuery:
    calling = row.get("calling")
    if not isinstance(calling, list):
        raise LeftOut(f"its calling is {calling!r:.80}, expected a list of calls")
    names = [call.get("api") if isinstance(call, dict) else call for call in calling]
    tools = texts_of(names, "api")
    return GoldenQuery(text_of(row.get("query"), "query"), tuple(tools))
