"""A Haystack agent whose tools are searched on a board.

    OPENAI_API_KEY=... python examples/agents/haystack_agent.py

Without a key a script stands in for the model."""

import os
from typing import Any

from haystack import component
from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage, ToolCall
from haystack.tools import create_tool_from_function
from office import FUNCTIONS, REQUEST, open_board

from pegboard.integrations.haystack import BoardToolset

SCRIPT = [
    ToolCall("search_tools", {"query": "book a meeting room"}, id="1"),
    ToolCall("book_room", {"day": "Monday", "people": 4}, id="2"),
]


@component
class Script:
    """Calls the tools of the script, then ends."""

    def __init__(self) -> None:
        self.steps = iter(SCRIPT)

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage], tools: Any = None) -> dict[str, Any]:
        call = next(self.steps, None)
        reply = {"tool_calls": [call]} if call else {"text": "It is booked."}
        return {"replies": [ChatMessage.from_assistant(**reply)]}


def main() -> None:
    generator: Any = OpenAIChatGenerator() if "OPENAI_API_KEY" in os.environ else Script()
    tools = [create_tool_from_function(function) for function in FUNCTIONS]
    agent = Agent(chat_generator=generator, tools=BoardToolset(open_board(), tools))
    result = agent.run(messages=[ChatMessage.from_user(REQUEST)])
    for message in result["messages"]:
        if message.tool_call_result:
            called = message.tool_call_result
            print(f"{called.origin.tool_name}: {called.result}")
    print(result["last_message"].text)


if __name__ == "__main__":
    main()
