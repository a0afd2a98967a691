"""An MCP server over streamable HTTP that lists the tools of a file; it prints its port.

    changing_http.py TOOLS.json PORT [announces]

With `announces` it declares that it announces changes, and does so at each request of /announce.
"""

import json
import socket
import sys
from pathlib import Path

import uvicorn
from mcp.server import NotificationOptions, Server
from mcp_types import ListToolsResult, Tool
from starlette.responses import PlainTextResponse
from starlette.routing import Route

TOOLS = Path(sys.argv[1])
ANNOUNCES = "announces" in sys.argv
sessions = []


class ChangingServer(Server):
    """Declares whether it announces changes."""

    def create_initialization_options(self, notification_options=None, *others, **more):
        options = NotificationOptions(tools_changed=ANNOUNCES)
        return super().create_initialization_options(options, *others, **more)


async def list_tools(context, _):
    if context.session not in sessions:
        sessions.append(context.session)
    tools = [
        Tool(name=name, description=text, input_schema={"type": "object"})
        for name, text in json.loads(TOOLS.read_text("utf-8")).items()
    ]
    return ListToolsResult(tools=tools)


async def announce(_):
    for session in sessions:
        await session.send_tool_list_changed()
    return PlainTextResponse(str(len(sessions)))


if __name__ == "__main__":
    server = ChangingServer("changing", on_list_tools=list_tools)
    app = server.streamable_http_app(custom_starlette_routes=[Route("/announce", announce)])
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", int(sys.argv[2])))
    listener.listen()  # before the port is printed, so that a client can connect
    print(listener.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listener])
