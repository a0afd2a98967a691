"""What a start costs: `python -m benchmarks.performance.open [--rounds 7] [--json]`.

    open       a process that opens a board and answers one vector query with the rows of five
    tools, by `pegboard` against
               the same program written with `lancedb`
    rollback   `pegboard rollback` as a whole process, against the same compare-and-set written with
    `lancedb`
    import     `import pegboard` against `import lancedb`, as whole processes; and a Python that
    does nothing

The programs take turns, so that other load on the machine hits all alike; medians are given, and
the share of `lancedb`'s."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.performance.search import DIMENSIONS, machine, make_board

OPEN = f"""
import sys
import numpy as np
import pegboard
board = pegboard.open(sys.argv[1])
hits = board.search(np.ones({DIMENSIONS}, np.float32), 5)
assert len(hits) == 5
"""
OPEN_PLAIN = f"""
import json, sys
import lancedb
import numpy as np
database = lancedb.connect(sys.argv[1] + "/tables")
channel = database.open_table("channels").search().where("channel = 'live'").to_list()[0]
where = f"release = '{{channel['release']}}'"
pins = json.loads(database.open_table("releases").search().where(where).to_list()[0]["tables"])
index = database.open_table(pins["emb_full"]["table"], version=pins["emb_full"]["version"])
query = index.search(np.ones({DIMENSIONS}, np.float32)).distance_type("cosine").limit(5)
ids = ", ".join("'" + row["tool"] + "'" for row in query.select(["tool", "_distance"]).to_list())
tools = database.open_table(pins["tools"]["table"], version=pins["tools"]["version"])
assert len(tools.search().where(f"id IN ({{ids}})").to_list()) == 5
"""
ROLLBACK_PLAIN = """
import sys
import lancedb
database = lancedb.connect(sys.argv[1] + "/tables")
channels = database.open_table("channels")
row = channels.search().where("channel = 'live'").to_arrow()
now = row.to_pylist()[0]
moved = {**now, "release": now["history"][0], "generation": now["generation"] + 1, "history": now["history"][1:]}
where = f"target.generation = {now['generation']}"
merged = channels.merge_insert("channel").when_matched_update_all(where=where).execute(row.from_pylist([moved], row.schema))
assert merged.num_updated_rows == 1
"""


def seconds(command: list[Any]) -> float:
    """How long a process takes from its start to its end."""
    begin = time.perf_counter()
    subprocess.run(
        [str(part) for part in command], check=True, stdout=subprocess.DEVNULL, env=os.environ
    )
    return time.perf_counter() - begin


def prepare(folder: Path, rounds: int) -> str:
    """A board of 1,000 tools whose channel can be rolled back often enough."""
    from pegboard.store.releases import ReleaseStore

    uri = make_board(folder, 1_000)
    store = ReleaseStore(uri)
    first = store.all()[0]
    for number in range(4 * rounds + 4):
        digest = f"{number:012x}".replace("0", "a") + "0" * 52
        store.add(replace(first, id=digest[:12], digest=digest))
        store.promote(digest[:12])
    return uri


def measure(uri: str, rounds: int) -> list[dict[str, Any]]:
    """Medians of alternating rounds."""
    python = [sys.executable, "-c"]
    pegboard = Path(sys.executable).with_name("pegboard")
    pairs: dict[str, tuple[list[Any], list[Any]]] = {
        "open": ([*python, OPEN, uri], [*python, OPEN_PLAIN, uri]),
        "rollback": ([pegboard, "rollback", "--board", uri], [*python, ROLLBACK_PLAIN, uri]),
        "import": ([*python, "import pegboard"], [*python, "import lancedb"]),
    }
    measured: list[dict[str, Any]] = []
    for what, (ours, theirs) in pairs.items():
        seconds(ours), seconds(theirs)
        times = [(seconds(ours), seconds(theirs)) for _ in range(rounds)]
        mine, plain = (statistics.median(taken) for taken in zip(*times, strict=True))
        measured.append({"what": what, "pegboard": mine, "lancedb": plain, "ratio": mine / plain})
    bare = statistics.median(seconds([*python, "pass"]) for _ in range(rounds))
    return [*measured, {"what": "python alone", "pegboard": bare, "lancedb": bare, "ratio": 1.0}]


def main() -> None:
    """Print one line for each measurement, or all as one JSON object."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        measured = measure(prepare(Path(name), options.rounds), options.rounds)
    if options.json:
        print(
            json.dumps(
                {"machine": machine(), "rounds": options.rounds, "start": measured}, indent=2
            )
        )
        return
    print(
        f"{machine()}; medians of {options.rounds} "
        f"rounds\n{'WHAT':<16}{'PEGBOARD':>12}{'LANCEDB':>12}{'RATIO':>8}"
    )
    for one in measured:
        print(
            f"{one['what']:<16}{one['pegboard']:>10.2f} s{one['lancedb']:>10.2f} "
            f"s{one['ratio']:>8.2f}"
        )


if __name__ == "__main__":
    main()
