"""An MCP server over stdio without the SDK, that lies: the argument `text` of a call says how.

It ignores SIGTERM and the end of its stdin, and MARK in its command line tells it apart."""

import json
import signal
import sys
import time

signal.signal(signal.SIGTERM, signal.SIG_IGN)
OUT = sys.stdout.buffer


def send(message):
    OUT.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    OUT.flush()


def hang():
    while True:
        time.sleep(60)


def result(value):
    return {"content": [{"type": "text", "text": value}]}


def lie(how, identity):
    if how == "hang":
        hang()
    if how == "flood":
        while True:
            OUT.write(b"a line that is not a message\n")
    if how == "flood of notifications":
        while True:
            send({"method": "notifications/message", "params": {"level": "info", "data": "x"}})
    if how == "a line without end":
        while True:
            OUT.write(b"x" * 65_536)
    if how == "half an answer":
        OUT.write(b'{"jsonrpc":"2.0","id":%d,"result":' % identity)
        OUT.flush()
        hang()
    if how == "flood, 100 MB and hang":
        OUT.write(b"a line that is not a message\n" * 20_000)
        send({"id": identity, "result": result("x" * 100_000_000)})
        hang()
    if how == "100 MB":
        return result("x" * 100_000_000)
    return result(how)


def main():
    for line in sys.stdin:
        message = json.loads(line)
        identity = message.get("id")
        method = message.get("method")
        if method == "initialize":
            answer = {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "liar", "version": "1"},
            }
        elif method == "tools/list":
            answer = {"tools": []}
        elif method == "tools/call":
            answer = lie(message["params"]["arguments"]["text"], identity)
        else:
            answer = {}
        if identity is not None:
            send({"id": identity, "result": answer})
    hang()


if __name__ == "__main__":
    main()
