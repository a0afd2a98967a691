"""Searches a board all the time and notes every answer: the target of a process.

An answer holds the generations of the channel that `status()` named before and after the search,
and a moment since which the look at the channel that `status()` showed before the search began for
certain. Moments are those of the monotonic clock, which all processes of a machine share.
"""

import asyncio
import json
import random
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pegboard
from tests.children import follow_parent
from tests.faults import world

PAUSE = 0.05
MODES = ("hybrid", "vector", "text")
INDEXES = ("full", "fine")


class Search:
    """One search: its arguments, and what was to be seen before it."""

    def __init__(self, board: pegboard.Board, dice: random.Random) -> None:
        self.tool = dice.randrange(world.TOOLS)
        self.query = f"handle {world.WORDS[self.tool]}"
        mode = dice.choice(MODES)
        index = dice.choice(INDEXES)
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


async def search_until(
    stop: Path, board: pegboard.Board, find: Callable[..., Any], answers: Path, seeds: list[int]
) -> None:
    """Search by as many workers as there are seeds, and append every answer as soon as it is there,
    until a file appears.
    """
    with answers.open("a", encoding="utf-8", buffering=1) as lines:

        async def search(seed: int) -> None:
            dice = random.Random(seed)
            while not stop.exists():
                request = Search(board, dice)
                answer = request.answer(await find(request.query, **request.options))
                lines.write(json.dumps(answer) + "\n")
                await asyncio.sleep(PAUSE)

        await asyncio.gather(*map(search, seeds))


def read(uri: str, answers: Path, stop: Path, options: dict[str, Any]) -> None:
    """Append one JSON object for each answer to the file `answers`, until the file `stop` appears.

    Args:
        options: `seed`, `refresh`, `in_memory_rows`, `workers`, and whether these are `coroutines`
            in place of threads.
    """
    follow_parent()
    seeds = [options["seed"] * 100 + number for number in range(options["workers"])]
    with pegboard.open(
        uri, refresh=options["refresh"], in_memory_rows=options["in_memory_rows"]
    ) as board:
        in_threads = partial(asyncio.to_thread, board.search)
        find = pegboard.AsyncBoard(board).search if options["coroutines"] else in_threads
        asyncio.run(search_until(stop, board, find, answers, seeds))
