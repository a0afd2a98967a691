"""An MCP server over stdio without the SDK, whose tools behave in the way of their names.

Each start adds a line to the file of STARTS, so that tests count them."""

import base64
import json
import os
import sys
import threading
import time
from pathlib import Path

LOCK = threading.Lock()
TEXT = {"text": {"type": "string"}}
QUESTION = {
    "message": "Really?",
    "requestedSchema": {"type": "object", "properties": {}},
    "messages": [{"role": "user", "content": {"type": "text", "text": "Really?"}}],
    "maxTokens": 5,
}


def tool(name, description, properties=None, required=(), **annotations):
    schema = {"type": "object", "properties": properties or {}, "required": list(required)}
    listed = {"name": name, "description": description, "inputSchema": schema}
    return listed | ({"annotations": annotations} if annotations else {})


TOOLS = [
    tool("echo", "Repeats a text.", TEXT, ["text"], readOnlyHint=True),
    tool("count_starts", "Counts how often the desk was opened."),
    tool("wait_forever", "Waits without an answer, and blocks nobody else."),
    tool("freeze", "Freezes the whole desk."),
    tool("die", "Ends the desk in the middle of a call."),
    tool("write_much", "Writes a long text.", {"size": {"type": "integer", "minimum": 1}}),
    tool("tell_secret", "Tells the key of the desk.", {"how": {"type": "string"}}),
    tool("fail", "Fails with an error of its own."),
    tool("burn_archive", "Burns the archive for good.", TEXT, destructiveHint=True),
    tool("ask_back", "Asks its client before it answers.", {"method": {"type": "string"}}),
    tool("report_progress", "Works in three steps."),
]


def send(message):
    with LOCK:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def text(value):
    return {"content": [{"type": "text", "text": value}]}


def everywhere(told):
    """A result with a text in each of its parts."""
    image = base64.b64encode(b"\x89PNG" + told.encode()).decode()
    content = [
        {"type": "text", "text": f"The key is {told}."},
        {"type": "image", "data": image, "mimeType": "image/png"},
        {"type": "resource", "resource": {"uri": f"desk://{told}", "blob": image}},
    ]
    return {"content": content, "structuredContent": {told: [told]}, "_meta": {"desk/key": told}}


def call(identity, params):
    name = params["name"]
    arguments = params.get("arguments") or {}
    if name == "wait_forever":
        return
    if name == "ask_back":
        send({"id": f"for {identity}", "method": arguments["method"], "params": QUESTION})
        return
    told = os.environ.get("DESK", "nothing")
    if name == "tell_secret" and arguments:
        send({"id": identity, "error": {"code": 5, "message": told, "data": told}})
        return
    if name == "freeze":
        while True:
            time.sleep(60)
    if name == "die":
        os._exit(3)
    results = {
        "echo": lambda: text(arguments["text"]),
        "count_starts": lambda: text(str(len(Path(os.environ["STARTS"]).read_text().split()))),
        "write_much": lambda: text("x" * arguments["size"]),
        "tell_secret": lambda: everywhere(told),
        "fail": lambda: {**text("There is no ink."), "isError": True},
        "burn_archive": lambda: text(f"Burnt{params.get('requestState', '')}."),
        "report_progress": lambda: text("Done."),
    }
    if name == "report_progress":
        token = params["_meta"]["progressToken"]
        for step in (1, 2, 3):
            progress = {"progressToken": token, "progress": step, "total": 3, "message": told}
            send({"method": "notifications/progress", "params": progress})
    send({"id": identity, "result": results[name]()})


def answer(message):
    identity = message.get("id")
    method = message.get("method")
    if method is None:
        asked = str(identity).removeprefix("for ")
        send({"id": int(asked) if asked.isdigit() else asked, "result": text(json.dumps(message))})
        return
    if method == "initialize":
        result = {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "desk", "version": "1"},
        }
        send({"id": identity, "result": result})
    elif method == "tools/list":
        send({"id": identity, "result": {"tools": TOOLS}})
    elif method == "tools/call":
        call(identity, message["params"])
    elif identity is not None:
        send({"id": identity, "result": {}})


if __name__ == "__main__":
    with Path(os.environ["STARTS"]).open("a") as starts:
        starts.write("started\n")
    for line in sys.stdin:
        answer(json.loads(line))
