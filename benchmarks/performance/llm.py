"""How fast the enrichment asks: 1,000 calls with replies after a second, at a concurrency of 128.

    python -m benchmarks.performance.llm [MODEL]      hosted_vllm/NAME (the default) or openai/NAME

Prints calls per second and their share of 128, which is what a client without any cost would reach.
"""

import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

CALLS = 1_000
CONCURRENCY = 128
SERVER = Path(__file__).parents[2] / "tests" / "scripted_llm.py"


class Enrichment(Exception):
    """Ends the run after its enrichment, with its result and its seconds of CPU."""

    def __init__(self) -> None:
        self.result: Any = None
        self.seconds = 0.0

    def step(self, event: str, results: Sequence[Any]) -> None:
        """Measure the step and then end the run, for `StepEvents`."""
        if event == "begin enrich_tools":
            self.seconds = -time.process_time()
        if event == "end enrich_tools":
            self.seconds += time.process_time()
            (self.result,) = results
            raise self


def main() -> None:
    import gc

    from flows.reindex import reindex
    from flows.runner import DirectRunner
    from tasks.settings.configuration import load_configuration
    from tests.step_events import StepEvents

    gc.set_threshold(100_000, 50, 50)  # as `pegboard build` does
    model = sys.argv[1] if len(sys.argv) > 1 else "hosted_vllm/scripted"
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        server = subprocess.Popen(
            [sys.executable, str(SERVER), str(log), "--delay", "1"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert server.stdout is not None
        port = server.stdout.readline().strip()
        tools = [
            {"name": f"archive_paper_{n:04d}", "description": f"Archives paper {n}."}
            for n in range(CALLS)
        ]
        Path(folder, "tools.json").write_text(json.dumps({"office": {"tools": tools}}))
        Path(folder, "pegboard.toml").write_text(
            '[board]\nuri = "board"\n[catalogs.kit]\ntype = "mcp-dump"\npath = "tools.json"\n'
            f'[enrich]\nmodel = "{model}"\napi_base = "http://127.0.0.1:{port}/v1"\n'
            f'products = ["topics"]\nconcurrency = {CONCURRENCY}\n'
            '[[indexes]]\nencoder = "hashing/256"\n'
        )
        configuration = load_configuration(f"{folder}/pegboard.toml")
        enrichment = Enrichment()
        with contextlib.suppress(Enrichment):
            reindex(configuration, runner=StepEvents(DirectRunner(), enrichment.step))
        events = [json.loads(line) for line in log.read_text().splitlines()]
        server.communicate("")
    began = min(event["at"] for event in events if event["event"] == "began")
    seconds = max(event["at"] for event in events if event["event"] == "ended") - began
    print(
        f"{model}: {enrichment.result.actual['replies']} replies in {seconds:.1f} s, "
        f"{CALLS / seconds:.0f} calls/s, "
        f"{CALLS / seconds / CONCURRENCY:.0%} of {CONCURRENCY}; "
        f"{1000 * enrichment.seconds / CALLS:.1f} ms of CPU per call, all told"
    )


if __name__ == "__main__":
    main()
