"""`python -m benchmarks.performance.threads [--rows 3000] [--json]`: searches by many at once.

A board of synthetic tools (see `boards`), searched in memory by threads that share it: by a ready
vector, and by requests in words, all different, which the embedded encoder encodes. Then by as many
asyncio tasks as a busy service has, through `AsyncBoard`. `to one` is the throughput against one
thread; on a machine without spare cores 1 is the best there is.
"""

import asyncio
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

import pegboard
from benchmarks.performance.boards import DIMENSIONS, random_words, synthetic_board
from benchmarks.performance.shared import parser_of, print_rows
from pegboard.encoders import load_encoder
from tasks.settings.configuration import DEFAULT_ENCODER

K = 5
TASKS = 50


def vectors(number: int) -> Iterator[Any]:
    """Unit vectors, all different."""
    dice = np.random.default_rng(number)
    while True:
        vector = dice.normal(size=DIMENSIONS).astype(np.float32)
        yield vector / np.linalg.norm(vector)


def texts(number: int) -> Iterator[str]:
    """Requests, all different."""
    dice = np.random.default_rng(number)
    for step in count():
        yield f"find the {random_words(dice, 6)} of {number} {step}"


def by_threads(
    search: Callable[[Any], object], requests: Callable[[int], Iterator[Any]], threads: int,
    seconds: float,
) -> list[float]:  # fmt: skip
    """The seconds that each search took, of as many threads as search for so long."""
    taken: list[list[float]] = [[] for _ in range(threads)]
    start = threading.Barrier(threads)

    def work(number: int) -> None:
        own = requests(number)
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


async def by_tasks(board: Any, tasks: int, seconds: float) -> list[float]:
    """The seconds that each request took, of as many asyncio tasks as ask for so long."""
    wrapped, taken = pegboard.AsyncBoard(board), list[float]()

    async def work(number: int) -> None:
        own = texts(1_000 + number)
        end = time.perf_counter() + seconds
        while (began := time.perf_counter()) < end:
            await wrapped.search(next(own), K)
            taken.append(time.perf_counter() - began)

    await asyncio.gather(*(work(number) for number in range(tasks)))
    return taken


def measure(
    folder: Path, rows: int, seconds: float, threads: tuple[int, ...], encoder: Any = None
) -> list[dict[str, Any]]:
    """One row for each number of threads and kind of request."""
    encoder = encoder or load_encoder(DEFAULT_ENCODER)
    uri = synthetic_board(folder, rows, (encoder.name, encoder.fingerprint))
    board = pegboard.open(uri, encoder=encoder, refresh=3600)
    ways = {"vector": vectors, "text": texts}
    measured: list[dict[str, Any]] = []
    for way, requests in ways.items():
        one = 0.0
        for number in threads:
            taken = by_threads(lambda query: board.search(query, K), requests, number, seconds)
            one = one or len(taken) / seconds
            measured.append(_row(way, f"{number} threads", rows, taken, seconds, one))
    taken = asyncio.run(by_tasks(board, TASKS, seconds))
    measured.append(_row("text", f"{TASKS} asyncio tasks", rows, taken, seconds, one))
    return measured


def _row(
    way: str, who: str, rows: int, taken: list[float], seconds: float, one: float
) -> dict[str, Any]:
    p50, p99 = (float(value) * 1000 for value in np.percentile(taken, [50, 99]))
    rate = len(taken) / seconds
    row = {"request": way, "by": who, "tools": rows, "per second": rate, "to one": rate / one}
    return row | {"p50 ms": p50, "p99 ms": p99}


def main() -> None:
    """Print one line for each number of threads and kind of request."""
    parser = parser_of(__doc__)
    parser.add_argument("--rows", type=int, default=3_000)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2, 8, 32])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measured = measure(Path(folder), options.rows, options.seconds, tuple(options.threads))
    print_rows("threads", measured, as_json=options.json)


if __name__ == "__main__":
    main()
