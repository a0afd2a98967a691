"""Read hostile boards as services do, and say what crashed, what was called and what it took.

    python -m tests.fuzz.boards [--variants N] [--seed S]

Each is the board of tests/contract with another release, whose checksums are right. A violation is
an error that is no PegboardError, a score that is no number, a connection to anywhere, or a running
reader that no longer answers. Everything follows from the seed."""

import argparse
import io
import json
import math
import shutil
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import lance
import lancedb
import pyarrow as pa

import pegboard
from pegboard.cli.releases import register
from pegboard.errors import PegboardError
from pegboard.store.contract import CHECKSUM, key_column, row_checksums, table_checksum
from pegboard.store.diff import diff_releases
from pegboard.store.releases import Release, ReleaseStore, record_row
from pegboard.store.verify import verify_release
from tests.fuzz.hostile import NUMBERS, encode, hostile, mutated, plain
from tests.fuzz.outcome import Outcome, main

BASE = Path(__file__).parents[1] / "contract" / "board"
ENCODERS = (
    "huggingface/http://127.0.0.1:9/x",
    "openai/text-embedding-3-small",
    "ollama/e5",
    "github_copilot/x",
    "hashing/999999999",
    "local/../../x",
    "fastembed/x",
    "http://127.0.0.1:9",
    "/",
)
GATE = {
    "passed": False,
    "at": "2026-01-01",
    "queries": 3,
    "rules": [{"rule": "Recall@5 >= 0.9", "passed": False, "reason": "it is 0.5"}],
    "canaries": {"count": 2, "missed": 1},
    "chosen": {
        **{"index": "full", "strategy": "direct", "measure": "Recall@5"},
        **{"value": 0.5, "low": 0.4, "high": 0.6, "threshold": None},
    },
    "live": None,
    "details": "gates/x.json",
}
REQUESTS = ("convert money and open an issue", "天気予報")


def run(seed: int, variants: int, folder: Path) -> Outcome:
    """Read that many hostile boards, each in a copy below an empty folder."""
    outcome = Outcome()

    def refuse(*address: Any) -> None:
        outcome.violations.append(f"connection: {address}")
        raise OSError("no connections here")

    with (
        mock.patch.object(socket.socket, "connect", refuse),
        mock.patch.object(socket, "getaddrinfo", refuse),
    ):
        for number in range(variants):
            label = f"{seed}/{number}"
            make = VARIANTS[number % len(VARIANTS)]
            place = folder / "own"
            shutil.copytree(BASE, place)
            _try(f"{label}/{make.__name__}", str(place), Random(label), make, outcome)
            shutil.rmtree(place)
            if (number + 1) % 100 == 0:
                print(f"{number + 1} of {variants}", *outcome.violations, file=sys.stderr)
    # Of this process alone: `getrusage` counts what its parent held when it was started, too.
    status = Path("/proc/self/status").read_text("utf-8")
    outcome.peak_mb = int(status.partition("VmHWM:")[2].split()[0]) // 1024
    return outcome


Row = dict[str, Any]
Variant = Callable[[Random, Row, "Tables"], None]


class Tables:
    """The tables of a board that a variant writes."""

    def __init__(self, uri: str) -> None:
        self.uri = f"{uri}/tables"
        self.database = lancedb.connect(self.uri)

    def rewrite(self, row: Row, name: str, change: Callable[[pa.Table], pa.Table]) -> None:
        """Replace a table of the release in `row` with a changed one, pinned with its checksums."""
        pin = json.loads(row["tables"])[name]
        table = self.database.open_table(pin["table"])
        table.checkout(pin["version"])
        rows = change(table.to_arrow())
        key = key_column(name)
        names = rows.column_names
        if CHECKSUM in names:
            rows = rows.set_column(names.index(CHECKSUM), CHECKSUM, pa.array(row_checksums(rows)))
        if {key, "digest", CHECKSUM} <= set(names):
            columns = (rows.column(column).to_pylist() for column in (key, "digest", CHECKSUM))
            keys, digests, checksums = columns
            pin["digest"] = table_checksum(zip(map(str, keys), map(str, digests), strict=True))
            pin["checksum"] = table_checksum(zip(map(str, keys), checksums, strict=True))
        pin |= {"table": f"{pin['table']}_x", "version": 1, "rows": rows.num_rows, "columns": None}
        lance.write_dataset(rows, f"{self.uri}/{pin['table']}.lance", mode="overwrite")
        row["tables"] = json.dumps({**json.loads(row["tables"]), name: pin})


def manifest(rng: Random, row: Row, tables: Tables) -> None:
    """Parts of the manifest are replaced, removed, added or repeated."""
    values = json.loads(row["manifest"])
    gate = {"gate": GATE, "suspicious": {"a/b/c": [{"flag": "near-copy", "of": "a/b/d"}]}}
    row["manifest"] = _text(mutated(rng, values if rng.random() < 0.5 else gate | values))


def one_index(rng: Random, row: Row, tables: Tables) -> None:
    """The default index has hostile settings or weights."""
    values = json.loads(row["manifest"])
    index = values["indexes"]["full"]
    ranker = index["ranker"]
    name = rng.choice(("slope", "bias", "weights", "thresholds"))
    if rng.random() < 0.3:
        values["indexes"]["full"] = mutated(rng, index)
    elif isinstance(ranker[name], dict):
        ranker[name][rng.choice(list(ranker[name]))] = rng.choice(NUMBERS)(rng)
    else:
        ranker[name] = rng.choice(NUMBERS)(rng)
    row["manifest"] = _text(values)


def encoder(rng: Random, row: Row, tables: Tables) -> None:
    """The encoders are those that a reader must not call."""
    values = json.loads(row["manifest"])
    for index in values["indexes"].values():
        index["encoder"] = rng.choice(ENCODERS)
        index["options"] = {"api_base": "http://127.0.0.1:9", "api_key_env": "HOME"}
    row["manifest"] = _text(values)


def strategy(rng: Random, row: Row, tables: Tables) -> None:
    """The release has a strategy and prompts of its own."""
    own = {"name": "x", "transforms": ["clauses"], "refine": [{"part": "dependencies"}], "depth": 9}
    values = json.loads(row["manifest"])
    values["strategy"] = mutated(rng, own)
    values["prompts"] = {"grade": rng.choice(("{{ x.__class__ }}", "---\n[", "")), "x": "y"}
    row["manifest"] = _text(values)


def pins(rng: Random, row: Row, tables: Tables) -> None:
    """Parts of the pins are replaced, removed, added or repeated."""
    row["tables"] = _text(mutated(rng, json.loads(row["tables"])))


def record(rng: Random, row: Row, tables: Tables) -> None:
    """A field of the release's row is another text or number."""
    name = rng.choice(("digest", "contract", "tables", "manifest"))
    row[name] = rng.choice((0, 1, 3, 2**31 - 1)) if name == "contract" else _plain_text(rng)
    if rng.random() < 0.5:
        row["contract"], row["manifest"] = 3, "{}"


def cells(rng: Random, row: Row, tables: Tables) -> None:
    """Some texts of a table are hostile, JSON among them."""
    name = rng.choice(("tools", "tools", "agents", "edges", "emb_full", "agents_full"))

    def change(rows: pa.Table) -> pa.Table:
        for _ in range(rng.choice((1, 3))):
            field = rng.choice([item for item in rows.schema if item.type == pa.string()])
            values = rows.column(field.name).to_pylist()
            place = rng.randrange(len(values))
            try:
                written: Any = json.loads(values[place])
            except (TypeError, ValueError):
                written = {}
            changed = mutated(rng, written) if isinstance(written, dict) else hostile(rng)
            values[place] = _text(changed) if rng.random() < 0.7 else _plain_text(rng)
            place = rows.column_names.index(field.name)
            rows = rows.set_column(place, field, pa.array(values, pa.string()))
        return rows

    tables.rewrite(row, name, change)


def columns(rng: Random, row: Row, tables: Tables) -> None:
    """A column of a table is missing, of another type, empty, or not finite."""
    name = rng.choice(("tools", "agents", "edges", "emb_full", "agents_full"))

    def change(rows: pa.Table) -> pa.Table:
        place = rng.randrange(rows.num_columns)
        kind = rows.schema.field(place)
        column = rows.column(place)
        if pa.types.is_fixed_size_list(kind.type) and rng.random() < 0.8:
            value = rng.choice((math.nan, math.inf, 1e38, 0.0))
            vectors = [[value] * kind.type.list_size] * rows.num_rows
            return rows.set_column(place, kind, pa.array(vectors, kind.type))
        others: list[Any] = [
            pa.array([7] * rows.num_rows),
            pa.array([None] * rows.num_rows, kind.type),
            pa.array([["a", None]] * rows.num_rows),
            column.slice(0, 1).combine_chunks().take(pa.array([0] * rows.num_rows)),
        ]
        values = rng.choice((None, *others))
        if values is None:
            return rows.remove_column(place)
        return rows.set_column(place, pa.field(kind.name, values.type), values)

    tables.rewrite(row, name, change)


def rows_gone(rng: Random, row: Row, tables: Tables) -> None:
    """Rows of a table are missing or repeated, so that others name what is not there."""
    name = rng.choice(("tools", "agents", "edges", "emb_full", "agents_full"))
    places = [rng.randrange(5) for _ in range(rng.choice((0, 1, 4)))]
    tables.rewrite(row, name, lambda rows: rows.take(pa.array(places, pa.int64())))


VARIANTS: Sequence[Variant] = (
    manifest,
    one_index,
    encoder,
    strategy,
    pins,
    record,
    cells,
    columns,
    rows_gone,
)


def _try(label: str, uri: str, rng: Random, make: Variant, outcome: Outcome) -> None:
    store = ReleaseStore(uri)
    tables = Tables(uri)
    live = store.get(store.channel().release)  # pyright: ignore[reportOptionalMemberAccess]
    memory = rng.choice((50_000, 50_000, 0))
    running = pegboard.open(uri, refresh=0)
    running.find(REQUESTS[0])
    row = row_of(live)
    make(rng, row, tables)
    row["release"] = f"f{rng.randrange(16**10):x}"
    records = tables.database.open_table("releases")
    records.add(record_row("releases", **row))
    _promote(tables, row["release"])

    for name, read in _uses(uri, live, row["release"], memory):
        with outcome.checked(f"{label}/{name}"):
            try:
                read()
            except PegboardError as error:
                outcome.counts.update(("refused", f"{name}: {type(error).__name__}"))
    with outcome.checked(f"{label}/running"):
        _check_numbers(running.find(REQUESTS[0], explain=True))


def _uses(uri: str, live: Release, release: str, memory: int) -> Iterator[tuple[str, Any]]:
    """The uses of a board by a reader that opens it now, each with its name."""
    store = ReleaseStore(uri)
    reader = cache(lambda: pegboard.open(uri, in_memory_rows=memory))

    def find(**options: Any) -> None:
        for request in REQUESTS:
            result = reader().find(request, explain=True, **options)
            _check_numbers(result)
            json.dumps(result.to_dict())
            pegboard.as_openai_tools(result)
            pegboard.as_anthropic_tools(result, "written")

    yield "find", find
    yield "plan", lambda: find(strategy="rag-tool-fusion")
    yield "text", lambda: reader().search(REQUESTS[0], mode="text")
    yield "agents", lambda: _check_numbers(reader().search_agents(REQUESTS[0]))
    yield "tools", lambda: [tool.digest for tool in reader().list_tools()]
    yield "names", lambda: (reader().tool_names(), reader().thresholds(), repr(reader()))
    yield "restricted", lambda: reader().restricted(["kit/git/create_issue"]).find(REQUESTS[0])
    yield "graph", lambda: reader().graph.edges
    yield "list", lambda: (store.all(), store.channels(), store.previous("live"))
    yield "verify", lambda: verify_release(store, store.get(release))
    for words in (("list",), ("show", release), ("verify", release)):
        yield "commands", partial(_command, "releases", *words, "--board", uri)
    yield "diff", lambda: diff_releases(store, live, store.get(release))


def _command(*words: str) -> None:
    options = _parser().parse_args(words)
    with redirect_stdout(io.StringIO()):
        options.run(options)


@cache
def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    register(parser.add_subparsers())
    return parser


def row_of(release: Release) -> Row:
    """Return the values of a release's row."""
    record = release.to_dict()
    return {
        "release": release.id,
        "digest": release.digest,
        "contract": release.contract,
        "created_at": release.created_at,
        "tables": json.dumps(record["tables"]),
        "manifest": json.dumps(record["manifest"]),
    }


def _promote(tables: Tables, release: str) -> None:
    """Move the channel as a writer does that checks nothing."""
    channels = tables.database.open_table("channels")
    (row,) = channels.search().where("channel = 'live'").to_list()
    row = {**row, "release": release, "generation": row["generation"] + 1}
    row = {name: row[name] for name in row if name not in (CHECKSUM, "_distance", "_score")}
    channels.delete("channel = 'live'")
    channels.add(record_row("channels", **row))


def _check_numbers(result: Any) -> None:
    for hit in result:
        numbers = (hit.score, getattr(hit, "probability", None) or 0.0)
        if not all(map(math.isfinite, numbers)):
            raise ArithmeticError(f"{numbers} of {hit!r:.100}")


def _text(value: Any) -> str:
    return encode(value).decode("utf-8", "replace")


def _plain_text(rng: Random) -> str:
    value = plain(hostile(rng))
    text = value if isinstance(value, str) else json.dumps(value)
    return text.encode("utf-8", "replace").decode("utf-8")


if __name__ == "__main__":
    sys.exit(main(run, "variants", __doc__))
