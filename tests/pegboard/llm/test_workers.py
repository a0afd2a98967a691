"""An LLM asked from several processes, against the scripted server."""

import asyncio
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from pegboard.errors import CompletionError
from pegboard.llm import ChatRequest, Message, ToolCall
from pegboard.llm.workers import WorkersCompleter
from tests.children import start_child

SERVER = Path(__file__).parents[2] / "scripted_llm.py"
OFFERED = ChatRequest(
    messages=(Message("user", "say hello"),),
    max_tokens=9,
    tools=(
        {
            "type": "function",
            "function": {"name": "say", "parameters": {"type": "object", "properties": {}}},
        },
    ),
    tool_choice="required",
)


@dataclass(frozen=True, slots=True)
class Server:
    """The scripted server.

    Attributes:
        url: of its API.
        hold: replies wait as long as this file exists.
        log: of its requests, one line of JSON each.
    """

    url: str
    hold: Path
    log: Path

    async def has_begun(self, requests):
        """Wait until so many requests have reached it."""
        while self.log.read_text("utf-8").count('"began"') < requests:
            await asyncio.sleep(0.01)


@pytest.fixture
def server(tmp_path):
    log, hold = tmp_path / "log", tmp_path / "hold"
    process = start_child(
        [sys.executable, str(SERVER), str(log), "--hold", str(hold)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    yield Server(f"http://127.0.0.1:{process.stdout.readline().strip()}/v1", hold, log)
    process.stdin.close()
    process.wait()
    process.stdout.close()


def request(number):
    text = f'<data>{{"name": "tool_{number}"}}</data>'
    return ChatRequest(
        messages=(Message("user", text),),
        max_tokens=100,
        schema={"type": "object"},
        schema_name="topics",
    )


def children():
    """The processes of the workers that this test started."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(status.read_text().rpartition(")")[2].split()[1])
            command = (status.parent / "cmdline").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if parent == os.getpid() and "pegboard.llm.worker" in command:
            found.append(int(status.parent.name))
    return found


def test_a_killed_process_loses_its_calls_and_the_others_get_their_replies(server):
    async def work():
        completer = WorkersCompleter(
            "hosted_vllm/scripted", processes=2, api_base=server.url, price=(1.0, 2.0)
        )
        replies = await asyncio.gather(
            *(completer.complete(request(number)) for number in range(20))
        )
        called = await completer.complete(OFFERED)
        started = children()

        server.hold.touch()
        waiting = [asyncio.create_task(completer.complete(request(number))) for number in range(10)]
        await server.has_begun(20 + 10)
        os.kill(started[0], signal.SIGKILL)
        await asyncio.wait(
            waiting, return_when=asyncio.FIRST_COMPLETED
        )  # its calls fail while the server still waits
        server.hold.unlink()
        outcomes = await asyncio.gather(*waiting, return_exceptions=True)

        after = await completer.complete(request(99))
        await completer.aclose()
        return replies, called, started, outcomes, after

    replies, called, started, outcomes, after = asyncio.run(work())
    assert len(started) == 2
    assert children() == []
    assert called.calls == (ToolCall("say", '{"text": "hello"}'),)
    assert all("Office records" in reply.text for reply in replies)
    assert all(reply.model == "hosted_vllm/scripted" and reply.seconds > 0 for reply in replies)
    first = replies[0]
    assert first.cost_usd == pytest.approx(
        first.prompt_tokens * 1e-6 + first.completion_tokens * 2e-6
    )
    errors = [outcome for outcome in outcomes if isinstance(outcome, CompletionError)]
    assert len(errors) == 5
    assert all(error.may_pass for error in errors)
    assert "Office records" in after.text


def test_an_error_of_the_server_comes_back_as_it_was(tmp_path):
    async def work():
        completer = WorkersCompleter(
            "hosted_vllm/scripted", processes=1, api_base="http://127.0.0.1:9/v1"
        )
        try:
            await completer.complete(request(0))
        finally:
            await completer.aclose()

    with pytest.raises(CompletionError) as caught:
        asyncio.run(work())
    assert caught.value.may_pass
    assert "127.0.0.1:9" in str(caught.value)


def test_a_process_that_cannot_start_is_told():
    async def work():
        await WorkersCompleter("hosted_vllm/scripted", processes=1, timeout=0).complete(request(0))

    with pytest.raises(CompletionError, match="did not start"):
        asyncio.run(work())
