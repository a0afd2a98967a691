"""An MCP server over streamable HTTP without the SDK, that forgets its sessions when it is told to,
and answers calls with what it is given."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from uuid import uuid4


class Forgetful(ThreadingHTTPServer):
    """The server.

    Attributes:
        sessions: those that it knows.
        unknown: its answer to a request in a session that it does not know: the status, and a text
            or the `error` of JSON-RPC.
        answers: its answers to the next calls: a status with a text, or the members of JSON-RPC.
        calls: the parameters of the calls that it carried out.
        opened: how many sessions were opened.
    """

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}/mcp"
        self.sessions = set()
        self.unknown = (404, "")
        self.answers = []
        self.calls = []
        self.opened = 0


class Handler(BaseHTTPRequestHandler):
    """Answers a request."""

    server: Forgetful
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        message = json.loads(body)
        method = message.get("method")
        if method == "server/discover":
            return self.reply(404, "")
        if method == "initialize":
            return self.initialize(message)
        if self.headers.get("mcp-session-id") not in self.server.sessions:
            status, said = self.server.unknown
            return self.reply(status, said, message)
        if "id" not in message:
            return self.reply(202, "")
        if method != "tools/call":
            return self.send_json(200, {"id": message["id"], "result": {"tools": []}})
        self.server.calls.append(message["params"])
        if not self.server.answers:
            result = {"content": [{"type": "text", "text": "done"}]}
            return self.send_json(200, {"id": message["id"], "result": result})
        answer = self.server.answers.pop(0)
        if isinstance(answer, tuple):
            return self.reply(*answer, message)
        return self.send_json(200, {"id": message["id"], **answer})

    def do_GET(self):
        self.reply(405, "")

    def do_DELETE(self):
        self.reply(405, "")

    def initialize(self, message):
        self.server.opened += 1
        session = uuid4().hex
        self.server.sessions.add(session)
        result = {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "forgetful", "version": "1"},
        }
        self.send_json(200, {"id": message["id"], "result": result}, session)

    def reply(self, status, said, message=None):
        if isinstance(said, dict):
            identity = None if message is None else message.get("id")
            return self.send_json(status, {"id": identity, "error": said})
        return self.send(status, "text/plain", said.encode())

    def send_json(self, status, message, session=""):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.send(status, "application/json", body, session)

    def send(self, status, kind, body, session=""):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        if session:
            self.send_header("mcp-session-id", session)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass
