"""`python -m benchmarks start [--rounds 5] [--json]`: what starts and small jobs cost.

    build      a warm small `pegboard build`, which runs directly, against `pegboard build
               --prefect`, for which Prefect starts a server
    encode     500 short texts by the embedded encoder, against one call for each text
    open       a process that opens a board and answers one vector query with the rows of five
               tools, by `pegboard` against the same program written with `lancedb`
    rollback   `pegboard rollback` as a process, against the same compare-and-set with `lancedb`
    import     `import pegboard` against `import lancedb`, as processes

The two take turns, so that other load on the machine affects both alike; medians, and their ratio.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.performance.boards import DIMENSIONS, synthetic_board
from benchmarks.performance.shared import parser_of, print_rows, seconds_of

TEXTS = 500
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
query = index.search(np.ones({DIMENSIONS}, np.float32), vector_column_name="vector")
query = query.distance_type("cosine").limit(5)
ids = ", ".join("'" + row["tool"] + "'" for row in query.select(["tool", "_distance"]).to_list())
tools = database.open_table(pins["tools"]["table"], version=pins["tools"]["version"])
assert len(tools.search().where(f"id IN ({{ids}})").to_list()) == 5
"""
ROLLBACK_PLAIN = """
import sys
import lancedb
channels = lancedb.connect(sys.argv[1] + "/tables").open_table("channels")
row = channels.search().where("channel = 'live'").to_arrow()
now = row.to_pylist()[0]
release, *history = now["history"]
moved = {**now, "release": release, "generation": now["generation"] + 1, "history": history}
where = f"target.generation = {now['generation']}"
merge = channels.merge_insert("channel").when_matched_update_all(where=where)
assert merge.execute(row.from_pylist([moved], row.schema)).num_updated_rows == 1
"""

Work = Callable[[], Any]


def compare(what: str, ours: Work, plain: Work, rounds: int) -> dict[str, Any]:
    """The medians of both in turns, after one round that warms up; of that one if `rounds` is 0."""
    times = [(seconds_of(ours), seconds_of(plain)) for _ in range(rounds + 1)]
    counted = times[1:] or times
    mine, theirs = (statistics.median(taken) for taken in zip(*counted, strict=True))
    return {"what": what, "pegboard s": mine, "plain s": theirs, "ratio": mine / theirs}


def process(command: Sequence[Any], environment: dict[str, str] | None = None) -> Work:
    """A call that runs a process to its end."""
    words = [str(word) for word in command]
    return lambda: subprocess.run(
        words, env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def build_commands(folder: Path) -> tuple[Work, Work]:
    """A build in which nothing changed, directly and as a Prefect flow."""
    tools = [
        {"name": f"tool_{number}", "description": f"Does thing {number}."} for number in range(20)
    ]
    (folder / "tools.json").write_text(json.dumps({"tools": tools}))
    config = folder / "pegboard.toml"
    config.write_text(
        '[board]\nuri = "./board"\n[catalogs.live]\ntype = "mcp-dump"\npath = "tools.json"\n'
    )
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")
    }
    environment |= {"HOME": str(folder), "PREFECT_HOME": str(folder / "prefect")}
    command = [sys.executable, "-m", "pegboard", "build", "-c", config, "--quiet"]
    return (
        process([*command, "--no-prefect"], environment),
        process([*command, "--prefect"], environment),
    )


def rolled_board(folder: Path, rounds: int) -> str:
    """A board of 1,000 tools whose channel can be rolled back often enough."""
    from pegboard.store.releases import ReleaseStore

    folder.mkdir(exist_ok=True)
    uri = synthetic_board(folder, 1_000)
    store = ReleaseStore(uri)
    first = store.all()[0]
    for number in range(2 * rounds + 2):
        digest = f"{number:012x}".replace("0", "a") + "0" * 52
        store.add(replace(first, id=digest[:12], digest=digest))
        store.promote(digest[:12])
    return uri


def measure(folder: Path, rounds: int) -> list[dict[str, Any]]:
    """All comparisons."""
    from pegboard.encoders import load_encoder

    encoder = load_encoder("local/all-MiniLM-L6-v2")
    texts = [f"Look up order {number}, and is it ready to be fetched?" for number in range(TEXTS)]
    uri, python = rolled_board(folder / "ours", rounds), [sys.executable, "-c"]
    other = rolled_board(folder / "plain", rounds)  # its channel's row loses its checksum
    rollback = [Path(sys.executable).with_name("pegboard"), "rollback", "--board", uri]
    works: dict[str, tuple[Work, Work]] = {
        "build": build_commands(folder),
        f"encode {TEXTS}": (
            lambda: encoder.encode(texts),
            lambda: [encoder.encode([text]) for text in texts],
        ),
        "open": (process([*python, OPEN, uri]), process([*python, OPEN_PLAIN, uri])),
        "rollback": (process(rollback), process([*python, ROLLBACK_PLAIN, other])),
        "import": (
            process([*python, "import pegboard"]),
            process([*python, "import lancedb"]),
        ),
    }
    return [compare(what, ours, plain, rounds) for what, (ours, plain) in works.items()]


def main() -> None:
    """Print one line for each comparison."""
    parser = parser_of(__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print_rows("start", measure(Path(folder), options.rounds), as_json=options.json)
