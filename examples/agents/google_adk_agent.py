"""A Google ADK agent whose tools are searched on a board.

    GOOGLE_API_KEY=... python examples/agents/google_adk_agent.py

Without a key a script stands in for the model."""

import asyncio
import os
from collections.abc import AsyncGenerator
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import InMemoryRunner
from google.adk.tools import FunctionTool
from google.genai import types
from office import FUNCTIONS, REQUEST, open_board

from pegboard.integrations.google_adk import BoardToolset

SCRIPT = [
    types.Part.from_function_call(name="search_tools", args={"query": "book a meeting room"}),
    types.Part.from_function_call(name="book_room", args={"day": "Monday", "people": 4}),
    types.Part.from_text(text="It is booked."),
]


class Script(BaseLlm):
    """Calls the tools of the script, then ends."""

    steps: list[Any]

    async def generate_content_async(
        self, llm_request: Any, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        part = self.steps.pop(0)
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


async def main() -> None:
    script = Script(model="script", steps=list(SCRIPT))
    model = "gemini-2.5-flash" if "GOOGLE_API_KEY" in os.environ else script
    tools = [FunctionTool(function) for function in FUNCTIONS]
    agent = LlmAgent(name="office", model=model, tools=[BoardToolset(open_board(), tools)])
    runner = InMemoryRunner(agent=agent, app_name="office")
    await runner.session_service.create_session(app_name="office", user_id="u", session_id="s")
    message = types.Content(role="user", parts=[types.Part.from_text(text=REQUEST)])
    async for event in runner.run_async(user_id="u", session_id="s", new_message=message):
        for answer in event.get_function_responses():
            print(f"{answer.name}: {answer.response['result']}")
        if event.is_final_response() and event.content and event.content.parts:
            print(event.content.parts[0].text)


if __name__ == "__main__":
    asyncio.run(main())
