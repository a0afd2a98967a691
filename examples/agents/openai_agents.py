"""OpenAI's Agents SDK with tools searched on a board.

    OPENAI_API_KEY=... python examples/agents/openai_agents.py

Without a key a script stands in for the model."""

import asyncio
import json
import os
from typing import Any

import agents
from office import FUNCTIONS, REQUEST, open_board
from openai.types import responses

from pegboard.integrations.openai_agents import AgentTools

SCRIPT = [
    ("search_tools", {"query": "book a meeting room"}),
    ("book_room", {"day": "Monday", "people": 4}),
]


class Script(agents.Model):
    """Calls the tools of the script, then ends."""

    def __init__(self) -> None:
        self.steps = iter(SCRIPT)

    async def get_response(self, *_: Any, **__: Any) -> agents.ModelResponse:
        name, arguments = next(self.steps, (None, None))
        if name is None:
            text = {"type": "output_text", "text": "It is booked.", "annotations": []}
            message = {"type": "message", "id": "m", "role": "assistant", "status": "completed"}
            item: Any = responses.ResponseOutputMessage(**message, content=[text])
        else:
            item = responses.ResponseFunctionToolCall(
                type="function_call", call_id=name, name=name, arguments=json.dumps(arguments)
            )
        return agents.ModelResponse(output=[item], usage=agents.Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


def main() -> None:
    model = None if "OPENAI_API_KEY" in os.environ else Script()
    if model is not None:
        agents.set_tracing_disabled(True)
    tools = AgentTools(open_board(), [agents.function_tool(function) for function in FUNCTIONS])
    agent = agents.Agent(name="office", model=model, tools=tools.tools)
    result = asyncio.run(agents.Runner.run(agent, REQUEST))
    for item in result.new_items:
        if item.type == "tool_call_output_item":
            print(item.output)
    print(result.final_output)


if __name__ == "__main__":
    main()
