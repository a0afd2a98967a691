"""`make bench`: what costs time, each as a ratio to the plain way of doing it, measured in one run
on this machine.

start     a warm small build by `pegboard build`, which runs directly, against `pegboard build
--prefect`, for which Prefect starts a server
encode    500 short texts by the embedded encoder, against one call for each text
"""

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def seconds(work: Callable[[], Any], repeats: int) -> float:
    """The median time of some calls, after one that warms up."""
    work()
    return statistics.median(_time(work) for _ in range(repeats))


def _time(work: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def bench_start(folder: Path) -> dict[str, Any]:
    """A warm build in which nothing changed, so that the start is nearly all there is."""
    tools = [
        {"name": f"tool_{number}", "description": f"Does thing {number}."} for number in range(20)
    ]
    (folder / "tools.json").write_text(json.dumps({"tools": tools}))
    config = folder / "pegboard.toml"
    config.write_text(
        '[board]\nuri = "./board"\n[catalogs.live]\ntype = "mcp-dump"\npath = "tools.json"\n'
    )
    others = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    environment = others | {"HOME": str(folder), "PREFECT_HOME": str(folder / "prefect")}

    def build(option: str) -> None:
        command = [sys.executable, "-m", "pegboard", "build", "-c", config, "--quiet", option]
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)

    build("--no-prefect")  # makes the release
    build("--prefect")  # makes Prefect's database
    # In turn: the machine's other load hits both.
    rounds = [
        (_time(lambda: build("--no-prefect")), _time(lambda: build("--prefect"))) for _ in range(5)
    ]
    mine, plain = (statistics.median(times) for times in zip(*rounds, strict=True))
    return {"what": "start", "pegboard": mine, "plain": plain, "unit": "s", "ratio": mine / plain}


def bench_encode() -> dict[str, Any]:
    """Batches against single texts."""
    from pegboard.encoders import load_encoder

    encoder = load_encoder("local/all-MiniLM-L6-v2")
    texts = [
        f"Look up order {number} and say whether it is ready to be fetched."
        for number in range(500)
    ]
    mine = seconds(lambda: encoder.encode(texts), 3)
    plain = seconds(lambda: [encoder.encode([text]) for text in texts], 1)
    return {
        "what": "encode 500",
        "pegboard": mine,
        "plain": plain,
        "unit": "s",
        "ratio": mine / plain,
    }


def main() -> None:
    """Print one line for each measurement, as it is made."""
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    print(f"{'WHAT':<16}{'PEGBOARD':>12}{'PLAIN':>12}{'RATIO':>8}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for work in (
            bench_encode,
            lambda: bench_start(folder),
        ):
            row = work()
            mine, plain = (f"{row[key]:.2f} {row['unit']}" for key in ("pegboard", "plain"))
            print(f"{row['what']:<16}{mine:>12}{plain:>12}{row['ratio']:>8.2f}", flush=True)


if __name__ == "__main__":
    main()
