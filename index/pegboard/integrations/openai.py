"""OpenAI's Responses API: `tool_search` that the client executes, over a board.

    tools = ResponsesToolSearch(Discovery(board))
    response = client.responses.create(model=..., input=history, tools=[tools.definition()])
    history += [*response.output, *tools.answers(response.output)]

Found definitions are sent in the answers, at the end of the context, so that the cached prompt
prefix stays valid and the request's `tools` never changes. Needs no package except the caller's own
client.
"""

from collections.abc import Mapping
from typing import Any

from pegboard.hits import Hit, as_responses_tools
from pegboard.integrations.board_search import QUERY_SCHEMA, SEARCH_DESCRIPTION, Selected
from pegboard.integrations.discovery import Discovery, ProviderToolSearch
from pegboard.naming import CallNames
from pegboard.schemas.for_models import cut_description


class ResponsesToolSearch(ProviderToolSearch):
    """Answers the `tool_search_call` items of one conversation.

    Found tools are grouped by their agents, as the models are trained for: a call has its agent's
    name as `namespace`.

    Args:
        discovery: the tools that the conversation found.
    """

    _arguments = "arguments"

    def __init__(self, discovery: Discovery) -> None:
        super().__init__(discovery)
        self._namespaces: dict[str, str] = {}

    def definition(self) -> dict[str, Any]:
        """Return the entry of `tools`, which is the same in every request."""
        return {
            "type": "tool_search",
            "execution": "client",
            "description": SEARCH_DESCRIPTION,
            "parameters": dict(QUERY_SCHEMA),
        }

    def _is_search(self, item: Mapping[str, Any]) -> bool:
        return item.get("type") == "tool_search_call" and item.get("execution") == "client"

    def _answer(self, item: Mapping[str, Any], selected: Selected) -> list[dict[str, Any]]:
        answer = {
            "type": "tool_search_output",
            "call_id": item.get("call_id"),
            "execution": "client",
            "status": "completed",
            "tools": self._definitions(selected),
        }
        if selected.names:
            return [answer]
        return [answer, {"type": "message", "role": "developer", "content": selected.reason}]

    def _definitions(self, selected: Selected) -> list[dict[str, Any]]:
        hits = {name: self.discovery.found[name] for name in selected.names}
        tools = as_responses_tools(hits, self.discovery.options.descriptions)
        namespaces: dict[str, dict[str, Any]] = {}
        for tool, hit in zip(tools, hits.values(), strict=True):
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
        """Return the agent's name, stable over the conversation; with a hash if it is taken."""
        if hit.agent.id not in self._namespaces:
            agent = hit.agent
            taken = [*self._namespaces.values(), *self.discovery.found]
            names = CallNames([(agent.id, agent.name, agent.catalog)], taken)
            self._namespaces[agent.id] = names.names[agent.id]
        return self._namespaces[hit.agent.id]
