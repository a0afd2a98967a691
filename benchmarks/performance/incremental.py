"""`python -m benchmarks.performance.incremental`: what a nightly run costs after few tools changed,
against the build of the whole board.

Four direct runs, each in a process of its own as at night, on a board with two index
configurations:

full      everything is new
change    some tools changed: half of them say something else, a quarter are new, a quarter are gone
nothing   nothing changed
again     as `change`, once more: on top of what the one before left

For every step: seconds, megabytes written to the lake and to the tables (files that are new or
other than before), and at its end the most memory that the process ever had. `share` is what a step
took of what it took in the full run. For a run, also the processor seconds of its process and those
that it started, with what they import.

    python -m benchmarks.performance.incremental --tools 100000 --encoder hashing/256 --change 0.01
    --json out.json

The hashing encoder costs next to nothing, so that the other costs show. `--encoder` names any
other."""

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.machine import machine, machine_line
from pegboard.cli.tables import print_table

PACKAGES = ("pegboard", "lancedb", "polars", "pyarrow", "numpy")
RUNS = ("full", "change", "nothing", "again")
CATALOGS = ("cloud", "office", "data", "shop")
AGENT_TOOLS = 20


def _words(text: str) -> list[str]:
    return text.split()


VERBS = _words("""
    list get create update delete search export import merge approve archive assign cancel
    check compare convert
""")
THINGS = _words("""
    invoice order customer ticket branch commit report calendar meeting flight hotel parcel
    contract salary device sensor bucket cluster certificate database backup policy budget
    campaign recipe playlist patient prescription translation forecast exchange- rate
    vulnerability pipeline deployment warehouse supplier
""")
FIELDS = _words("""
    id name status owner date amount currency language region query limit page format
    priority comment tags
""")
QUALITIES = _words("""
    monthly overdue regional internal shared encrypted archived draft recurring public
    pending external
""")
SENTENCES = (
    "{Verb}s {quality} {thing}s of a {other}.",
    "Use it when the {other} is known and the {thing} is {quality}.",
    "The result is ordered by {field} and has at most {number} entries.",
    "It needs the right to {verb} a {thing}; without it nothing is returned.",
    "A {quality} {other} is left out unless {field} is given.",
)


def make_tool(seed: int, edition: int = 0) -> dict[str, Any]:
    """A plausible tool: always the same for the same number and edition."""
    rng = random.Random(f"{seed}-{edition}")
    verb, thing = rng.choice(VERBS), rng.choice(THINGS)

    def text(pattern: str) -> str:
        return pattern.format(
            Verb=verb.capitalize(),
            verb=verb,
            thing=thing,
            other=rng.choice(THINGS),
            quality=rng.choice(QUALITIES),
            field=rng.choice(FIELDS),
            number=rng.randint(5, 5000),
        )

    fields = rng.sample(FIELDS, rng.randint(1, 5))
    properties = {
        name: {
            "type": "string",
            "description": f"the {name} of the {rng.choice(QUALITIES)} {rng.choice(THINGS)}",
        }
        for name in fields
    }
    return {
        "name": f"{VERBS[seed % len(VERBS)]}_{THINGS[seed % len(THINGS)]}_{seed}",
        "description": " ".join(
            text(pattern) for pattern in rng.sample(SENTENCES, rng.randint(2, 4))
        ),
        "inputSchema": {"type": "object", "properties": properties, "required": fields[:1]},
    }


def write_catalogs(folder: Path, tools: dict[int, int]) -> None:
    """Write the answers of servers with about twenty tools each; `tools` is seed -> edition."""
    servers: dict[str, dict[str, Any]] = {name: {} for name in CATALOGS}
    for seed in sorted(tools):
        agent = seed // AGENT_TOOLS
        answer = servers[CATALOGS[agent % len(CATALOGS)]].setdefault(
            f"server-{agent}", {"tools": []}
        )
        answer["tools"].append(make_tool(seed, tools[seed]))
    for name, content in servers.items():
        (folder / f"{name}.json").write_text(json.dumps(content))


def changed(tools: dict[int, int], share: float) -> dict[int, int]:
    """The same tools with a share of them changed, added and taken away."""
    rng = random.Random(f"change {sum(tools.values())}")
    count = max(4, round(len(tools) * share))
    touched = rng.sample(sorted(tools), count)
    after = dict(tools)
    for seed in touched[: count // 2]:
        after[seed] += 1
    for seed in touched[count // 2 : count // 2 + count // 4]:
        del after[seed]
    first = max(tools) + 1
    return after | dict.fromkeys(range(first, first + count - count // 2 - count // 4), 0)


def write_configuration(folder: Path, encoder: str) -> None:
    """Four catalogs and two index configurations."""
    name = f'encoder = "{encoder}"\n'
    catalogs = "".join(
        f'[catalogs.{name}]\ntype = "mcp-dump"\npath = "{name}.json"\n' for name in CATALOGS
    )
    indexes = (
        f'[[indexes]]\nname = "full"\n{name}[[indexes]]\nname = "brief"\nparts = ["name", '
        f'"description"]\n{name}'
    )
    (folder / "pegboard.toml").write_text(f'[board]\nuri = "board"\n{catalogs}{indexes}')


class Meter:
    """Seconds, bytes and memory of each step; work between two steps counts for the later one."""

    def __init__(self, board: Path) -> None:
        self.board = board
        self.steps: dict[str, dict[str, float]] = {}
        self._before, self._begin = self._files(), time.perf_counter()

    def step(self, event: str, _: Sequence[Any]) -> None:
        """Note what the run took up to the end of a step, for `StepEvents`."""
        when, name = event.split()
        if when == "begin":
            return
        seconds, after = time.perf_counter() - self._begin, self._files()
        written = {"lake": 0, "tables": 0, "reports": 0}
        for path, state in after.items():
            if self._before.get(path) != state:
                written[path.split("/")[0]] += state[0]
        figures = self.steps.setdefault(
            name, {"seconds": 0.0, "lake_mb": 0.0, "tables_mb": 0.0, "peak_mb": 0.0}
        )
        figures["seconds"] = round(figures["seconds"] + seconds, 2)
        figures["lake_mb"] = round(figures["lake_mb"] + written["lake"] / 1e6, 3)
        figures["tables_mb"] = round(figures["tables_mb"] + written["tables"] / 1e6, 3)
        figures["peak_mb"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        self._before, self._begin = after, time.perf_counter()

    def _files(self) -> dict[str, tuple[int, int]]:
        found = ((path, path.stat()) for path in self.board.rglob("*") if path.is_file())
        return {
            path.relative_to(self.board).as_posix(): (stat.st_size, stat.st_mtime_ns)
            for path, stat in found
        }


def run(folder: Path) -> dict[str, Any]:
    """One run of the project, in this process, set up as `pegboard build` sets it up."""
    from flows.cli.options import collect_garbage_rarely

    collect_garbage_rarely()
    from flows.reindex import reindex
    from flows.runner import DirectRunner
    from tasks.settings.configuration import load_configuration
    from tests.step_events import StepEvents

    configuration = load_configuration(folder / "pegboard.toml")
    meter = Meter(folder / "board")
    outcome = reindex(configuration, runner=StepEvents(DirectRunner(), meter.step))
    plan = outcome["plan"]
    changes = {kind: len(plan[kind]) for kind in ("new", "changed", "removed")}
    tools = sum(catalog["tools"] for catalog in outcome["catalogs"].values())
    return {"steps": meter.steps, "encoded": outcome["encoded"], "tools": tools, **changes}


def total(steps: dict[str, dict[str, float]]) -> dict[str, float]:
    """All steps together."""
    sums = {
        key: sum(step[key] for step in steps.values())
        for key in ("seconds", "lake_mb", "tables_mb")
    }
    return {**sums, "peak_mb": max(step["peak_mb"] for step in steps.values())}


def report(name: str, run: dict[str, Any], full: dict[str, Any] | None) -> None:
    """Print one run as a table."""
    print(
        f"\n{name}: {run['tools']:,} tools, {run['new']} new, {run['changed']} changed, "
        f"{run['removed']} removed; {run['encoded']:,} texts encoded; "
        f"{run['processor_seconds']} processor seconds"
    )
    steps = {**run["steps"], "all": total(run["steps"])}
    others = {**full["steps"], "all": total(full["steps"])} if full else {}
    header = ["STEP"]
    for unit in ("SECONDS", "LAKE MB", "TABLES MB"):
        header += [unit, "SHARE"] if full else [unit]
    rows: list[list[str]] = []
    for step, figures in steps.items():
        cells = [step]
        for key in ("seconds", "lake_mb", "tables_mb"):
            whole = others.get(step, {}).get(key)
            share = [f"{figures[key] / whole:.1%}" if whole else "-"] if full else []
            cells += [f"{figures[key]:.2f}", *share]
        rows.append([*cells, f"{figures['peak_mb']:.0f}"])
    print_table([*header, "PEAK MB"], rows, "  ")


def measure(folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """All runs, each in a process of its own, and their figures."""
    tools = dict.fromkeys(range(arguments.tools), 0)
    results: dict[str, Any] = {
        "machine": machine(*PACKAGES),
        "change": arguments.change,
        "encoder": arguments.encoder,
        "runs": {},
    }
    print(machine_line(*PACKAGES))
    write_configuration(folder, arguments.encoder)
    for name in RUNS:
        if name in ("change", "again"):
            tools = changed(tools, arguments.change)
        if name != "nothing":
            write_catalogs(folder, tools)
        command = [
            sys.executable,
            "-m",
            "benchmarks.performance.incremental",
            "--run",
            str(folder),
        ]
        begin, processor = time.perf_counter(), _processor_seconds()
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        found = json.loads(done.stdout.splitlines()[-1]) | {
            "wall_seconds": round(time.perf_counter() - begin, 1),
            "processor_seconds": round(_processor_seconds() - processor, 1),
        }
        results["runs"][name] = found
        report(name, found, results["runs"]["full"] if name != "full" else None)
    return results


def _processor_seconds() -> float:
    """Of all processes that this one started and that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Measure and print; with --json write the figures, too."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tools", type=int, default=100_000)
    parser.add_argument("--encoder", default="hashing/256")
    parser.add_argument("--change", type=float, default=0.01, help="share of the tools that change")
    parser.add_argument("--json", type=Path, help="a file for the figures")
    parser.add_argument("--run", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run:
        print(json.dumps(run(arguments.run)))
        return
    with tempfile.TemporaryDirectory() as name:
        results = measure(Path(name), arguments)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
