"""`python -m benchmarks scale [--tools 10000 100000] [--encoder E]
[--folder F] [--json]`: what builds of a large catalog cost by step, and how its board is then read,
beside plain lancedb.

A catalog of JSONL files with 100,000 made-up tools each, of agents with twenty tools each, and one
index. Each size is built three times by direct runs, each in a process of its own, report included:
`full`, `nothing` changed, and `change` of 1 % (half of it other texts, a quarter new, a quarter
gone). For every step: seconds, processor seconds, and the most memory held during it, but for
the process that lists: `listing_mb` is the most that it had. Work between two steps counts for the
later one. `all` has the imports, too.

Then the board is read by another process, and plain lancedb takes the same vectors and searches
them with the same kind of index, in turns with Pegboard: seconds until the board is open, until the
first `find` returned and until the second did; p50 and p99 of a vector search, with encoding and
the tools' definitions for Pegboard, of the vectors alone for lancedb; and how many of the ten
results are as near as the ten nearest, computed exactly. Half of the queries are descriptions of
tools, half requests of people.
"""

import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.performance.shared import parser_of, print_rows, requests, seconds_of

PROJECT = """
[board]
uri = "board"
[catalogs.market]
type = "records"
path = "tools-*.jsonl"
max_seconds = 36000
max_memory = 8000000000
[catalogs.market.columns]
parameters = "inputSchema"
agent = "agent"
[[indexes]]
name = "full"
encoder = "{encoder}"
"""
RUNS = ("full", "nothing", "change")
FILE_TOOLS = 100_000
CHANGE = 0.01
QUERIES = 100
K = 10
NEAR = 1e-4
"""Cosines that differ by less are equal: search rounds them, and texts may be equal."""
MODULE = "benchmarks.performance.scale"
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
    campaign recipe playlist patient prescription translation forecast exchange rate
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


class Meter:
    """Seconds, processor seconds and the highest resident memory of each step."""

    def __init__(self) -> None:
        self.steps: dict[str, dict[str, float]] = {}
        self.listing_mb = 0.0
        self._begun = self._now()

    def step(self, event: str, _: Sequence[Any]) -> None:
        """Note what a step took at its end, for `StepEvents`."""
        when, name = event.split()
        if when == "end":
            self.add(name)

    def add(self, name: str) -> None:
        """Note what was done since the last call."""
        now, peak = self._now(), self.peak()
        row = self.steps.setdefault(name, {"seconds": 0.0, "cpu": 0.0, "peak_mb": 0.0})
        row["seconds"] += now[0] - self._begun[0]
        row["cpu"] += now[1] - self._begun[1]
        row["peak_mb"] = max(row["peak_mb"], peak)
        self._begun = now
        print(f"{name}: {row}", file=sys.stderr, flush=True)

    def _now(self) -> tuple[float, float]:
        """The clock, and the processor seconds of this process and of those that it started."""
        usages = [resource.getrusage(who) for who in (-1, 0)]
        cpu = sum(usage.ru_utime + usage.ru_stime for usage in usages)
        self.listing_mb = max(self.listing_mb, usages[0].ru_maxrss * 1024 / 1e6)
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError, IndexError):  # of one that has just ended
                fields = (process / "stat").read_text().rpartition(")")[2].split()
                if int(fields[1]) == os.getpid():
                    cpu += sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
                    status = (process / "status").read_text().split("VmHWM:")
                    self.listing_mb = max(self.listing_mb, int(status[1].split()[0]) * 1024 / 1e6)
        return time.perf_counter(), cpu

    @staticmethod
    def peak() -> float:
        """Since the last call, in MB; Linux only."""
        lines = Path("/proc/self/status").read_text("utf-8").splitlines()
        peak = next(line.split()[1] for line in lines if line.startswith("VmHWM"))
        Path("/proc/self/clear_refs").write_text("5")
        return int(peak) * 1024 / 1e6


def write_project(folder: Path, tools: dict[int, int], encoder: str) -> None:
    """The catalog and the configuration; `tools` is seed -> edition."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pegboard.toml").write_text(PROJECT.format(encoder=encoder))
    seeds = sorted(tools)
    for start in range(0, len(seeds), FILE_TOOLS):
        with (folder / f"tools-{start // FILE_TOOLS:04}.jsonl").open("w") as file:
            for seed in seeds[start : start + FILE_TOOLS]:
                agent = f"server-{seed // AGENT_TOOLS}"
                file.write(json.dumps(make_tool(seed, tools[seed]) | {"agent": agent}) + "\n")


def build(folder: Path) -> list[dict[str, Any]]:
    """Build the board in this process; a row for each step, and one for all."""
    meter = Meter()
    from flows.reindex import reindex
    from flows.runner import DirectRunner
    from tasks.settings.configuration import load_configuration
    from tests.step_events import StepEvents

    configuration = load_configuration(folder / "pegboard.toml")
    meter.add("imports")
    reindex(configuration, runner=StepEvents(DirectRunner(), meter.step))
    meter.add("the rest")
    rows = [{"step": name, **figures} for name, figures in meter.steps.items()]
    whole: dict[str, Any] = {"step": "all"}
    whole |= {name: sum(row[name] for row in rows) for name in ("seconds", "cpu")}
    whole["peak_mb"] = max(row["peak_mb"] for row in rows)
    whole["listing_mb"] = meter.listing_mb
    return [{"listing_mb": 0.0, **row} for row in [*rows, whole]]


def read(folder: Path) -> list[dict[str, Any]]:
    """Search the board in this process, and plain lancedb; one row."""
    import pegboard

    uri = str(folder / "board")
    row: dict[str, Any] = {"tables_mb": _size(folder / "board" / "tables")}
    row["lake_mb"] = _size(folder / "board" / "lake")
    Meter.peak()
    began = time.perf_counter()
    board: Any = pegboard.open(uri, in_memory_rows=0, refresh=3600)
    row["open_s"] = time.perf_counter() - began
    row["first_find_s"] = seconds_of(lambda: board.find("archive the regional budget"))
    row["second_find_s"] = seconds_of(lambda: board.find("cancel a shared flight"))
    row["find_mb"] = Meter.peak()
    return [row | _searched(folder, uri, board)]


def _searched(folder: Path, uri: str, board: Any) -> dict[str, Any]:
    import numpy as np

    from pegboard.search.loaded import LoadedRelease
    from pegboard.store.releases import ReleaseStore
    from tasks.report.twins import ToolVectors
    from tasks.settings.configuration import load_configuration
    from tasks.settings.encoders import encoder_for

    tools = ToolVectors.of(LoadedRelease(ReleaseStore(uri), board.release, 0))
    ids, matrix = tools.ids, tools.matrix
    places = {tool: place for place, tool in enumerate(ids)}
    encoder = encoder_for(load_configuration(folder / "pegboard.toml").index("full"))
    own = requests(0)
    texts = [*_descriptions(folder), *(next(own) for _ in range(QUERIES))]
    vectors = encoder.encode(texts)
    plain, row = _plain_lancedb(folder, ids, matrix, board.release.tables["emb_full"].search)
    near: dict[str, list[float]] = {"pegboard": [], "lancedb": []}
    seconds: dict[str, list[float]] = {"pegboard": [], "lancedb": []}
    for text, vector in zip(texts, vectors, strict=True):
        cosines = matrix @ vector
        least = np.partition(cosines, -K)[-K] - NEAR
        for name in near:
            began = time.perf_counter()
            if name == "pegboard":
                found = [hit.tool.id for hit in board.search(text, K, mode="vector")]
            else:
                found = [hit["id"] for hit in plain(vector)]
            seconds[name].append(time.perf_counter() - began)
            near[name].append(sum(cosines[places[tool]] >= least for tool in found) / K)
    for name, values in seconds.items():
        row[f"{name}_p50_ms"] = 1000 * statistics.median(values)
        row[f"{name}_p99_ms"] = 1000 * statistics.quantiles(values, n=100)[98]
        row[f"{name}_recall"] = statistics.mean(near[name])
    return row


def _plain_lancedb(
    folder: Path, ids: Sequence[str], matrix: Any, search: Any
) -> tuple[Any, dict[str, Any]]:
    """A search of plain lancedb, with an index of the same kind, and what its table cost."""
    import lancedb
    import pyarrow as pa
    from lancedb.index import IvfFlat

    place = folder / "plain"
    shutil.rmtree(place, ignore_errors=True)
    began, processor = time.perf_counter(), time.process_time()
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(matrix.ravel()), matrix.shape[1])
    table = lancedb.connect(place).create_table("plain", pa.table({"id": ids, "vector": vectors}))
    search = search or {}
    if search:
        size = {"num_partitions": search["partitions"], "max_iterations": 20, "sample_rate": 64}
        table.create_index("vector", config=IvfFlat(distance_type="cosine", **size))
    figures = {
        "lancedb_ingest_s": time.perf_counter() - began,
        "lancedb_ingest_cpu": time.process_time() - processor,
        "lancedb_mb": _size(place),
    }

    def nearest(vector: Any) -> list[dict[str, Any]]:
        query: Any = (
            table.search(vector).distance_type("cosine").select(["id", "_distance"]).limit(K)
        )
        return (query.nprobes(search["nprobes"]) if search else query).to_list()

    return nearest, figures


def _descriptions(folder: Path) -> list[str]:
    """Those of tools that stand far apart."""
    files = sorted(folder.glob("tools-*.jsonl"))
    lines = files[0].read_text().splitlines()
    return [json.loads(lines[at * 7919 % len(lines)])["description"] for at in range(QUERIES)]


def _size(folder: Path) -> float:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--tools", nargs="+", type=int, default=[10_000, 100_000])
    parser.add_argument("--encoder", default="hashing/256")
    parser.add_argument("--folder", type=Path, help="keep the projects here")
    parser.add_argument("--part", choices=("build", "read"), help="in this process, for one size")
    options = parser.parse_args()
    if options.part:
        print(json.dumps((build if options.part == "build" else read)(options.folder)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        for tools in options.tools:
            folder = (options.folder or Path(temporary)) / str(tools)
            _measure(folder, tools, options.encoder, as_json=options.json)


def _measure(folder: Path, tools: int, encoder: str, *, as_json: bool) -> None:
    rows: list[dict[str, Any]] = []
    catalog = dict.fromkeys(range(tools), 0)
    for name in RUNS:
        catalog = changed(catalog, CHANGE) if name == "change" else catalog
        if name != "nothing":
            write_project(folder, catalog, encoder)
        rows += [{"tools": tools, "run": name, **row} for row in _part("build", folder)]
    print_rows("build", rows, as_json=as_json)
    print_rows("read", [{"tools": tools, **row} for row in _part("read", folder)], as_json=as_json)


def _part(part: str, folder: Path) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", MODULE, "--part", part, "--folder", str(folder)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    main()
