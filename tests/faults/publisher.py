"""Publishes states of the world to a board, each in a child that a test may kill: started as a
process of its own.

    python tests/faults/publisher.py FOLDER [KEEP]

Every line on stdin is a JSON object {"n": 5, "holds": ["begin stage_tables"]}; a child is forked
for it and {"pid": ...} is printed, and when it has ended {"pid": ..., "status": ..., "error": ...}.
See events.py for what the child notes and where it waits. Several children may be at work at once;
all end with this process, and this process with its parent."""

import json
import os
import sys
import threading
import warnings
from collections.abc import Sequence
from pathlib import Path

warnings.simplefilter("ignore")

import lance  # noqa: E402, F401
import lancedb  # noqa: E402, F401
import polars  # noqa: E402, F401

from flows.reindex import reindex  # noqa: E402
from flows.runner import DirectRunner  # noqa: E402
from tasks.settings.configuration import load_configuration  # noqa: E402
from tests.children import follow_parent  # noqa: E402
from tests.faults import world  # noqa: E402
from tests.faults.events import Events  # noqa: E402
from tests.step_events import StepEvents  # noqa: E402


def work(folder: Path, n: int, holds: Sequence[str], keep: str) -> None:
    events = Events(folder, n, holds)
    configuration = load_configuration(world.write(folder, n, keep))
    outcome = reindex(configuration, runner=StepEvents(DirectRunner(), events.step))
    events.note("end run", **{key: outcome[key] for key in ("outcome", "release", "encoded")})


def attend(child: int, errors: int) -> None:
    with os.fdopen(errors) as pipe:
        error = pipe.read()
    _, how = os.waitpid(child, 0)
    status = os.waitstatus_to_exitcode(how)
    print(json.dumps({"pid": child, "status": status, "error": error}), flush=True)


def main() -> None:
    folder = Path(sys.argv[1])
    keep = sys.argv[2] if len(sys.argv) > 2 else ""
    parent = os.getpid()
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            follow_parent(parent)
            os.close(0)
            os.close(read)
            status = 1
            try:
                work(folder, order["n"], order["holds"], keep)
                status = 0
            except BaseException as error:
                status = getattr(error, "exit_code", 1)
                os.write(write, f"{type(error).__name__}: {error}".encode())
            finally:
                os._exit(status)
        os.close(write)
        print(json.dumps({"pid": child}), flush=True)
        threading.Thread(target=attend, args=(child, read)).start()


if __name__ == "__main__":
    main()
