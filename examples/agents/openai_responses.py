"""OpenAI's Responses API with `tool_search` executed here.

    OPENAI_API_KEY=... python examples/agents/openai_responses.py

Without a key a script stands in for the model."""

import json
import os

import httpx
import openai
from office import REQUEST, call, open_board

from pegboard.integrations.board_search import BoardSearch
from pegboard.integrations.discovery import Discovery
from pegboard.integrations.openai import ResponsesToolSearch

SCRIPT = [
    {
        **{"type": "tool_search_call", "id": "1", "call_id": "1", "execution": "client"},
        **{"status": "completed", "arguments": {"query": "book a meeting room"}},
    },
    {
        **{"type": "function_call", "id": "2", "call_id": "2", "name": "book_room"},
        **{"arguments": '{"day": "Monday", "people": 4}', "status": "completed"},
    },
    {
        **{"type": "message", "id": "3", "role": "assistant", "status": "completed"},
        "content": [{"type": "output_text", "text": "It is booked.", "annotations": []}],
    },
]


def client() -> openai.OpenAI:
    """Return a client of the API, or of the script where there is no key."""
    if "OPENAI_API_KEY" in os.environ:
        return openai.OpenAI()
    steps = iter(SCRIPT)

    def answer(_: httpx.Request) -> httpx.Response:
        response = {"id": "r", "object": "response", "created_at": 0, "model": "script"}
        options = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
        return httpx.Response(200, json={**response, **options, "output": [next(steps)]})

    transport = httpx.Client(transport=httpx.MockTransport(answer))
    return openai.OpenAI(api_key="none", http_client=transport)


def main() -> None:
    api = client()
    tools = ResponsesToolSearch(Discovery(BoardSearch(open_board(), k=3)))
    history: list = [{"type": "message", "role": "user", "content": REQUEST}]
    while True:
        response = api.responses.create(model="gpt-5.4", input=history, tools=[tools.definition()])
        history += [item.model_dump(exclude_none=True) for item in response.output]
        history += tools.answers(response.output)
        for item in response.output:
            if item.type == "function_call":
                result = call(tools.called(item), json.loads(item.arguments))
                print(f"{item.name}: {result}")
                output = {"type": "function_call_output", "call_id": item.call_id}
                history.append({**output, "output": result})
        if response.output_text:
            print(response.output_text)
            return


if __name__ == "__main__":
    main()
