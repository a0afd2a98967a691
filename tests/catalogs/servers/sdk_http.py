"""An MCP server over streamable HTTP (/mcp) and SSE (/sse) for those who know the key; it prints
the port it chose, or was given.
"""

import socket
import sys

import uvicorn
from mcp.server.mcpserver import MCPServer
from starlette.responses import PlainTextResponse

KEY = "open-sesame-4711"

server = MCPServer("clock", title="Clock", instructions="Tells the time.", version="1")


@server.tool()
def now(zone: str) -> str:
    """The time in a zone."""
    return zone


def with_key(app):
    async def guarded(scope, receive, send):
        if (
            scope["type"] == "http"
            and dict(scope["headers"]).get(b"authorization") != f"Bearer {KEY}".encode()
        ):
            await PlainTextResponse("who are you?", 401)(scope, receive, send)
        else:
            await app(scope, receive, send)

    return guarded


if __name__ == "__main__":
    app = server.streamable_http_app()
    app.router.routes.extend(server.sse_app().routes)
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 0))
    listener.listen()  # before the port is printed, so that a client can connect
    print(listener.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(with_key(app), log_level="error")).run(sockets=[listener])
