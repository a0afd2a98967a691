"""Rank tools by one adapter: `python WORKER ADAPTER`, with JSON lines on stdin and stdout.

in      {"tools": [{"id", "name", "description", "agent", "parameters"}, ...],
        "queries": [...], "k": 10}
out     {"encode": [texts]}, answered by {"vectors": [[numbers], ...]}; any number of times
out     {"rankings": [[ids], ...], "version": "1.2.3"}, or {"error": "..."}
"""

import importlib
import json
import os
import sys
import threading
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any


class Channel:
    """The lines to and from the benchmark; what libraries print goes to stderr instead."""

    def __init__(self) -> None:
        self._out = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)
        self._lock = threading.Lock()
        self._vectors: dict[str, list[float]] = {}

    def read(self) -> Any:
        """The next line."""
        return json.loads(sys.stdin.readline())

    def write(self, value: Any) -> None:
        """Write a line."""
        self._out.write(json.dumps(value) + "\n")
        self._out.flush()

    def encode(self, texts: Sequence[str]) -> list[list[float]]:
        """A vector for each text, from any thread; no text is asked for twice."""
        with self._lock:
            missing = [text for text in dict.fromkeys(texts) if text not in self._vectors]
            if missing:
                self.write({"encode": missing})
                self._vectors |= zip(missing, self.read()["vectors"], strict=True)
        return [self._vectors[text] for text in texts]


def main() -> None:
    """Answer one request."""
    channel = Channel()
    request = channel.read()
    try:
        adapter = importlib.import_module(sys.argv[1])
        installed = version(adapter.PACKAGE)
        channel.encode(request["queries"])  # at once: adapters ask query by query
        rankings = adapter.rank(request["tools"], request["queries"], request["k"], channel.encode)
    except Exception as error:
        channel.write({"error": f"{type(error).__name__}: {error}"})
        raise
    channel.write({"rankings": rankings, "version": installed})


if __name__ == "__main__":
    main()
