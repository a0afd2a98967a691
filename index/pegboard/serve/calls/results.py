"""How a call ends: results as MCP has them, and the errors that become one."""

import json
from typing import Any

from mcp_types import CallToolResult, TextContent

from pegboard.serve.observer import Outcome

MAX_DEPTH = 100
"""Levels of structured content: what writes it as JSON ends at about 255."""


class CallProblem(Exception):
    """A call that did not come about, or broke off; becomes a result with `isError`.

    Args:
        message: what, where, and the next step, for the model that called.
    """

    def __init__(self, outcome: Outcome, message: str) -> None:
        super().__init__(message)
        self.outcome: Outcome = outcome


def is_deep(value: Any) -> bool:
    """Whether JSON values are nested deeper than `MAX_DEPTH`."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return False
    return True


def error_result(message: str) -> CallToolResult:
    """Return a result that says what went wrong; the model reads it and may correct itself."""
    return CallToolResult(content=[TextContent(text=message)], is_error=True)


def too_large(max_bytes: int) -> str:
    """Return what is said instead of a result that has more bytes."""
    return f"The answer has more than {max_bytes:,} bytes. Ask for less, by its filters or pages."


def sendable(result: CallToolResult) -> CallToolResult:
    """Return a result as a message can carry it: halves of characters become `?`, and numbers that
    JSON does not have become null. One of them would cost the whole answer.
    """
    content = [
        block.model_copy(update={"text": _whole(block.text)})
        if isinstance(block, TextContent)
        else block
        for block in result.content
    ]
    structured = result.structured_content
    structured = None if is_deep(structured) else _plain(structured)  # the text has it all the same
    return result.model_copy(update={"content": content, "structured_content": structured})


def _plain(value: Any) -> Any:
    text = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
    return json.loads(text, parse_constant=lambda _: None)


def _whole(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
