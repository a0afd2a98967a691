"""The tools of a LlamaIndex agent, retrieved from a board.

    python examples/agents/llama_index_agent.py

Give `FunctionAgent` your own `llm`; the one here stands in for it: only the retrieval is shown."""

import asyncio

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.tools import FunctionTool
from office import FUNCTIONS, REQUEST, open_board

from pegboard.integrations.board_search import BoardSearch
from pegboard.integrations.llama_index import BoardRetriever


async def main() -> None:
    tools = [FunctionTool.from_defaults(function) for function in FUNCTIONS]
    retriever = BoardRetriever(BoardSearch(open_board(), k=2), tools)
    agent = FunctionAgent(llm=MockFunctionCallingLLM(), tool_retriever=retriever)
    for request in (REQUEST, "And what will the weather be in Oslo?"):
        tools_of_step = await agent.get_tools(request)
        print(request, "->", *(tool.metadata.name for tool in tools_of_step))
    # search_tools comes first, for the model's own searches.
    booked = await tools_of_step[1].acall(day="Monday", people=4)
    print(f"{tools_of_step[1].metadata.name}: {booked.content}")


if __name__ == "__main__":
    asyncio.run(main())
