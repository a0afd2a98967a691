"""Publishes states of the world to a board, each in a child that a test may kill: started as a process of its own.

    python tests/faults/publisher.py FOLDER [KEEP_JSON]

Every line on stdin is a JSON object {"n": 5, "gate": "/path or null"}; a child is forked for it and {"pid": ...} is printed, and when it
has ended {"ended": status, "said": its error}. The child appends what it does to FOLDER/events.jsonl, with the time. With a
gate it waits, after its plan was made, until a file of that name appears. Several children may be at work at once.
"""

import json
import os
import sys
import threading
import time
import warnings
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parent)]
warnings.simplefilter("ignore")

import world  # noqa: E402

import pegboard.encoders  # noqa: E402

# Nothing here is about what a text means, so a stand-in encodes: the real one would take most of the time.
pegboard.encoders.load_encoder = lambda *_, **__: world.HashingEncoder()

import lance  # noqa: E402, F401
import lancedb  # noqa: E402, F401
import polars  # noqa: E402, F401
from conftest import Workshop  # noqa: E402

from pegboard.errors import PegboardError  # noqa: E402
from tasks.configuration import load_configuration  # noqa: E402
from tasks.prune import prune_board  # noqa: E402
from tasks.publish import publish_release  # noqa: E402
from tasks.stage import stage_tables  # noqa: E402


def work(folder: Path, n: int, gate: str | None, keep: str) -> None:
    def say(what: str, **more: str) -> None:
        with (folder / "events.jsonl").open("a") as events:
            events.write(json.dumps({"n": n, "what": what, "at": time.time(), "pid": os.getpid(), **more}) + "\n")

    workshop = Workshop(folder / f"catalog-{n}")
    workshop.folder.mkdir(exist_ok=True)
    workshop.servers(world.servers(n))
    catalogs = '[catalogs.kit]\ntype = "mcp-dump"\npath = "servers.json"\n'
    text = f'[board]\nuri = "../board"\n{keep}\n{catalogs}{world.INDEXES}'
    configuration = load_configuration(workshop.write("pegboard.toml", text))
    workshop.uri = configuration.uri
    run = workshop.run(configuration, until="embed")
    assert run.plan is not None
    assert run.wanted is not None
    say("planned", release=run.wanted.release, live=run.plan.live or "")
    while gate and not Path(gate).exists():
        time.sleep(0.005)
    if run.wanted.release == run.plan.live:
        say("unchanged")
        return
    say("stage")
    pins = stage_tables(configuration.uri, run.wanted)
    say("publish")
    publish_release(configuration, run.plan, run.snapshots, run.wanted, pins)
    say("published", release=run.wanted.release)
    if configuration.board.keep is not None:
        prune_board(configuration.uri, configuration.board.keep)
        say("pruned")


def attend(child: int, errors: int) -> None:
    with os.fdopen(errors) as pipe:
        said = pipe.read()
    _, how = os.waitpid(child, 0)
    print(json.dumps({"pid": child, "ended": os.waitstatus_to_exitcode(how), "said": said}), flush=True)


def main() -> None:
    folder = Path(sys.argv[1])
    keep = sys.argv[2] if len(sys.argv) > 2 else ""
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        errors, said = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(0)
            os.close(errors)
            status = 1
            try:
                work(folder, asked["n"], asked.get("gate"), keep)
                status = 0
            except PegboardError as error:
                status = error.exit_code
                os.write(said, f"{type(error).__name__}: {error}".encode())
            except BaseException as error:
                os.write(said, f"{type(error).__name__}: {error}".encode())
                raise
            finally:
                os._exit(status)
        os.close(said)
        print(json.dumps({"pid": child}), flush=True)
        threading.Thread(target=attend, args=(child, errors)).start()


if __name__ == "__main__":
    main()
