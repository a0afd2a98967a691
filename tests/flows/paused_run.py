"""A flow run that pauses at an event of a step until a file allows it to go on.

paused_run.py CONFIG EVENT, such as `begin publish_release`; in the folder of the configuration the
file `reached` says that the run pauses, and `go` lets it go on.
"""

import sys
import time
from pathlib import Path

import flows.prefect.flows as adapter
from flows.build import build
from tests.step_events import StepEvents


def main(config, event):
    folder = Path(config).parent
    runner_of_prefect = adapter.PrefectRunner

    def pause(step, _):
        if step == event:
            (folder / "reached").touch()
            while not (folder / "go").exists():
                time.sleep(0.1)

    adapter.PrefectRunner = lambda board: StepEvents(runner_of_prefect(board), pause)
    print(build(config, prefect=True)["outcome"])


if __name__ == "__main__":
    main(*sys.argv[1:])
