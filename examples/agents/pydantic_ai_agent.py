"""Pydantic AI with tool search over a board.

    ANTHROPIC_API_KEY=... python examples/agents/pydantic_ai_agent.py

With a key the search is Anthropic's own surface, with references; without one a script stands in
for the model, and the search is a function tool."""

import asyncio
import os

from office import FUNCTIONS, REQUEST, open_board
from pydantic_ai import Agent, FunctionToolset
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

from pegboard.integrations.pydantic_ai import tool_search

SCRIPT = [
    ToolCallPart("search_tools", {"queries": ["book a meeting room"]}),
    ToolCallPart("book_room", {"day": "Monday", "people": 4}),
    TextPart("It is booked."),
]


def main() -> None:
    steps = iter(SCRIPT)
    script = FunctionModel(lambda messages, info: ModelResponse(parts=[next(steps)]))
    model = "anthropic:claude-sonnet-4-6" if "ANTHROPIC_API_KEY" in os.environ else script
    toolset = FunctionToolset(FUNCTIONS).defer_loading()
    agent = Agent(model, toolsets=[toolset], capabilities=[tool_search(open_board())])
    result = asyncio.run(agent.run(REQUEST))
    for message in result.all_messages():
        for part in message.parts:
            if part.part_kind == "tool-return":
                print(f"{part.tool_name}: {part.content}")
    print(result.output)


if __name__ == "__main__":
    main()
