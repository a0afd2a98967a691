"""Calls that may destroy something: the user is asked through the client."""

import asyncio
import hashlib
import hmac
import secrets
import time
from collections.abc import Mapping
from typing import Any, Literal

from mcp_types import (
    CallToolRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from pegboard.canonical import canonical_json
from pegboard.records import Tool
from pegboard.redaction import redact_line
from pegboard.serve.calls.results import CallProblem

KEY = "confirm"
AGREED, SEPARATOR = "agreed", "|"
"""Of a state that says that the user agreed, before that of the tool's server."""
VALID_SECONDS = 600.0
"""Within which a question is to be answered."""
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


def is_destructive(tool: Tool) -> bool:
    """Whether a call may destroy something, as far as the catalog says."""
    if str(tool.annotations.get("method")).upper() == "DELETE":
        return True
    return (
        tool.annotations.get("destructiveHint") is True
        and tool.annotations.get("readOnlyHint") is not True
    )


def agreed_part(state: str) -> tuple[str, str]:
    """Return what a state says of the user's agreement, and the part for the tool's server."""
    agreed, separator, rest = state.partition(SEPARATOR)
    return (agreed, rest) if separator and agreed[:1].isdigit() else ("", state)


class Confirmation:
    """Asks the user of one request, in the way of its protocol.

    Args:
        ctx: the request.
        params: those of the call; since 2026-07-28 they may hold the answer.
        client: the client's name: an answer counts for its own question alone.
    """

    _key = secrets.token_bytes(32)

    def __init__(self, ctx: Any, params: CallToolRequestParams, client: str) -> None:
        self._ctx, self._params, self._client = ctx, params, client

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
                f"(elicitation). Whoever runs the gateway may set [serve.calls] destructive.",
            )
        question = f"Call {tool.id} with {redact_line(canonical_json(dict(arguments)), 500)}?"
        modern = self._ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        answer = self._answered(tool, arguments, question) if modern else await self._ask(question)
        if answer != "accept":
            raise CallProblem("refused", f"The user did not agree to call {tool.id}.")
        return self._state(int(time.time()), tool, arguments, AGREED) if modern else ""

    def _can_ask(self) -> bool:
        capabilities = self._ctx.session.client_capabilities
        elicitation = capabilities.elicitation if capabilities is not None else None
        return elicitation is not None and (elicitation.form is not None or elicitation.url is None)

    async def _ask(self, question: str) -> Answer:
        try:
            async with asyncio.timeout(VALID_SECONDS):
                ask = self._ctx.session.elicit_form
                return (await ask(question, SCHEMA, self._ctx.request_id)).action
        except TimeoutError:
            return "cancel"

    def _answered(self, tool: Tool, arguments: Mapping[str, Any], question: str) -> Answer:
        """Return the answer that came with the call, if it is one to this very question."""
        answers: Any = self._params.input_responses or {}
        answer, state = answers.get(KEY), self._params.request_state or ""
        agreed, _ = agreed_part(state)
        if agreed and self._is_own(agreed, tool, arguments, AGREED):
            return "accept"
        if isinstance(answer, ElicitResult) and self._is_own(state, tool, arguments):
            return answer.action
        params = ElicitRequestFormParams(message=question, requested_schema=SCHEMA)
        raise AskFirst(
            InputRequiredResult(
                input_requests={KEY: ElicitRequest(params=params)},
                request_state=self._state(int(time.time()), tool, arguments),
            )
        )

    def _is_own(
        self, state: str, tool: Tool, arguments: Mapping[str, Any], purpose: str = KEY
    ) -> bool:
        """Whether a state was made for this call, and not long ago."""
        asked = state.partition(".")[0]
        if not asked.isdigit() or not 0 <= time.time() - int(asked) <= VALID_SECONDS:
            return False
        expected = self._state(int(asked), tool, arguments, purpose)
        return hmac.compare_digest(state.encode(), expected.encode())

    def _state(
        self, asked: int, tool: Tool, arguments: Mapping[str, Any], purpose: str = KEY
    ) -> str:
        said = canonical_json([asked, purpose, self._client, tool.id, tool.digest, dict(arguments)])
        digest = hmac.new(self._key, said.encode("utf-8", "replace"), hashlib.sha256)
        return f"{asked}.{digest.hexdigest()}"
