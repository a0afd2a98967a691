"""Searches a board all the time and notes every answer: started as a process of its own.

    python tests/faults/reader.py BOARD ANSWERS STOP OPTIONS

OPTIONS is a JSON object: `seed`, `refresh`, `in_memory_rows`, `workers`, and `coroutines`, which
are used in place of threads. Appends one JSON object for each answer to the file ANSWERS, until the
file STOP appears. Any error ends it with a traceback.

An answer holds the generations of the channel that `status()` named before and after the search,
and a moment since which the look at the channel that `status()` showed before the search began for
certain. Moments are those of the monotonic clock, which all processes of a machine share.
"""

import asyncio
import json
import os
import random
import sys
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import pegboard
from tests.faults import world

PAUSE = 0.05
MODES = ("hybrid", "vector", "text")
INDEXES = ("full", "fine")


class Search:
    """One search: its arguments, and what was to be seen before it."""

    def __init__(self, board: pegboard.Board, dice: random.Random) -> None:
        self.tool = dice.randrange(world.TOOLS)
        self.query = f"handle {world.WORDS[self.tool]}"
        mode, index = dice.choice(MODES), dice.choice(INDEXES)
        self.options: dict[str, Any] = {"k": 5, "mode": mode, "index": index}
        self._board, self._began = board, time.monotonic()
        status = board.status()
        # The age is taken after `_began`: the look began at this moment or later.
        self._before, self._looked = status.generation, self._began - status.age_seconds

    def answer(self, hits: list[Any]) -> dict[str, Any]:
        return {
            "began": self._began,
            "looked": self._looked,
            "before": self._before,
            "after": self._board.status().generation,
            "ended": time.monotonic(),
            "tool": self.tool,
            **self.options,
            "releases": sorted({hit.release for hit in hits}),
            "hits": [[hit.tool.id, hit.tool.description] for hit in hits],
        }


class Notes:
    """The file of the answers; a line is there as soon as it is noted."""

    def __init__(self, path: Path) -> None:
        self._file, self._lock = path.open("a", encoding="utf-8"), threading.Lock()

    def write(self, answer: dict[str, Any]) -> None:
        with self._lock:
            self._file.write(json.dumps(answer) + "\n")
            self._file.flush()


def search_in_threads(board: pegboard.Board, notes: Notes, stop: Path, seeds: list[int]) -> None:
    def search(seed: int) -> None:
        dice = random.Random(seed)
        while not stop.exists():
            request = Search(board, dice)
            notes.write(request.answer(board.search(request.query, **request.options)))
            time.sleep(PAUSE)

    with ThreadPoolExecutor(len(seeds)) as threads:
        for ended in as_completed([threads.submit(search, seed) for seed in seeds]):
            if ended.exception():
                traceback.print_exception(ended.exception())
                os._exit(1)


async def search_in_coroutines(
    board: pegboard.Board, notes: Notes, stop: Path, seeds: list[int]
) -> None:
    beside = pegboard.AsyncBoard(board)

    async def search(seed: int) -> None:
        dice = random.Random(seed)
        while not stop.exists():
            request = Search(board, dice)
            notes.write(request.answer(await beside.search(request.query, **request.options)))
            await asyncio.sleep(PAUSE)

    await asyncio.gather(*map(search, seeds))


def main() -> None:
    uri, answers, stop, options_json = sys.argv[1:]
    options = json.loads(options_json)
    seeds = [options["seed"] * 100 + number for number in range(options["workers"])]
    with pegboard.open(
        uri, refresh=options["refresh"], in_memory_rows=options["in_memory_rows"]
    ) as board:
        if options["coroutines"]:
            asyncio.run(search_in_coroutines(board, Notes(Path(answers)), Path(stop), seeds))
        else:
            search_in_threads(board, Notes(Path(answers)), Path(stop), seeds)


if __name__ == "__main__":
    main()
