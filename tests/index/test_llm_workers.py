"""An LLM asked from several processes, against the scripted server."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pegboard.errors import CompletionError
from pegboard.llm import ChatRequest, Message, ToolCall
from pegboard.llm.workers import WorkersCompleter

SERVER = Path(__file__).parents[1] / "scripted_llm.py"
OFFERED = ChatRequest(
    messages=(Message("user", "say hello"),),
    max_tokens=9,
    tools=({"type": "function", "function": {"name": "say", "parameters": {"type": "object", "properties": {}}}},),
    tool_choice="required",
)


@pytest.fixture
def server(tmp_path):
    process = subprocess.Popen(
        [sys.executable, str(SERVER), str(tmp_path / "log"), "--delay", "0.2"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    yield f"http://127.0.0.1:{process.stdout.readline().strip()}/v1"
    process.stdin.close()
    process.wait(timeout=30)
    process.stdout.close()


def request(number):
    asked = f'<data>{{"name": "tool_{number}"}}</data>'
    return ChatRequest(
        messages=(Message("user", asked),), max_tokens=100, schema={"type": "object"}, schema_name="topics"
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


def test_replies_come_back_to_those_who_asked_and_the_processes_end(server):
    async def work():
        completer = WorkersCompleter("hosted_vllm/scripted", processes=2, api_base=server, price=(1.0, 2.0))
        replies = await asyncio.gather(*(completer.complete(request(number)) for number in range(20)))
        called = await completer.complete(OFFERED)
        started = len(children())
        await completer.aclose()
        return replies, called, started

    replies, called, started = asyncio.run(work())
    assert started == 2
    assert called.calls == (ToolCall("say", '{"text": "hello"}'),)
    assert children() == []
    assert all("Office records" in reply.text for reply in replies)
    assert all(reply.model == "hosted_vllm/scripted" and reply.seconds >= 0.2 for reply in replies)
    first = replies[0]
    assert first.cost_usd == pytest.approx(first.prompt_tokens * 1e-6 + first.completion_tokens * 2e-6)


def test_a_process_that_is_killed_loses_its_calls_and_the_other_goes_on(server):
    async def work():
        completer = WorkersCompleter("hosted_vllm/scripted", processes=2, api_base=server)
        await completer.complete(request(0))
        asking = [asyncio.create_task(completer.complete(request(number))) for number in range(10)]
        await asyncio.sleep(0.05)
        os.kill(children()[0], signal.SIGKILL)
        outcomes = await asyncio.gather(*asking, return_exceptions=True)
        after = await completer.complete(request(99))
        await completer.aclose()
        return outcomes, after

    outcomes, after = asyncio.run(work())
    lost = [one for one in outcomes if isinstance(one, CompletionError)]
    assert len(lost) == 5
    assert all(error.may_pass for error in lost)
    assert "Office records" in after.text


def test_an_error_of_the_server_comes_back_as_it_was(tmp_path):
    async def work():
        completer = WorkersCompleter("hosted_vllm/scripted", processes=1, api_base="http://127.0.0.1:9/v1")
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
        await WorkersCompleter("nobody/unheard-of", processes=1).complete(request(0))

    with pytest.raises(CompletionError, match="did not start"):
        asyncio.run(work())
