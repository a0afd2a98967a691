"""UltraTool (Huang and others, 2024): requests with a plan, some of whose steps need a tool.

tools.json: [{"name", "description", "arguments": a schema, "results": a schema}];
instances.jsonl: {"question", "plan": [{"step": "1.2 Book it", "tool": "book(flight='...')"}, ...],
"domain"}.

A step whose tool is no known tool ("null", "No tool required", a call of a tool that the file
lacks) needs none.
"""

import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

from benchmarks.papers.benchmark import Benchmark, BenchmarkBoard, QuerySet, catalog_toml, tasks_of
from benchmarks.papers.reading import Folder, LeftOut, text_of, unknown_text
from pegboard.evaluation.golden import GoldenQuery

COLUMNS = {"parameters": "arguments", "output": "results"}
NO_TOOL = ("", "null", "none", "no tool required", "no tool needed")


def load(path: Path) -> Benchmark:
    """Read the benchmark of that folder. Raises ConfigurationError for another folder."""
    folder = Folder(path, "ultratool")
    files = folder.files(
        {
            "its tools": ["tools.json", "tools.jsonl"],
            "instances": ["instances*.jsonl", "instances*.json"],
        }
    )
    tools = files["its tools"][0]
    catalog = catalog_toml("ultratool", "records", tools, COLUMNS)
    names = {tool.name for tool in folder.listed(catalog).tools}
    unknown: list[str] = []
    queries = [
        query
        for file in files["instances"]
        for query in folder.converted(file, lambda row: _query(row, names, unknown))
    ]
    if unknown:
        what = f"whose tool is not in {tools.name}"
        folder.note(f"not counted: {unknown_text(unknown, 'step', what)}")
    return Benchmark(
        "ultratool",
        (BenchmarkBoard("tools", catalog),),
        (QuerySet("tools", tuple(queries), tasks_of(queries)),),
        tools=len(names),
        problems=tuple(folder.problems()),
    )


def _query(row: dict[str, Any], names: Collection[str], unknown: list[str]) -> GoldenQuery:
    plan = row.get("plan")
    question = text_of(row.get("question"), "question").strip()
    if not isinstance(plan, list):
        raise LeftOut(f"its plan is {plan!r:.80}, expected a list of steps")
    steps: list[tuple[str, str]] = []
    for step in plan:
        if not isinstance(step, dict) or not isinstance(step.get("step"), str):
            raise LeftOut(f"a step of its plan is {step!r:.80}, expected a text under `step`")
        tool = str(step.get("tool") or "").partition("(")[0].strip()
        if tool in names:
            steps.append((re.sub(r"^[\d.]+\s*", "", step["step"]).strip(), tool))
        elif tool.lower() not in NO_TOOL:
            unknown.append(tool)
    if not steps:
        raise LeftOut("no step of its plan needs a known tool")
    tools = dict.fromkeys(tool for _, tool in steps)
    return GoldenQuery(question, tuple(tools), tuple(text for text, _ in steps if text))
