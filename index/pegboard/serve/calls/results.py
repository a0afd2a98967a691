"""How a call ends: results as MCP has them, and the errors that become one."""

from mcp_types import CallToolResult, TextContent

from pegboard.serve.observer import Outcome


class CallProblem(Exception):
    """A call that did not come about, or broke off; becomes a result with `isError`.

    Args:
        message: what, where, and the next step, for the model that called.
    """

    def __init__(self, outcome: Outcome, message: str) -> None:
        super().__init__(message)
        self.outcome: Outcome = outcome


def error_result(message: str) -> CallToolResult:
    """Return a result that says what went wrong; the model reads it and may correct itself."""
    return CallToolResult(content=[TextContent(text=message)], is_error=True)


def too_large(max_bytes: int) -> str:
    """Return what is said instead of a result that has more bytes."""
    return f"The answer has more than {max_bytes:,} bytes. Ask for less, by its filters or pages."
