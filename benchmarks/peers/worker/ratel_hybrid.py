"""ratel-ai: hybrid retrieval, its embeddings from an endpoint in this process."""

import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from ratel_ai import ExecutableTool, ToolCatalog

PACKAGE = "ratel-ai"
MAX_BITS = 63


def rank(tools, queries, k, encode):
    """Rank by its BM25 and vectors."""

    class Embeddings(BaseHTTPRequestHandler):
        """POST .../embeddings, as OpenAI has it."""

        protocol_version = "HTTP/1.1"  # its client keeps connections and reuses them

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
            data = [
                {"object": "embedding", "index": at, "embedding": vector}
                for at, vector in enumerate(encode(texts))
            ]
            usage = {"prompt_tokens": 0, "total_tokens": 0}
            value = {"object": "list", "model": body["model"], "data": data, "usage": usage}
            answer = json.dumps(value).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format, *args):
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Embeddings)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/v1"
    return asyncio.run(_rank(tools, queries, k, url))


async def _rank(tools, queries, k, url):
    embedding = {"url": url, "model": "benchmark"}
    catalog = ToolCatalog(method="hybrid", embedding=embedding)
    await catalog.register(
        [
            ExecutableTool(
                id=tool["id"],
                name=tool["name"],
                description=tool["description"],
                input_schema=_within_range(tool["parameters"]),
                output_schema={},
                execute=lambda arguments: None,
            )
            for tool in tools
        ]
    )
    return [[hit.tool_id for hit in await catalog.search_async(query, k)] for query in queries]


def _within_range(value):
    """The value with integers of more than 64 bits, which its JSON cannot hold, as floats."""
    if isinstance(value, dict):
        return {key: _within_range(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_within_range(item) for item in value]
    return float(value) if isinstance(value, int) and value.bit_length() > MAX_BITS else value
