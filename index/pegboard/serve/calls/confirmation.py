"""Calls that may destroy something: the user is asked through the client."""

from collections.abc import Mapping
from typing import Any

from mcp_types import (
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from pegboard.canonical import canonical_json, digest
from pegboard.records import Tool
from pegboard.serve.errors import CallProblem
from pegboard.text.redaction import redact_line

KEY = "confirm"
ASKED, AGREED, SEPARATOR = "asked:", "agreed:", "|"
"""Of a state that says that the user was asked or agreed, before that of the tool's server. FastMCP
seals states: they count for 10 minutes, and for the arguments that they were made for."""
SCHEMA: dict[str, Any] = {"type": "object", "properties": {}}


class AskFirst(Exception):
    """The client has to ask its user, and to repeat the call with the answer.

    Args:
        result: what it is sent.
    """

    def __init__(self, result: InputRequiredResult) -> None:
        super().__init__("The user has to be asked first.")
        self.result = result


def own_part(state: str) -> tuple[str, str]:
    """Return what a state says of the user's agreement, and the part for the tool's server."""
    own, separator, rest = state.partition(SEPARATOR)
    return (own, rest) if separator and own.startswith((ASKED, AGREED)) else ("", state)


async def confirm(context: Any, client: str, tool: Tool, arguments: Mapping[str, Any]) -> str:
    """Return if the user agrees to a call: what a question of the server itself adds to its state,
    so that the user is not asked again with the answer to that.

    Args:
        context: the request; since 2026-07-28 it may hold the answer.
        client: the client's name: an answer counts for its own question alone.

    Raises:
        CallProblem: the user does not agree, or the client cannot ask.
        AskFirst: the client is to ask and to repeat the call.
    """
    request = context.request_context
    capabilities = request.session.client_capabilities
    elicitation = capabilities.elicitation if capabilities is not None else None
    if elicitation is None or (elicitation.form is None and elicitation.url is not None):
        raise CallProblem(
            "refused",
            f"{tool.id} may destroy something, and this client cannot ask its user (elicitation). "
            f"The gateway's operator may set [serve.calls] destructive.",
        )
    question = f"Call {tool.id} with {redact_line(canonical_json(dict(arguments)), 500)}?"
    if request.protocol_version in MODERN_PROTOCOL_VERSIONS:
        state = digest(client, tool.digest)
        action, agreed = _answer(context, question, state), AGREED + state
    else:
        result = await request.session.elicit_form(question, SCHEMA, request.request_id)
        action, agreed = result.action, ""
    if action != "accept":
        raise CallProblem("refused", f"The user did not agree to call {tool.id}.")
    return agreed


def _answer(context: Any, question: str, expected: str) -> str:
    """Return the answer that came with the call, if it is one to this very question."""
    answer = (context.input_responses or {}).get(KEY)
    own, _ = own_part(context.request_state or "")
    if own == AGREED + expected:
        return "accept"
    if isinstance(answer, ElicitResult) and own == ASKED + expected:
        return answer.action
    params = ElicitRequestFormParams(message=question, requested_schema=SCHEMA)
    asked: dict[str, Any] = {KEY: ElicitRequest(params=params)}
    state = f"{ASKED}{expected}{SEPARATOR}"
    raise AskFirst(InputRequiredResult(input_requests=asked, request_state=state))
