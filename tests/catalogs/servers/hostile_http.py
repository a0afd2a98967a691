"""An HTTP server without end: its paths name how it misbehaves. It prints the port it chose."""

import itertools
import json
import socketserver
import time

INITIALIZED = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "hostile", "version": "1"},
}


class Hostile(socketserver.StreamRequestHandler):
    """Answers as its path says, until the client has gone."""

    def handle(self):
        with_content = self.rfile.readline().split()
        length = 0
        while line := self.rfile.readline().strip():
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        request = json.loads(self.rfile.read(length) or b"{}")
        path = with_content[1].decode().strip("/") if len(with_content) > 1 else ""
        try:
            self.misbehave(path, request)
        except OSError:
            return

    def misbehave(self, path, request):
        if path == "headers":
            self.wfile.write(b"HTTP/1.1 200 OK\r\n")
            for number in itertools.count():
                self.wfile.write(b"X-%d: 1\r\n" % number)
                time.sleep(0.1)
        if path == "events" and request.get("method") == "tools/list":
            self.head("text/event-stream")
            while True:
                self.wfile.write(b"data: " + b"x" * 1_000_000)
        if path == "silence" and request.get("method") == "tools/list":
            self.head("text/event-stream")
            while True:
                self.wfile.write(b": still there\n\n")
                time.sleep(0.1)
        self.reply(request)

    def reply(self, request):
        if "id" not in request:
            self.wfile.write(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
            return
        body = json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": INITIALIZED})
        self.head("application/json")
        self.wfile.write(body.encode())

    def head(self, kind):
        lines = ["HTTP/1.1 200 OK", f"Content-Type: {kind}", "Connection: close"]
        self.wfile.write("\r\n".join([*lines, "", ""]).encode())


class Server(socketserver.ThreadingTCPServer):
    """One thread for each connection; threads end with the process."""

    daemon_threads = True


if __name__ == "__main__":
    with Server(("127.0.0.1", 0), Hostile) as server:
        print(server.server_address[1], flush=True)
        server.serve_forever()
