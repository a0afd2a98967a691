"""OpenAI's Responses API: `tool_search` that the client executes, over a board.

    tools = ResponsesToolSearch(Discovery(board))
    response = client.responses.create(model=..., input=history, tools=[tools.definition()])
    history += [*response.output, *tools.answers(response.output)]

Found definitions travel in the answers, at the end of the context: what was cached of the prompt
stays valid, and `tools` of the request never changes. Needs no package but the caller's own client.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from pegboard.hits import Hit, as_responses_tools
from pegboard.integrations.board_search import QUERY_SCHEMA, SEARCH_DESCRIPTION, query_of
from pegboard.integrations.discovery import Discovered, Discovery
from pegboard.naming import CallNames
from pegboard.schemas.for_models import cut_description


class ResponsesToolSearch:
    """Answers the `tool_search_call` items of one conversation.

    Found tools are grouped by their agents, as the models are trained for: a call carries its
    agent's name as `namespace`.

    Args:
        discovery: of the conversation.
        description: of the search, for the model.
    """

    def __init__(self, discovery: Discovery, *, description: str = SEARCH_DESCRIPTION) -> None:
        self.discovery, self._description = discovery, description
        self._namespaces: dict[str, str] = {}

    def definition(self) -> dict[str, Any]:
        """Return the entry of `tools`: the same in every request."""
        return {
            "type": "tool_search",
            "execution": "client",
            "description": self._description,
            "parameters": dict(QUERY_SCHEMA),
        }

    def answers(self, output: Iterable[Any]) -> list[dict[str, Any]]:
        """Return the input items that answer every `tool_search_call` of a response's output.

        A search that found nothing is answered without tools, and with a message that says why.
        """
        return [
            item
            for call in map(_fields, output)
            if call.get("type") == "tool_search_call" and call.get("execution") == "client"
            for item in self._answer(call, self.discovery.search(query_of(call["arguments"])))
        ]

    async def answers_async(self, output: Iterable[Any]) -> list[dict[str, Any]]:
        """Return what `answers` does; the event loop goes on meanwhile."""
        items: list[dict[str, Any]] = []
        for call in map(_fields, output):
            if call.get("type") == "tool_search_call" and call.get("execution") == "client":
                found = await self.discovery.search_async(query_of(call["arguments"]))
                items += self._answer(call, found)
        return items

    def called(self, item: Any) -> Hit:
        """Return the tool that a `function_call` item calls. Raises as `Discovery.called` does."""
        return self.discovery.called(str(_fields(item).get("name", "")))

    def _answer(self, call: Mapping[str, Any], found: Discovered) -> list[dict[str, Any]]:
        answer = {
            "type": "tool_search_output",
            "call_id": call.get("call_id"),
            "execution": "client",
            "status": "completed",
            "tools": self._definitions(found),
        }
        if found.tools:
            return [answer]
        return [answer, {"type": "message", "role": "developer", "content": found.reason}]

    def _definitions(self, found: Discovered) -> list[dict[str, Any]]:
        tools = as_responses_tools(found.tools, self.discovery.options.descriptions)
        namespaces: dict[str, dict[str, Any]] = {}
        for tool, hit in zip(tools, found.tools.values(), strict=True):
            name = self._namespace(hit)
            space = namespaces.setdefault(
                name,
                {
                    "type": "namespace",
                    "name": name,
                    "description": cut_description(hit.agent.description or hit.agent.name),
                    "tools": [],
                },
            )
            space["tools"].append({**tool, "defer_loading": True})
        return list(namespaces.values())

    def _namespace(self, hit: Hit) -> str:
        """The agent's name, kept over the conversation; with a hash if another agent has it."""
        if hit.agent.id not in self._namespaces:
            agent = hit.agent
            taken = [*self._namespaces.values(), *self.discovery.found]
            names = CallNames([(agent.id, agent.name, agent.catalog)], taken)
            self._namespaces[agent.id] = names.names[agent.id]
        return self._namespaces[hit.agent.id]


def _fields(item: Any) -> Mapping[str, Any]:
    """An item of a response's output as a mapping, given as the client's object or as one."""
    return item if isinstance(item, Mapping) else item.model_dump(exclude_unset=False)
