"""A LangChain agent whose tools are searched on a board.

    ANTHROPIC_API_KEY=... python examples/agents/langchain_agent.py

With a key it needs `langchain-anthropic`; without one a script stands in for the model."""

import os
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import StructuredTool
from office import FUNCTIONS, REQUEST, open_board

from pegboard.integrations.langchain import BoardToolsMiddleware

SCRIPT = [
    ("search_tools", {"query": "book a meeting room"}),
    ("book_room", {"day": "Monday", "people": 4}),
]


class Script(GenericFakeChatModel):
    """Calls the tools of the script, then ends."""

    def bind_tools(self, tools: Any, **_: Any) -> "Script":
        return self


def main() -> None:
    calls = [
        AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": name}])
        for name, arguments in SCRIPT
    ]
    script = Script(messages=iter([*calls, AIMessage("It is booked.")]))
    model = "anthropic:claude-sonnet-4-6" if "ANTHROPIC_API_KEY" in os.environ else script
    tools = [StructuredTool.from_function(function) for function in FUNCTIONS]
    agent = create_agent(model, middleware=[BoardToolsMiddleware(open_board(), tools)])
    result = agent.invoke({"messages": [("user", REQUEST)]})
    for message in result["messages"]:
        if isinstance(message, ToolMessage):
            print(f"{message.name}: {message.content}")
    print(result["messages"][-1].text)


if __name__ == "__main__":
    main()
