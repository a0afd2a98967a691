"""LiveMCPBench (Mo and others, 2025): questions for several tools of 70 MCP servers, with steps.

tools.json: [{"name", "description", "tools": {key: {"tools": [an MCP tool, ...]}}}, ...];
annotations.jsonl: {"Question", "Annotator Metadata": {"Steps": a numbered list, "Tools": a numbered
list of names}}.

The annotators do not say which step needs which tool. Where a question has as many steps as tools,
the i-th step is taken to need the i-th tool; the tasks `step-tool` and `step-agent` have those
steps, and any owner of a tool of that name is right. Names that no server has are left out.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.papers.benchmark import Benchmark, BenchmarkBoard, QuerySet, catalog_toml
from benchmarks.papers.reading import Folder, LeftOut, text_of, unknown_text
from pegboard.evaluation.golden import GoldenQuery


@dataclass(frozen=True, slots=True)
class Annotated:
    """A question with its steps and known tools.

    Attributes:
        aligned: the steps whose own tool is known, each with that tool.
    """

    question: GoldenQuery
    aligned: tuple[tuple[str, str], ...]


def load(path: Path) -> Benchmark:
    """Read the benchmark of that folder. Raises ConfigurationError for another folder."""
    folder = Folder(path, "livemcpbench")
    files = folder.files(
        {"its tools": ["tools.json"], "annotations": ["*annotations*.jsonl", "*annotations*.json"]}
    )
    catalog = catalog_toml("live", "mcp-dump", files["its tools"][0])
    tools = folder.listed(catalog).tools
    names = {tool.name for tool in tools}
    unknown: list[str] = []
    rows = [
        row
        for file in files["annotations"]
        for row in folder.converted(file, lambda row: _annotated(row, names, unknown))
    ]
    if unknown:
        what = "of annotations that no server has"
        folder.note(f"not counted: {unknown_text(unknown, 'tool', what)}")
    questions = [row.question for row in rows]
    steps = [GoldenQuery(step, (tool,)) for row in rows for step, tool in row.aligned]
    all_steps = [GoldenQuery(step, one.tools) for one in questions for step in one.steps]
    folder.note(
        f"step-tool and step-agent ask the steps that have a tool of their own: {len(steps)} of "
        f"{len(all_steps)}"
    )
    query_sets = (
        QuerySet.of_task("tools", "direct-tool", questions),
        QuerySet.of_task("tools", "step-tool", steps),
        QuerySet.of_task("tools", "direct-agent", questions, agents=True),
        QuerySet.of_task("tools", "step-agent", steps, agents=True),
        QuerySet.of_task("tools", "step-agent-all", all_steps, agents=True),
    )
    return Benchmark(
        "livemcpbench",
        (BenchmarkBoard("tools", catalog),),
        tuple(query_set for query_set in query_sets if query_set.queries),
        len(tools),
        tuple(folder.problems()),
    )


def numbered(text: str) -> list[str]:
    """The lines of a numbered list without their numbers."""
    lines = (re.sub(r"^\s*\d+\s*[.)]\s*", "", line).strip() for line in text.splitlines())
    return [line for line in lines if line]


def _annotated(row: dict[str, Any], names: Collection[str], unknown: list[str]) -> Annotated:
    metadata = row.get("Annotator Metadata")
    question = text_of(row.get("Question"), "Question")
    if not isinstance(metadata, dict):
        raise LeftOut(f"its Annotator Metadata is {metadata!r:.80}, expected an object")
    tools = _list(metadata.get("Tools"), "Tools")
    steps = _list(metadata.get("Steps"), "Steps") if metadata.get("Steps") else []
    existing = dict.fromkeys(tool for tool in tools if tool in names)
    unknown += [tool for tool in tools if tool not in names]
    if not existing:
        raise LeftOut("it names no tool that a server has")
    pairs = zip(steps, tools, strict=True) if len(steps) == len(tools) else ()
    return Annotated(
        GoldenQuery(question, tuple(existing), tuple(steps)),
        tuple((step, tool) for step, tool in pairs if tool in names),
    )


def _list(value: Any, what: str) -> list[str]:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        value = "\n".join(value)
    return numbered(text_of(value, what))
