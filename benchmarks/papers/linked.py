"""ToolLinkOS, and ToolSandbox in the same form (Lumer and others, Graph RAG-Tool Fusion, 2025): a
tool and everything that it depends on.

tools.json: [{"name", "description", "parameters", "func_type", "depends_on": [{"name",
"dependence_type", ...}]}];
instances.jsonl: {"user_query", "main_golden_function_name", "golden_function_names": [...]}.

Two boards: one with the declared dependencies, one from which they are hidden, so that only
inferred ones are left."""

from pathlib import Path
from typing import Any

from benchmarks.papers.benchmark import (
    Asked,
    Benchmark,
    BenchmarkBoard,
    Variant,
    catalog_toml,
    tasks_of,
)
from benchmarks.papers.reading import Folder, LeftOut, text_of, texts_of
from pegboard.evaluation.golden import GoldenQuery

COLUMNS = {"parameters": "parameters", "dependencies": "depends_on", "tags": "func_type"}
HIDDEN = {"parameters": "parameters"}
INDEXES = """
[[indexes]]
name = "full"

[[indexes]]
name = "brief"
parts = ["name", "description"]
"""
"""`brief` has what Graph RAG-Tool Fusion embeds: the name and the description."""
DECLARED: dict[str, Any] = {"refine": [{"part": "dependencies", "origins": ["declared"]}]}
BY_VECTOR: dict[str, Any] = {**DECLARED, "modes": ["vector"]}
VARIANTS = (
    Variant("vector", {"modes": ["vector"]}, "brief"),
    Variant("hybrid", "search", "brief"),
    Variant("dependencies-declared", DECLARED, "full"),
    Variant("dependencies-declared-vector", BY_VECTOR, "full"),
    Variant("dependencies-declared", DECLARED, "brief"),
    Variant("dependencies-declared-vector", BY_VECTOR, "brief"),
    Variant("dependencies-inferred", "dependencies", "full", "hidden"),
)


def load(path: Path, name: str = "toollinkos") -> Benchmark:
    """The benchmark of that folder, `toollinkos` or `toolsandbox`. Raises ConfigurationError if it
    is none.
    """
    folder = Folder(path, name)
    files = folder.files(
        {
            "its tools": ["tools.json", "tools.jsonl"],
            "instances": ["instances*.jsonl", "instances*.json"],
        }
    )
    tools = files["its tools"][0]
    queries: list[GoldenQuery] = []
    for file in files["instances"]:
        queries += _queries(folder, file)
    declared = catalog_toml(name, "records", tools, COLUMNS)
    boards = (
        BenchmarkBoard("declared", declared, INDEXES),
        BenchmarkBoard("hidden", catalog_toml(name, "records", tools, HIDDEN)),
    )
    asked = Asked("declared", tuple(queries), tasks_of(queries), VARIANTS)
    count = len(folder.listed(declared).tools)
    return Benchmark(name, boards, (asked,), tools=count, problems=tuple(folder.problems()))


def _queries(folder: Folder, file: Path) -> list[GoldenQuery]:
    queries: list[GoldenQuery] = []
    for where, row in folder.rows(file):
        try:
            main = row.get("main_golden_function_name")
            first: list[str] = [main] if isinstance(main, str) and main.strip() else []
            given = row.get("golden_function_names")
            others = texts_of(given, "golden function") if given or not first else []
            names = dict.fromkeys([*first, *others])
            queries.append(GoldenQuery(text_of(row.get("user_query"), "user_query"), tuple(names)))
        except LeftOut as why:
            folder.leave_out(where, why, file)
    return queries
