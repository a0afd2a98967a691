"""A process that asks an LLM for another one: `python -m pegboard.llm.worker`, started by
`llm.workers`.

The first line on stdin names the model and its options, every other one a request; every line on
stdout is a reply or an error, in the order in which they come. All lines are JSON. Keys are read
from the environment, as anywhere. The process ends with its stdin, so with its parent."""

import asyncio
import gc
import json
import sys
from dataclasses import asdict
from typing import Any

from pegboard.errors import CompletionError
from pegboard.llm import ChatRequest, Message
from pegboard.llm.hosted import HostedCompleter

__all__: list[str] = []

LINE_BYTES = 1 << 26


async def work() -> None:
    """Answer lines until there are no more."""
    loop = asyncio.get_running_loop()
    lines = asyncio.StreamReader(limit=LINE_BYTES)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    completer = HostedCompleter(**json.loads(await lines.readline()))
    gc.freeze()
    gc.set_threshold(100_000, 50, 50)  # replies make garbage; what LiteLLM brought along is none
    say({"ready": True})
    running: set[asyncio.Task[None]] = set()
    async for line in lines:
        task = asyncio.create_task(answer(completer, json.loads(line)))
        running.add(task)
        task.add_done_callback(running.discard)
    for task in running:
        task.cancel()


async def answer(completer: HostedCompleter, asked: dict[str, Any]) -> None:
    """Ask, and say what came of it."""
    fields: dict[str, Any] = asked["request"]
    fields |= {
        "messages": tuple(Message(**one) for one in fields["messages"]),
        "tools": tuple(fields["tools"]),
    }
    try:
        reply = await completer.complete(ChatRequest(**fields))
    except CompletionError as error:
        told = {
            name: getattr(error, name) for name in ("kind", "may_pass", "retry_after", "status")
        }
        say({"number": asked["number"], "error": {"message": str(error), **told}})
    else:
        say({"number": asked["number"], "reply": asdict(reply)})


def say(value: dict[str, Any]) -> None:
    """Write one line."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(work())
