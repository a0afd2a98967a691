"""Anthropic's Messages API with a search that answers by references.

    ANTHROPIC_API_KEY=... python examples/agents/anthropic_messages.py

Without a key a script stands in for the model."""

import os

import anthropic
import httpx2 as httpx
from office import REQUEST, call, open_board

from pegboard.integrations.anthropic import MessagesToolSearch
from pegboard.integrations.board_search import BoardSearch
from pegboard.integrations.discovery import Discovery

SCRIPT = [
    {"type": "tool_use", "id": "1", "name": "search_tools", "input": {"query": "meeting room"}},
    {
        **{"type": "tool_use", "id": "2", "name": "book_room"},
        "input": {"day": "Monday", "people": 4},
    },
    {"type": "text", "text": "It is booked."},
]


def client() -> anthropic.Anthropic:
    """Return a client of the API, or of the script where there is no key."""
    if "ANTHROPIC_API_KEY" in os.environ:
        return anthropic.Anthropic()
    steps = iter(SCRIPT)

    def answer(_: httpx.Request) -> httpx.Response:
        block = next(steps)
        message = {"id": "m", "type": "message", "role": "assistant", "model": "script"}
        reason = "end_turn" if block["type"] == "text" else "tool_use"
        stop = {"stop_reason": reason, "stop_sequence": None}
        usage = {"usage": {"input_tokens": 0, "output_tokens": 0}}
        return httpx.Response(200, json={**message, **stop, **usage, "content": [block]})

    transport = httpx.Client(transport=httpx.MockTransport(answer))
    return anthropic.Anthropic(api_key="none", http_client=transport)


def main() -> None:
    api = client()
    tools = MessagesToolSearch(Discovery(BoardSearch(open_board(), k=3)))
    history: list = [{"role": "user", "content": REQUEST}]
    while True:
        reply = api.messages.create(
            model="claude-sonnet-4-6", max_tokens=1_000, tools=tools.tools(), messages=history
        )
        history.append({"role": "assistant", "content": reply.content})
        results = tools.answers(reply.content)
        for block in reply.content:
            if block.type == "text":
                print(block.text)
            elif block.type == "tool_use" and block.name != "search_tools":
                result = call(tools.called(block), block.input)
                print(f"{block.name}: {result}")
                answer = {"type": "tool_result", "tool_use_id": block.id}
                results.append({**answer, "content": [{"type": "text", "text": result}]})
        if not results:
            return
        history.append({"role": "user", "content": results})


if __name__ == "__main__":
    main()
