"""Asking one LLM from several processes: a process of LiteLLM's manages 70 to 130 calls a second,
whatever the concurrency.

Each process runs `llm.worker` and takes requests in turn. One that dies takes its calls with it;
they may be made again."""

import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from pegboard.errors import CompletionError
from pegboard.llm import ChatReply, ChatRequest, ToolCall
from pegboard.llm.worker import LINE_BYTES


class WorkersCompleter:
    """An LLM that LiteLLM reaches, asked from several processes, which start with the first call.
    For one event loop.

    Args:
        name: the model as LiteLLM names it.
        processes: how many.
        options: the other arguments of `HostedCompleter`; none of them is a secret.
    """

    def __init__(self, name: str, *, processes: int, **options: Any) -> None:
        self.name = name
        self._options = options
        self._count = processes
        self._workers: Sequence[_Worker] = ()
        self._turn = 0
        self._starting = asyncio.Lock()

    async def complete(self, request: ChatRequest) -> ChatReply:
        """The reply to a request, asked for once. Raises CompletionError as
        `HostedCompleter.complete` does.
        """
        if not self._workers:
            async with self._starting:
                if not self._workers:
                    options = {"name": self.name, **self._options}
                    self._workers = await asyncio.gather(
                        *(_Worker.start(options) for _ in range(self._count))
                    )
        self._turn += 1
        worker = min(self._rotated(), key=lambda one: len(one.waiting))
        return await worker.ask(request, self._turn)

    async def aclose(self) -> None:
        """End the processes; whoever runs the loop calls it, when the last call is done."""
        await asyncio.gather(*(worker.stop() for worker in self._workers))
        self._workers = ()

    def _rotated(self) -> "list[_Worker]":
        """The workers that live, or all if none does."""
        living = [worker for worker in self._workers if worker.alive]
        return living or list(self._workers)


class _Worker:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.waiting: dict[int, asyncio.Future[ChatReply]] = {}
        self.alive = True
        self._process = process
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def start(cls, options: dict[str, Any]) -> "_Worker":
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "pegboard.llm.worker"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            limit=LINE_BYTES,
            start_new_session=True,  # Ctrl-C is for the parent, which ends its workers
        )
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(_line(options))
        await process.stdin.drain()
        if not await process.stdout.readline():
            await process.wait()
            raise CompletionError(
                f"{options['name']}: a process that was to ask the model did not start (it ended "
                f"with {process.returncode}). "
                "Set concurrency to 64 or less, so that no further process is needed."
            )
        return cls(process)

    async def ask(self, request: ChatRequest, number: int) -> ChatReply:
        if not self.alive:
            raise _died()
        assert self._process.stdin is not None
        future: asyncio.Future[ChatReply] = asyncio.get_running_loop().create_future()
        self.waiting[number] = future
        try:
            self._process.stdin.write(_line({"number": number, "request": asdict(request)}))
            return await future
        finally:
            self.waiting.pop(number, None)

    async def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), 5)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        await self._reader

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            said = json.loads(line)
            future = self.waiting.get(said["number"])
            if future is None or future.done():
                continue
            if "reply" in said:
                calls = tuple(ToolCall(**one) for one in said["reply"].pop("calls"))
                future.set_result(ChatReply(**said["reply"], calls=calls))
            else:
                error: dict[str, Any] = said["error"]
                future.set_exception(CompletionError(error.pop("message"), **error))
        self.alive = False
        for future in self.waiting.values():
            if not future.done():
                future.set_exception(_died())


def _died() -> CompletionError:
    return CompletionError(
        "The process that asked the model ended before the reply came.",
        kind="server",
        may_pass=True,
    )


def _line(value: Any) -> bytes:
    return json.dumps(value).encode() + b"\n"
