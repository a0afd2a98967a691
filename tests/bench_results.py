"""`python -m tests.bench_results [--folder FOLDER] [--only BENCHMARK ...] [--write]`: what the library finds on the public benchmarks.

Boards are built by `pegboard build` and asked through the reader: the embedded encoder, no LLM. With --folder boards are kept and found
again. With --write the tables go into docs/results.md; otherwise they are printed.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar

import pegboard
from pegboard.measures import average_precision, ndcg, recall
from pegboard.retrieval.parts import Query
from pegboard.retrieval.plans import CLAUSES
from tests.benchmarks import (
    BENCHMARKS,
    Case,
    build_board,
    livemcpbench,
    metatool_multi,
    metatool_single,
    seal_tools,
    toollinkos,
    ultratool,
)

RESULTS = Path(__file__).parents[1] / "docs" / "results.md"
BEGIN, END = "<!-- measured -->\n", "<!-- /measured -->\n"
DEPTH = 10
Measure = Callable[[Sequence[str], Iterable[str], int], float]
MEASURES: dict[str, Measure] = {"R": recall, "mAP": average_precision, "nDCG": ndcg}  # type: ignore[dict-item]


@dataclass(frozen=True, slots=True)
class Given:
    """A transform that searches the steps that a benchmark's plan gives, instead of the request or, with `whole`, beside it."""

    part: ClassVar[str] = "given"
    steps: Mapping[str, Sequence[str]]
    whole: bool = False

    async def transform(self, queries: Sequence[Query], context: Any) -> list[Query]:
        """The steps of the request's own plan."""
        request = context.request.text
        steps = [Query(text, number, "step") for number, text in enumerate(self.steps[request], start=1)]
        beside = [Query(request, number) for number in range(len(steps) + 1)]
        return [*steps, *beside] if self.whole else steps


VECTOR = {"name": "search", "modes": ["vector"]}
TEXT = {"name": "search", "modes": ["text"]}
BRIEF = """
[[indexes]]
name = "full"
[[indexes]]
name = "brief"
parts = ["name", "description"]
"""
DECLARED: dict[str, Any] = {"name": "declared", "refine": [{"part": "dependencies", "origins": ["declared"]}]}
EXPANDED: dict[str, Any] = {"name": "dependencies", "refine": ["dependencies"]}


def bench_seal_tools(folder: Path) -> None:
    """Requests for one to six of 4,076 tools."""
    plans = {
        "vector": VECTOR,
        "BM25": TEXT,
        "hybrid": "search",
        "clauses, hybrid": "clauses",
        "equal parts": "dummy-steps",
    }
    _table("Seal-Tools", folder, "seal-tools", seal_tools(), plans, ("R@1", "R@5", "R@10"))


def bench_metatool(folder: Path) -> None:
    """Requests for one plugin, and for two tools at once."""
    by_vector = {**CLAUSES, "name": "clauses", "modes": ["vector"]}
    plans = {"vector": VECTOR, "hybrid": "search", "clauses, vector": by_vector, "clauses, hybrid": "clauses"}
    _table("MetaTool, one tool", folder, "metatool", metatool_single(), plans, ("R@1", "R@5", "R@10"))
    _table("MetaTool, two tools", folder, "metatool-multi", metatool_multi(), plans, ("R@1", "R@5", "R@10"))


def bench_toollinkos(folder: Path) -> None:
    """Requests for a tool and all that it depends on; then with every declared dependency hidden."""
    plans = {
        "vector": VECTOR,
        "hybrid": "search",
        "hybrid, declared dependencies": DECLARED,
        "vector, declared dependencies": {**DECLARED, "modes": ["vector"]},
        "name and description alone, hybrid, declared dependencies": {**DECLARED, "indexes": ["brief"]},
        "name and description alone, vector, declared dependencies": {
            **DECLARED,
            "modes": ["vector"],
            "indexes": ["brief"],
        },
        "hybrid, declared and inferred dependencies": EXPANDED,
    }
    shown = ("mAP@10", "R@10", "nDCG@10")
    _table("ToolLinkOS", folder, "toollinkos", toollinkos(), plans, shown, BRIEF)
    _table(
        "ToolLinkOS, none declared",
        folder,
        "toollinkos-hidden",
        toollinkos(),
        {"hybrid, inferred dependencies": EXPANDED},
        shown,
    )


def bench_ultratool(folder: Path) -> None:
    """Requests with a plan of several steps."""
    cases = ultratool()
    steps = {case.request: case.steps for case in cases}
    fusion = pegboard.Plan.from_dict({name: CLAUSES[name] for name in ("within", "across")})
    plans = {
        "whole question": "search",
        "clauses": "clauses",
        "equal parts": "dummy-steps",
        "the plan's own steps, round robin": pegboard.Plan(transforms=(Given(steps),)),
        "the plan's own steps and the whole": replace(fusion, transforms=(Given(steps, whole=True),)),
    }
    _table("UltraTool", folder, "ultratool", cases, plans, ("R@5", "R@10"))


def bench_livemcpbench(folder: Path) -> None:
    """Questions to tools; for agents see below."""
    plans = {"whole question": "search", "clauses": "clauses"}
    _table("LiveMCPBench, tools", folder, "livemcpbench", livemcpbench(), plans, ("R@5", "R@10"))


BENCHES = {
    "seal-tools": bench_seal_tools,
    "metatool": bench_metatool,
    "toollinkos": bench_toollinkos,
    "ultratool": bench_ultratool,
    "livemcpbench": bench_livemcpbench,
}
LINES: list[str] = []


def _table(
    title: str,
    folder: Path,
    board: str,
    cases: Sequence[Case],
    plans: Mapping[str, Any],
    shown: Sequence[str],
    extra: str = "",
) -> None:
    opened = pegboard.open(build_board(folder / board, board, extra), refresh=3600)
    tools = opened.release.tables["tools"].rows
    _say(f"\n**{title}**: {len(cases)} requests, {tools:,} tools\n")
    _say(f"| composition | {' | '.join(shown)} |")
    _say(f"|---|{'---|' * len(shown)}")
    for name, plan in plans.items():
        found = opened.find_many([case.request for case in cases], DEPTH, plan=plan)
        names = [[hit.tool.name for hit in one] for one in found]
        values = [_mean(measure, names, cases) for measure in shown]
        _say(f"| {name} | {' | '.join(f'{value:.3f}' for value in values)} |")


def _mean(measure: str, names: Sequence[Sequence[str]], cases: Sequence[Case]) -> float:
    kind, _, depth = measure.partition("@")
    return fmean(MEASURES[kind](found, case.needed, int(depth)) for found, case in zip(names, cases, strict=True))


def bench_agents(folder: Path) -> None:
    """Recall at 5 of agents, by what takes part in the search."""
    rows = _json_lines("tests.bench_agents", folder)
    by = {(row["asked"], row["searched"], row["mode"]): row for row in rows}
    _say(
        "\n**LiveMCPBench, agents** (R@5; 70 agents; `python -m tests.bench_agents` says what each kind of request is)\n"
    )
    _say("| asked | requests | agents only | tools only | tools and agents | the same, hybrid | nDCG@5 of that |")
    _say("|---|---|---|---|---|---|---|")
    for asked in dict.fromkeys(row["asked"] for row in rows):
        both = by[asked, "tools+agents", "hybrid"]
        three = [by[asked, searched, "vector"]["recall@5"] for searched in ("agents", "tools", "tools+agents")]
        values = [both["requests"], *(f"{value:.3f}" for value in (*three, both["recall@5"], both["nDCG@5"]))]
        _say(f"| {asked} | {' | '.join(map(str, values))} |")


def bench_abstention(folder: Path) -> None:
    """False accepts at 95 % true accepts, the mean over the pairs of boards and unrelated requests."""
    rows = [row for row in _json_lines("tests.bench_abstention", folder) if row.get("unanswerable") in BENCHES]
    pairs = {(row["board"], row["unanswerable"]) for row in rows}
    _say(
        f"\n**Abstention**: means over {len(pairs)} pairs of a board and requests of another benchmark (`python -m tests.bench_abstention`)\n"
    )
    _say(
        "| what decides | learned from | false accepts at 95 % true ones | at the fitted threshold | false rejects there |"
    )
    _say("|---|---|---|---|---|")
    for score, fitted in dict.fromkeys((row["score"], row["fitted"]) for row in rows):
        own = [row for row in rows if (row["score"], row["fitted"]) == (score, fitted)]
        means = [fmean(row[name] for row in own) for name in ("false_accept_roc", "false_accept", "false_reject")]
        _say(f"| {score} | {fitted} | {' | '.join(f'{value:.3f}' for value in means)} |")


BENCHES["agents"] = bench_agents
BENCHES["abstention"] = bench_abstention


def _json_lines(module: str, folder: Path) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", module, "--cache", str(folder / "vectors")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def _say(line: str) -> None:
    LINES.append(line)
    print(line, flush=True)


def main() -> None:
    """Measure, and print or write."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--folder", type=Path, help="keep the boards here")
    parser.add_argument("--only", nargs="+", choices=[*BENCHES], help="these benchmarks")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/results.md")
    options = parser.parse_args()
    if not BENCHMARKS.is_dir():
        sys.exit(f"The benchmarks are not at {BENCHMARKS}.")
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        for name, bench in BENCHES.items():
            if not options.only or name in options.only:
                bench(folder)
    if options.write:
        before, _, rest = RESULTS.read_text("utf-8").partition(BEGIN)
        RESULTS.write_text(before + BEGIN + "\n".join(LINES).strip() + "\n" + END + rest.partition(END)[2], "utf-8")


if __name__ == "__main__":
    main()
