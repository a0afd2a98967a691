"""Calls that may destroy something: the user is asked through the client."""

from collections.abc import Mapping
from typing import Any, Literal

from mcp_types import (
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from pegboard.canonical import canonical_json, digest
from pegboard.records import Tool
from pegboard.redaction import redact_line
from pegboard.serve.calls.results import CallProblem

KEY = "confirm"
AGREED, SEPARATOR = "agreed:", "|"
"""Of a state that says that the user agreed, before that of the tool's server. FastMCP seals
states: they count for 10 minutes, and for the arguments that they were made for."""
SCHEMA: dict[str, Any] = {"type": "object", "properties": {}}

Answer = Literal["accept", "decline", "cancel"]


class AskFirst(Exception):
    """The client has to ask its user, and to repeat the call with the answer.

    Args:
        result: what it is sent.
    """

    def __init__(self, result: InputRequiredResult) -> None:
        super().__init__("The user has to be asked first.")
        self.result = result


def agreed_part(state: str) -> tuple[str, str]:
    """Return what a state says of the user's agreement, and the part for the tool's server."""
    agreed, separator, rest = state.partition(SEPARATOR)
    return (agreed, rest) if separator and agreed.startswith(AGREED) else ("", state)


class Confirmation:
    """Asks the user of one request, in the way of its protocol.

    Args:
        context: the request; since 2026-07-28 it may hold the answer.
        client: the client's name: an answer counts for its own question alone.
    """

    def __init__(self, context: Any, client: str) -> None:
        self._context, self._client = context, client
        self._request: Any = context.request_context

    async def confirm(self, tool: Tool, arguments: Mapping[str, Any]) -> str:
        """Return if the user agrees: what a question of the server itself adds to its state, so
        that the user is not asked again with the answer to that.

        Raises:
            CallProblem: the user does not, or the client cannot ask.
            AskFirst: the client is to ask and to repeat the call.
        """
        if not self._can_ask():
            raise CallProblem(
                "refused",
                f"{tool.id} may destroy something, and this client cannot ask its user "
                f"(elicitation). The gateway's operator may set [serve.calls] destructive.",
            )
        question = f"Call {tool.id} with {redact_line(canonical_json(dict(arguments)), 500)}?"
        modern = self._request.protocol_version in MODERN_PROTOCOL_VERSIONS
        answer = self._answered(tool, question) if modern else await self._ask(question)
        if answer != "accept":
            raise CallProblem("refused", f"The user did not agree to call {tool.id}.")
        return AGREED + digest(self._client, tool.digest) if modern else ""

    def _can_ask(self) -> bool:
        capabilities = self._request.session.client_capabilities
        elicitation = capabilities.elicitation if capabilities is not None else None
        return elicitation is not None and (elicitation.form is not None or elicitation.url is None)

    async def _ask(self, question: str) -> Answer:
        ask = self._request.session.elicit_form
        return (await ask(question, SCHEMA, self._request.request_id)).action

    def _answered(self, tool: Tool, question: str) -> Answer:
        """Return the answer that came with the call, if it is one to this very question."""
        answers: Any = self._context.input_responses or {}
        answer, state = answers.get(KEY), self._context.request_state or ""
        asked = digest(self._client, tool.digest)
        if agreed_part(state)[0] == AGREED + asked:
            return "accept"
        if isinstance(answer, ElicitResult) and state == asked:
            return answer.action
        params = ElicitRequestFormParams(message=question, requested_schema=SCHEMA)
        raise AskFirst(
            InputRequiredResult(
                input_requests={KEY: ElicitRequest(params=params)}, request_state=asked
            )
        )
