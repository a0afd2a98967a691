"""An MCP server over stdio, without the SDK, that lists the raw bytes of a file as its tools."""

import json
import sys
from pathlib import Path


def main(file: str) -> None:
    tools = Path(file).read_bytes()
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue
        result = b'{"tools": ' + tools + b"}"
        if request["method"] == "initialize":
            info = {"name": "raw", "version": "1"}
            capabilities = {"tools": {}}
            answer = {
                "protocolVersion": "2025-06-18",
                "capabilities": capabilities,
                "serverInfo": info,
            }
            result = json.dumps(answer).encode()
        head = json.dumps({"jsonrpc": "2.0", "id": request["id"]}).encode()[:-1]
        sys.stdout.buffer.write(head + b', "result": ' + result + b"}\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(sys.argv[1])
