"""The client's request that is being answered."""

from typing import Any

from fastmcp.server.context import Context
from fastmcp.server.dependencies import get_context
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from pegboard.serve.access.clients import HTTP_TOKEN, bearer_token
from pegboard.serve.errors import CallProblem


def client_request() -> Context | None:
    """Return the MCP request that is being answered; None outside one."""
    try:
        context = get_context()
    except RuntimeError:
        return None
    return context if context.request_context is not None else None


def is_modern(request: Context | None) -> bool:
    """Whether a request uses the protocol since 2026-07-28."""
    context: Any = request.request_context if request else None
    return context is not None and context.protocol_version in MODERN_PROTOCOL_VERSIONS


def client_token() -> str:
    """Return the bearer token of the request that is being answered.

    Raises:
        CallProblem: the request has no bearer token.
    """
    request = client_request()
    context: Any = request.request_context if request else None
    if context and context.request:
        token = bearer_token(context.request.headers)
    else:
        token = HTTP_TOKEN.get()
    if not token:
        raise CallProblem(
            "refused",
            "The server of this tool takes the client's own token, and the request has no bearer "
            "token. Call it over HTTP, with Authorization: Bearer ...",
        )
    return token
