"""ToolLinkOS and ToolSandbox (Lumer and others, Graph RAG-Tool Fusion, 2025): linked tools.

A request needs a tool and everything that it depends on. tools.json: [{"name", "description",
"parameters", "func_type", "depends_on": [{"name", "dependence_type", ...}]}]; instances.jsonl:
{"user_query", "main_golden_function_name", "golden_function_names": [...]}.

Two boards: one with the declared dependencies, one without them, which has only inferred ones.
"""

from pathlib import Path
from typing import Any

from benchmarks.papers.benchmark import (
    Benchmark,
    BenchmarkBoard,
    QuerySet,
    Variant,
    catalog_toml,
    tasks_of,
)
from benchmarks.papers.reading import Folder, text_of, texts_of
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
    """Read `toollinkos` or `toolsandbox`. Raises ConfigurationError for another folder."""
    folder = Folder(path, name)
    files = folder.files(
        {
            "its tools": ["tools.json", "tools.jsonl"],
            "instances": ["instances*.jsonl", "instances*.json"],
        }
    )
    tools = files["its tools"][0]
    queries = [query for file in files["instances"] for query in folder.converted(file, _query)]
    declared = catalog_toml(name, "records", tools, COLUMNS)
    return Benchmark(
        name,
        (
            BenchmarkBoard("declared", declared, INDEXES),
            BenchmarkBoard("hidden", catalog_toml(name, "records", tools, HIDDEN)),
        ),
        (QuerySet("declared", tuple(queries), tasks_of(queries), VARIANTS, linked=True),),
        tools=len(folder.listed(declared).tools),
        problems=tuple(folder.problems()),
    )


def _query(row: dict[str, Any]) -> GoldenQuery:
    main = row.get("main_golden_function_name")
    first: list[str] = [main] if isinstance(main, str) and main.strip() else []
    others = row.get("golden_function_names")
    names = texts_of(others, "golden function") if others or not first else []
    tools = dict.fromkeys([*first, *names])
    return GoldenQuery(text_of(row.get("user_query"), "user_query"), tuple(tools))
