"""What `tools/list` has for a session: the gateway's own tools, pinned ones, those that the session
found, and those that fit the request's context."""

from collections.abc import Sequence
from fnmatch import fnmatchcase

from mcp_types import Tool as McpTool

from pegboard.serve.gateway import Gateway
from pegboard.serve.own_tools import mcp_tool, own_tools
from pegboard.serve.sessions import Session
from pegboard.serve.views import View
from pegboard.tokens import estimate_tokens


async def listed_tools(gateway: Gateway, session: Session, context: str = "") -> list[McpTool]:
    """Return the tools that a session is sent; each of the board's is one that its client may see.

    Args:
        context: what the request is about, in words; "" if it does not say.
    """
    fitting = await _fitting(gateway, session, context) if context.strip() else []
    view = await gateway.views.of(session.client, callable_only=True)
    ids = listed_ids(gateway, view, session)
    session.listed = names_of(view, ids)
    ids = list(dict.fromkeys([*ids, *(one for one in fitting if one in view.entries)]))
    tools = own_tools(view, gateway.settings.serve.max_k)
    for identity in ids:
        tool = await view.board.tool(identity)
        if tool is not None:
            tools.append(mcp_tool(view.call_name(identity), tool))
    session.give({view.call_name(identity): identity for identity in ids})
    sent = sum(estimate_tokens(tool.model_dump_json(exclude_none=True)) for tool in tools)
    gateway.observer.listed(session.client, session.id, len(tools), sent, view.tokens)
    return tools


def listed_ids(gateway: Gateway, view: View, session: Session) -> list[str]:
    """Return the ids of the board's tools in a session's list: pinned, then in order of discovery,
    so that a list only grows at its end.
    """
    serve = gateway.settings.serve
    pinned = [
        identity
        for identity in (view.entries if serve.pinned else ())
        if any(fnmatchcase(identity, pattern) for pattern in serve.pinned)
    ]
    found = session.found if serve.mode == "gateway" else {}
    return list(dict.fromkeys([*pinned, *(one for one in found if one in view.entries)]))


def names_of(view: View, ids: Sequence[str]) -> tuple[str, ...]:
    """Return the call names of tools."""
    return tuple(view.call_name(identity) for identity in ids)


async def _fitting(gateway: Gateway, session: Session, context: str) -> list[str]:
    """Return the ids of the tools that fit a context: all that reach the threshold (Armory)."""
    settings = gateway.settings.serve.context
    found = await gateway.finder.find(
        session.client, context, settings.max_tools, session=session.id, callable_only=True
    )
    least = settings.threshold or 0.0
    if isinstance(least, str):
        least = found.view.thresholds.get(least, 0.0)  # 0 where the release has none
    return [
        hit.tool.id for hit in found.hits if hit.probability is None or hit.probability >= least
    ]
