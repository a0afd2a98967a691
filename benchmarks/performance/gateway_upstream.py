"""An MCP server over stdio with as many tools as its argument says; each repeats a text."""

import json
import sys

VERBS = ("list", "get", "create", "update", "delete", "export", "merge", "archive")
THINGS = ("invoice", "branch", "ticket", "calendar event", "customer", "pipeline", "photo", "rate")
PLACES = ("of a project", "of a team", "in the archive", "of last month", "for a customer")


def tools(count: int) -> list[dict[str, object]]:
    """Return the definitions of tools."""
    schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    listed: list[dict[str, object]] = []
    for number in range(count):
        verb, thing = VERBS[number % 8], THINGS[number // 8 % 8]
        name = f"{verb}_{thing.replace(' ', '_')}_{number:04}"
        text = f"{verb.title()}s each {thing} {PLACES[number // 64 % 5]}, variant {number}."
        listed.append({"name": name, "description": text, "inputSchema": schema})
    return listed


def result(method: str, params: dict[str, dict[str, str]], count: int) -> dict[str, object]:
    """Return the answer to a request."""
    if method == "initialize":
        return {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "mill", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": tools(count)}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": params["arguments"]["text"]}]}
    return {}


if __name__ == "__main__":
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            answer = result(message["method"], message.get("params") or {}, int(sys.argv[1]))
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": answer}), flush=True)
