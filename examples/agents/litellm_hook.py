"""LiteLLM's proxy: a hook that narrows the tools of each request.

Beside the proxy's config.yaml, with `litellm_settings: {callbacks: litellm_hook.board_tools}`.

    python examples/agents/litellm_hook.py

shows what the hook does to a request, without a proxy."""

import asyncio

from office import FUNCTIONS, REQUEST, open_board

from pegboard.integrations.board_search import BoardSearch
from pegboard.integrations.litellm import BoardToolFilter

board_tools = BoardToolFilter(BoardSearch(open_board(), k=2))


async def main() -> None:
    names = [*(function.__name__ for function in FUNCTIONS), "a_tool_of_the_application"]
    tools = [{"type": "function", "function": {"name": name}} for name in names]
    request = {"messages": [{"role": "user", "content": REQUEST}], "tools": tools}
    await board_tools.async_pre_call_hook(None, None, request, "acompletion")
    print("sent:", *(tool["function"]["name"] for tool in request["tools"]))


if __name__ == "__main__":
    asyncio.run(main())
