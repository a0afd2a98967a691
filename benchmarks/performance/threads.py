"""`python -m benchmarks threads [--rows 1200] [--json]`: requests by many at once.

A board of synthetic tools (see `boards`), searched in memory by threads that share it: by a ready
vector, and by `find` for requests in words, all different, which the embedded encoder encodes.
Then by as many asyncio tasks as a busy service has, through `AsyncBoard`. `lancedb` is a plain
search of the same vectors by vector, with an encoder of its own for requests in words; the two take
turns. `to one` is the throughput against one thread; on a machine without spare cores 1 is the best
there is.
"""

import asyncio
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import pegboard
from benchmarks.performance.boards import DIMENSIONS, synthetic_board
from benchmarks.performance.shared import parser_of, print_rows, requests
from pegboard.encoders import load_encoder
from tasks.settings.configuration import DEFAULT_ENCODER

TASKS = 50
K = 5


def vectors(number: int) -> Iterator[Any]:
    """Unit vectors, all different."""
    dice = np.random.default_rng(number)
    while True:
        vector = dice.normal(size=DIMENSIONS).astype(np.float32)
        yield vector / np.linalg.norm(vector)


def plain_search(uri: str, encoder: Any) -> Callable[[Any], object]:
    """A search of the board's vectors by LanceDB alone, for a vector or a request in words."""
    import lancedb

    table = lancedb.connect(f"{uri}/tables").open_table("emb_full")

    def search(query: Any) -> object:
        vector = encoder.encode([query])[0] if isinstance(query, str) else query
        return (
            table.search(vector, vector_column_name="vector")
            .distance_type("cosine")
            .select(["tool", "_distance"])
            .limit(K)
            .to_list()
        )

    return search


def by_threads(
    search: Callable[[Any], object], queries: Callable[[int], Iterator[Any]], threads: int,
    seconds: float,
) -> list[float]:  # fmt: skip
    """The seconds that each search took, of as many threads as search for so long."""
    taken: list[list[float]] = [[] for _ in range(threads)]
    start = threading.Barrier(threads)

    def work(number: int) -> None:
        own = queries(number)
        search(next(own))
        start.wait()
        end = time.perf_counter() + seconds
        while (began := time.perf_counter()) < end:
            search(next(own))
            taken[number].append(time.perf_counter() - began)

    pool = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for thread in pool:
        thread.start()
    for thread in pool:
        thread.join()
    return [second for own in taken for second in own]


async def by_tasks(
    find: Callable[[str], Awaitable[object]], tasks: int, seconds: float
) -> list[float]:
    """The seconds that each request took, of as many asyncio tasks as ask for so long."""
    taken = list[float]()

    async def work(number: int) -> None:
        own = requests(number)
        end = time.perf_counter() + seconds
        while (began := time.perf_counter()) < end:
            await find(next(own))
            taken.append(time.perf_counter() - began)

    await asyncio.gather(*(work(number) for number in range(tasks)))
    return taken


def measure(
    folder: Path, rows: int, seconds: float, threads: tuple[int, ...], rounds: int
) -> list[dict[str, Any]]:
    """One row for each system, number of threads or tasks, and kind of request."""
    encoder = load_encoder(DEFAULT_ENCODER)
    uri = synthetic_board(folder, rows, (encoder.name, encoder.fingerprint))
    board = pegboard.open(uri, refresh=3600)
    wrapped, plain = pegboard.AsyncBoard(board), plain_search(uri, encoder)
    systems: dict[str, tuple[Callable[[Any], object], ...]] = {
        "pegboard": (lambda query: board.search(query, K), lambda text: board.find(text, K)),
        "lancedb": (plain, plain),
    }
    taken: dict[tuple[str, str, str], list[float]] = {}
    for _ in range(rounds):
        for number in threads:
            for place, (way, queries) in enumerate({"vector": vectors, "text": requests}.items()):
                for system, search in systems.items():
                    own = taken.setdefault((way, f"{number} threads", system), [])
                    own += by_threads(search[place], queries, number, seconds)
        asks: dict[str, Callable[[str], Awaitable[object]]] = {
            "pegboard": lambda text: wrapped.find(text, K),
            "lancedb": lambda text: asyncio.to_thread(plain, text),
        }
        for system, ask in asks.items():
            own = taken.setdefault(("text", f"{TASKS} asyncio tasks", system), [])
            own += asyncio.run(by_tasks(ask, TASKS, seconds))
    first = f"{threads[0]} threads"
    ones = {(way, system): own for (way, who, system), own in taken.items() if who == first}
    return [
        _row(way, who, system, own, seconds * rounds, ones[way, system], taken)
        for (way, who, system), own in taken.items()
    ]


def _row(
    way: str,
    who: str,
    system: str,
    own: list[float],
    seconds: float,
    one: list[float],
    taken: dict[tuple[str, str, str], list[float]],
) -> dict[str, Any]:
    p50, p99 = (float(value) * 1000 for value in np.percentile(own, [50, 99]))
    row = {"request": way, "by": who, "system": system, "per second": len(own) / seconds}
    row |= {"to one": len(own) / len(one), "to lancedb": len(own) / len(taken[way, who, "lancedb"])}
    return row | {"p50 ms": p50, "p99 ms": p99}


def main() -> None:
    """Print one line for each system, number of threads or tasks, and kind of request."""
    parser = parser_of(__doc__)
    parser.add_argument("--rows", type=int, default=1_200)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each turn")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2, 8, 32])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        threads = tuple(options.threads)
        measured = measure(Path(folder), options.rows, options.seconds, threads, options.rounds)
    print_rows("threads", measured, as_json=options.json)
