"""Asks a board all the time and notes every answer: started as a process of its own.

    python tests/faults/reader.py BOARD REFRESH IN_MEMORY_ROWS ANSWERS STOP SEED

Appends one JSON object for each answer to the file ANSWERS, until the file STOP appears. Any error ends it with a traceback.
"""

import asyncio
import json
import random
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import world

import pegboard

ENCODER = world.HashingEncoder()
WRITING = threading.Lock()
PAUSE = 0.1


def question(dice: random.Random) -> tuple[int, dict]:
    tool = dice.randrange(world.TOOLS)
    mode = dice.choice(["hybrid", "vector", "text"])
    return tool, {"query": f"handle {world.WORDS[tool]}", "k": 5, "mode": mode, "index": dice.choice(["full", "fine"])}


def note(answers, began: float, tool: int, asked: dict, hits: list) -> None:
    found = [[hit.tool.id, hit.tool.description] for hit in hits]
    releases = sorted({hit.release for hit in hits})
    line = {"began": began, "ended": time.time(), "tool": tool, **asked, "releases": releases, "hits": found}
    with WRITING:
        answers.write(json.dumps(line) + "\n")


def threads(board: pegboard.Board, answers, stop: Path, seed: int) -> None:
    broken: list[BaseException] = []

    def ask(number: int) -> None:
        dice = random.Random(seed * 100 + number)
        try:
            while not stop.exists():
                tool, asked = question(dice)
                began = time.time()
                hits = board.search(asked["query"], asked["k"], mode=asked["mode"], index=asked["index"])
                note(answers, began, tool, asked, hits)
                time.sleep(PAUSE)
        except BaseException as error:
            broken.append(error)

    workers = [threading.Thread(target=ask, args=(number,)) for number in range(2)]
    for one in workers:
        one.start()
    for one in workers:
        one.join()
    if broken:
        raise broken[0]


async def coroutines(board: pegboard.Board, answers, stop: Path, seed: int) -> None:
    async def ask(number: int) -> None:
        dice = random.Random(seed * 100 + number)
        while not stop.exists():
            tool, asked = question(dice)
            began = time.time()
            hits = await board.search_async(asked["query"], asked["k"], mode=asked["mode"], index=asked["index"])
            note(answers, began, tool, asked, hits)
            await asyncio.sleep(PAUSE)

    await asyncio.gather(*(ask(number) for number in range(2)))


def main() -> None:
    uri, refresh, in_memory_rows, answers, stop, seed = sys.argv[1:]
    board = pegboard.open(uri, encoder=ENCODER, refresh=float(refresh), in_memory_rows=int(in_memory_rows))
    with Path(answers).open("a") as file:
        if int(seed) % 2:
            asyncio.run(coroutines(board, file, Path(stop), int(seed)))
        else:
            threads(board, file, Path(stop), int(seed))


if __name__ == "__main__":
    main()
