"""The public benchmarks that stand beside a checkout, as boards to build and requests to ask; nothing of them is in this repository.

Used by the `bench_*` programs, which are started as modules: `python -m tests.bench_results`.
"""

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = [
    "BENCHMARKS",
    "CATALOGS",
    "Case",
    "build_board",
    "lines",
    "livemcpbench",
    "metatool_multi",
    "metatool_single",
    "numbered",
    "seal_tools",
    "toollinkos",
    "ultratool",
]

BENCHMARKS = Path(__file__).parents[2] / "shared" / "benchmarks"

CATALOGS = {
    "seal-tools": """
[catalogs.seal]
type = "records"
path = "{0}/seal-tools/tool.jsonl"
columns = {{ name = "api_name", description = "api_description", parameters = "parameters", required = "required", output = "responses", tags = "field" }}
""",
    "metatool": """
[catalogs.metatool]
type = "records"
path = "{0}/metatool/plugin_des.json"
examples = {{ path = "{0}/metatool/example_queries.jsonl", query = "query", tool = "tool" }}
""",
    "metatool-multi": """
[catalogs.metatool]
type = "records"
path = "{0}/metatool/big_tool_des.json"
""",
    "toollinkos": """
[catalogs.toollinkos]
type = "records"
path = "{0}/toollinkos/tools.json"
columns = {{ parameters = "parameters", dependencies = "depends_on", tags = "func_type" }}
""",
    "toollinkos-hidden": """
[catalogs.toollinkos]
type = "records"
path = "{0}/toollinkos/tools.json"
columns = {{ parameters = "parameters" }}
""",
    "ultratool": """
[catalogs.ultratool]
type = "records"
path = "{0}/ultratool/tools.json"
columns = {{ parameters = "arguments", output = "results" }}
""",
    "livemcpbench": """
[catalogs.live]
type = "mcp-dump"
path = "{0}/livemcpbench/tools.json"
""",
}


@dataclass(frozen=True)
class Case:
    """A request, the true names of the tools that it needs, and its steps where the benchmark gives them."""

    request: str
    needed: frozenset[str]
    steps: tuple[str, ...] = ()


def build_board(folder: Path, name: str, extra: str = "") -> str:
    """Build the board of a benchmark by the command line, as anyone would; returns its URI. A second call changes nothing.

    `extra` is more of pegboard.toml.
    """
    folder.mkdir(parents=True, exist_ok=True)
    catalog = CATALOGS[name].format(BENCHMARKS)
    (folder / "pegboard.toml").write_text(f'[board]\nuri = "board"\n{catalog}\n{extra}\n')
    command = [sys.executable, "-m", "pegboard.cli", "build", "-c", "pegboard.toml"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"The board of {name} was not built:\n{done.stderr[-3000:]}")
    return str(folder / "board")


def seal_tools() -> list[Case]:
    """Requests for one to six of 4,076 tools."""
    return [
        Case(one["query"], frozenset(call["api"] for call in one["calling"])) for one in lines("seal-tools/dev.jsonl")
    ]


def metatool_single() -> list[Case]:
    """Requests for one of 199 plugins."""
    return [Case(one["query"], frozenset({one["tool"]})) for one in lines("metatool/single_tool_queries.jsonl")]


def metatool_multi() -> list[Case]:
    """Requests for two tools at once."""
    return [Case(one["query"], frozenset(one["tool"])) for one in lines("metatool/multi_tool_queries.jsonl")]


def toollinkos() -> list[Case]:
    """Requests for one of 573 tools and all that it depends on."""
    return [
        Case(one["user_query"], frozenset(one["golden_function_names"])) for one in lines("toollinkos/instances.jsonl")
    ]


def ultratool() -> list[Case]:
    """Requests for several of 436 tools, with the plan's steps that need a tool, without their numbers."""
    known = {one["name"] for one in json.loads((BENCHMARKS / "ultratool/tools.json").read_text("utf-8"))}
    cases: list[Case] = []
    for one in lines("ultratool/instances.jsonl"):
        steps = [(step["step"], str(step["tool"]).partition("(")[0].strip()) for step in one["plan"]]
        with_tool = [(re.sub(r"^[\d.]+\s*", "", text), tool) for text, tool in steps if tool in known]
        if with_tool:
            texts = tuple(text for text, _ in with_tool)
            cases.append(Case(one["question"].strip(), frozenset(tool for _, tool in with_tool), texts))
    return cases


def livemcpbench() -> list[Case]:
    """Questions that need several of the 527 tools of 70 MCP servers, with the annotator's steps."""
    known = {
        tool["name"]
        for entry in json.loads((BENCHMARKS / "livemcpbench/tools.json").read_text("utf-8"))
        for server in entry["tools"].values()
        for tool in server["tools"]
    }
    cases: list[Case] = []
    for one in lines("livemcpbench/annotations.jsonl"):
        said = one["Annotator Metadata"]
        needed = frozenset(numbered(said["Tools"])) & known
        if needed:
            cases.append(Case(one["Question"], needed, tuple(numbered(said["Steps"]))))
    return cases


def numbered(text: str) -> list[str]:
    """The lines of a numbered list without their numbers."""
    return [line for line in (re.sub(r"^\s*\d+\s*[.)]\s*", "", one).strip() for one in text.splitlines()) if line]


def lines(name: str) -> list[Any]:
    """The JSON values of a benchmark's file."""
    return [json.loads(line) for line in (BENCHMARKS / name).read_text("utf-8").splitlines() if line.strip()]
