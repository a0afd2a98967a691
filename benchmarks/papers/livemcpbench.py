"""LiveMCPBench (Mo and others, 2025): questions for several tools of 70 MCP servers, with the
annotator's steps; for tools and for agents.

tools.json: [{"name", "description", "tools": {key: {"tools": [an MCP tool, ...]}}}, ...];
annotations.jsonl: {"Question", "Annotator Metadata": {"Steps": a numbered list, "Tools": a numbered
list of names}}.

The annotators do not say which step needs which tool. Where a question has as many steps as tools,
the i-th step is taken to need the i-th tool; the tasks `step-tool` and `step-agent` are of those
steps, and any owner of a tool of that name will do. Names that no server has are left out."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.papers.benchmark import (
    AgentRequest,
    AgentsAsked,
    Asked,
    Benchmark,
    BenchmarkBoard,
    catalog_toml,
)
from benchmarks.papers.reading import Folder, LeftOut, counted, text_of
from pegboard.evaluation.golden import GoldenQuery


@dataclass(frozen=True, slots=True)
class Annotated:
    """A question, its steps, the known tools that it needs, and those steps whose tool is known,
    with it.
    """

    question: str
    steps: tuple[str, ...]
    tools: tuple[str, ...]
    aligned: tuple[tuple[str, str], ...]


def load(path: Path) -> Benchmark:
    """The benchmark of that folder. Raises ConfigurationError if it is none."""
    folder = Folder(path, "livemcpbench")
    files = folder.files(
        {"its tools": ["tools.json"], "annotations": ["*annotations*.jsonl", "*annotations*.json"]}
    )
    catalog = catalog_toml("live", "mcp-dump", files["its tools"][0])
    tools = folder.listed(catalog).tools
    names = {tool.name for tool in tools}
    rows: list[Annotated] = []
    unknown: list[str] = []
    for file in files["annotations"]:
        for where, row in folder.rows(file):
            try:
                rows.append(_annotated(row, names, unknown))
            except LeftOut as why:
                folder.leave_out(where, why, file)
    if unknown:
        said = ", ".join(dict.fromkeys(unknown[:5])) + (", ..." if len(unknown) > 5 else "")
        folder.say(
            f"not counted: {counted(len(unknown), 'tool')} of annotations that no server has: "
            f"{said}"
        )
    aligned = [(step, tool) for one in rows for step, tool in one.aligned]
    folder.say(
        f"step-tool and step-agent ask the steps that have a tool of their own: {len(aligned)} of "
        f"{sum(len(one.steps) for one in rows)}"
    )
    asked = (
        _asked("direct-tool", [GoldenQuery(one.question, one.tools, one.steps) for one in rows]),
        _asked("step-tool", [GoldenQuery(step, (tool,)) for step, tool in aligned]),
    )
    agents = (
        AgentsAsked(
            "tools",
            "direct-agent",
            tuple(AgentRequest(one.question, one.tools, one.steps) for one in rows),
        ),
        AgentsAsked(
            "tools", "step-agent", tuple(AgentRequest(step, (tool,)) for step, tool in aligned)
        ),
        AgentsAsked(
            "tools",
            "step-agent-all",
            tuple(AgentRequest(step, one.tools) for one in rows for step in one.steps),
        ),
    )
    return Benchmark(
        "livemcpbench",
        (BenchmarkBoard("tools", catalog),),
        tuple(one for one in asked if one.queries),
        tuple(one for one in agents if one.requests),
        len(tools),
        tuple(folder.problems()),
    )


def numbered(text: str) -> list[str]:
    """The lines of a numbered list without their numbers."""
    return [
        line
        for line in (re.sub(r"^\s*\d+\s*[.)]\s*", "", one).strip() for one in text.splitlines())
        if line
    ]


def _asked(task: str, queries: list[GoldenQuery]) -> Asked:
    return Asked("tools", tuple(queries), {task: tuple(range(len(queries)))})


def _annotated(row: dict[str, Any], names: Collection[str], unknown: list[str]) -> Annotated:
    said = row.get("Annotator Metadata")
    question = text_of(row.get("Question"), "Question")
    if not isinstance(said, dict):
        raise LeftOut(f"its Annotator Metadata is {said!r:.80}, expected an object")
    tools = _list(said.get("Tools"), "Tools")
    steps = _list(said.get("Steps"), "Steps") if said.get("Steps") else []
    known = tuple(dict.fromkeys(tool for tool in tools if tool in names))
    unknown += [tool for tool in tools if tool not in names]
    if not known:
        raise LeftOut("it names no tool that a server has")
    pairs = list(zip(steps, tools, strict=True)) if len(steps) == len(tools) else []
    return Annotated(
        question, tuple(steps), known, tuple((step, tool) for step, tool in pairs if tool in names)
    )


def _list(value: Any, what: str) -> list[str]:
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        value = "\n".join(value)
    return numbered(text_of(value, what))
