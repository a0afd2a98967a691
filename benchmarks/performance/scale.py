"""`python -m benchmarks.performance.scale [--tools 10000 100000] [--folder F] [--json]`: what a
first build of a large catalog costs by step, and how its board is then read.

One JSONL file of made-up tools of agents with twenty tools each, one index, the hashing encoder.
Each size is built by a direct run in a process of its own, report included. For every step:
seconds, processor seconds, and the most memory held during it. Work between two steps counts for
the later one. Then the board is opened by another process: seconds until it is open, until the
first `find` returned and until the second did; milliseconds of a vector search through Lance and of
an exact one in memory, and how many of the ten best of the exact one are among Lance's.
"""

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.performance.incremental import AGENT_TOOLS, make_tool
from benchmarks.performance.shared import parser_of, print_rows, seconds_of

PROJECT = """
[board]
uri = "board"
[catalogs.market]
type = "records"
path = "tools.jsonl"
[catalogs.market.columns]
parameters = "inputSchema"
agent = "agent"
[[indexes]]
name = "full"
encoder = "hashing/256"
"""
QUERIES = 200
K = 10
MODULE = "benchmarks.performance.scale"


class Meter:
    """Seconds, processor seconds and the highest resident memory of each step."""

    def __init__(self) -> None:
        self.steps: dict[str, dict[str, float]] = {}
        self._begun = self._now()

    def step(self, event: str, _: Sequence[Any]) -> None:
        """Note what a step took at its end, for `StepEvents`."""
        when, name = event.split()
        if when == "begin":
            return
        now, peak = self._now(), self.peak()
        row = self.steps.setdefault(name, {"seconds": 0.0, "cpu": 0.0, "peak_mb": 0.0})
        row["seconds"] += now[0] - self._begun[0]
        row["cpu"] += now[1] - self._begun[1]
        row["peak_mb"] = max(row["peak_mb"], peak)
        self._begun = now

    @staticmethod
    def _now() -> tuple[float, float]:
        usages = [resource.getrusage(who) for who in (-1, 0)]
        return time.perf_counter(), sum(usage.ru_utime + usage.ru_stime for usage in usages)

    @staticmethod
    def peak() -> float:
        """Since the last call, in MB; Linux only."""
        lines = Path("/proc/self/status").read_text("utf-8").splitlines()
        peak = next(line.split()[1] for line in lines if line.startswith("VmHWM"))
        Path("/proc/self/clear_refs").write_text("5")
        return int(peak) * 1024 / 1e6


def write_project(folder: Path, tools: int) -> None:
    """The catalog and the configuration."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pegboard.toml").write_text(PROJECT)
    with (folder / "tools.jsonl").open("w") as file:
        for seed in range(tools):
            agent = f"server-{seed // AGENT_TOOLS}"
            file.write(json.dumps(make_tool(seed) | {"agent": agent}) + "\n")


def build(folder: Path) -> list[dict[str, Any]]:
    """Build the board in this process; a row for each step."""
    from flows.reindex import reindex
    from flows.runner import DirectRunner
    from tasks.settings.configuration import load_configuration
    from tests.step_events import StepEvents

    meter = Meter()
    configuration = load_configuration(folder / "pegboard.toml")
    reindex(configuration, runner=StepEvents(DirectRunner(), meter.step))
    return [{"step": name, **figures} for name, figures in meter.steps.items()]


def read(folder: Path) -> list[dict[str, Any]]:
    """Search the board in this process; one row."""
    import pegboard

    uri = str(folder / "board")
    began = time.perf_counter()
    board: Any = pegboard.open(uri, in_memory_rows=0, refresh=3600)
    row: dict[str, Any] = {"open_s": time.perf_counter() - began}
    row["first_find_s"] = seconds_of(lambda: board.find("archive the regional budget"))
    row["second_find_s"] = seconds_of(lambda: board.find("cancel a shared flight"))
    row["find_mb"] = Meter.peak()
    exact: Any = pegboard.open(uri, in_memory_rows=10**9, refresh=3600)
    files = (folder / "tools.jsonl").read_text().splitlines()
    texts = [json.loads(files[at * 7919 % len(files)])["description"] for at in range(QUERIES)]
    found: dict[str, list[list[str]]] = {"lance": [], "exact": []}
    seconds: dict[str, list[float]] = {"lance": [], "exact": []}
    for text in texts:
        for name, searched in (("lance", board), ("exact", exact)):
            began = time.perf_counter()
            hits = searched.search(text, K, mode="vector")
            seconds[name].append(time.perf_counter() - began)
            found[name].append([hit.tool.id for hit in hits])
    for name, values in seconds.items():
        row[f"{name}_p50_ms"] = 1000 * statistics.median(values)
    pairs = zip(found["lance"], found["exact"], strict=True)
    row["recall"] = statistics.mean(len({*near} & {*best}) / K for near, best in pairs)
    return [row]


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--tools", nargs="+", type=int, default=[10_000, 100_000])
    parser.add_argument("--folder", type=Path, help="keep the projects here")
    parser.add_argument("--part", choices=("build", "read"), help="in this process, for one size")
    options = parser.parse_args()
    if options.part:
        print(json.dumps((build if options.part == "build" else read)(options.folder)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        for part in ("build", "read"):
            rows: list[dict[str, Any]] = []
            for tools in options.tools:
                folder = (options.folder or Path(temporary)) / str(tools)
                if part == "build":
                    write_project(folder, tools)
                command = [sys.executable, "-m", MODULE, "--part", part, "--folder", str(folder)]
                done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
                measured = json.loads(done.stdout.splitlines()[-1])
                rows += [{"tools": tools, **row} for row in measured]
            print_rows(part, rows, as_json=options.json)


if __name__ == "__main__":
    main()
