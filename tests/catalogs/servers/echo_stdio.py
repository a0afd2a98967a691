"""An MCP server over stdio, without the SDK, that repeats its SECRET_TOKEN in every encoding: in
every field of its tools, or, with the argument `fail`, on stderr and in an error."""

import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))
from tests.encodings import encodings

ENCODINGS = list(encodings(os.environ["SECRET_TOKEN"]).values())


def echo_tool(number: int, text: str) -> dict:
    schema = {"type": "string", "description": text, "default": text, "enum": [text], "title": text}
    properties = {"plain": schema, text: {"examples": [text], "x-more": {text: [text]}}}
    inputs = {"type": "object", "properties": properties, "required": [text], "$comment": text}
    return {
        "name": f"echo_{number}" if number % 2 else f"echo {text}",
        "title": text,
        "description": f"Says {text} and more.",
        "inputSchema": inputs,
        "outputSchema": inputs,
        "annotations": {"title": text, text: text},
    }


def broken_tool(text: str) -> dict:
    return {"name": f"broken {text}", "inputSchema": {"type": text, "properties": {text: text}}}


def answer(method: str, fail: bool) -> dict:
    everything = "\n".join(ENCODINGS)
    if method == "initialize":
        info = {"name": "echo", "version": "1", "title": everything, "description": everything}
        return {
            "result": {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": info,
                "instructions": everything,
            }
        }
    if fail:
        print("\n".join(ENCODINGS[:4]), file=sys.stderr, flush=True)
        return {"error": {"code": -32603, "message": " ".join(ENCODINGS), "data": everything}}
    tools = [echo_tool(number, text) for number, text in enumerate(ENCODINGS)]
    return {"result": {"tools": [*tools, *map(broken_tool, ENCODINGS)]}}


if __name__ == "__main__":
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:
            reply = answer(request["method"], "fail" in sys.argv)
            print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **reply}), flush=True)
