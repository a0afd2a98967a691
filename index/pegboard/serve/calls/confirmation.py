"""Confirmation of calls that may destroy something: the client asks its user."""

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
"""The key of the gateway's question among the input requests of a call."""
ASKED = "asked:"
"""Prefix of the gateway's part of a state after the user was asked."""
AGREED = "agreed:"
"""Prefix of the gateway's part of a state after the user agreed."""
SEPARATOR = "|"
"""Separates the gateway's part of a state from that of the tool's server. FastMCP seals states:
they are valid for 10 minutes, and only with the arguments that they were made for."""
SCHEMA: dict[str, Any] = {"type": "object", "properties": {}}
"""The schema of the form that the user is shown, which has no fields."""


class AskFirst(Exception):
    """The client must ask its user, and repeat the call with the answer.

    Args:
        result: the result that the client is sent, with the question.
    """

    def __init__(self, result: InputRequiredResult) -> None:
        super().__init__("The user has to be asked first.")
        self.result = result


def split_state(state: str) -> tuple[str, str]:
    """Return the gateway's part of a state, and the part of the tool's server."""
    gateway_part, separator, server_part = state.partition(SEPARATOR)
    if separator and gateway_part.startswith((ASKED, AGREED)):
        return gateway_part, server_part
    return "", state


async def confirm(context: Any, client: str, tool: Tool, arguments: Mapping[str, Any]) -> str:
    """Return the gateway's part of the state if the user agrees to a call; "" in protocols without
    states. A question of the server itself carries it, so that the user is asked only once.

    Args:
        context: the request. Since 2026-07-28, it may have the answer.
        client: the client's name, since an answer is valid only for the client that was asked.

    Raises:
        CallProblem: the user does not agree, or the client cannot ask.
        AskFirst: the client must ask and repeat the call.
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
        action = _answer(context, question, state)
        agreed_state = AGREED + state
    else:
        result = await request.session.elicit_form(question, SCHEMA, request.request_id)
        action = result.action
        agreed_state = ""
    if action != "accept":
        raise CallProblem("refused", f"The user did not agree to call {tool.id}.")
    return agreed_state


def _answer(context: Any, question: str, expected: str) -> str:
    """Return the answer that came with the call. Raises AskFirst if it answers another question.

    Args:
        expected: the digest of the client and the tool in the state of the question.
    """
    answer = (context.input_responses or {}).get(KEY)
    gateway_part, _ = split_state(context.request_state or "")
    if gateway_part == AGREED + expected:
        return "accept"
    if isinstance(answer, ElicitResult) and gateway_part == ASKED + expected:
        return answer.action
    params = ElicitRequestFormParams(message=question, requested_schema=SCHEMA)
    input_requests: dict[str, Any] = {KEY: ElicitRequest(params=params)}
    state = f"{ASKED}{expected}{SEPARATOR}"
    raise AskFirst(InputRequiredResult(input_requests=input_requests, request_state=state))
