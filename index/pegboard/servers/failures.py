"""Why a live MCP server could not be listed, in words: from what the SDK raised, and from its stray
output.
"""

import re
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from pegboard.redaction import redact, redact_line
from pegboard.servers.config import Server, ServerProblem

STDERR_LINES, STDERR_SHOWN = 5, 800
CHATTER = re.compile(r"\b(INFO|DEBUG)\b|Processing request of type|npm (notice|warn)")
"""Lines of stderr that tell nothing of a failure."""
TERMINAL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass(slots=True)
class Progress:
    """How far the listing of a server came, and stray output, for the message if it fails."""

    secrets: tuple[str, ...]
    stage: str = "the connection"
    status: int | None = None
    stray_output: str = ""

    async def on_invalid_message(self, error: Exception) -> None:
        """Keep the first line that was no message; some servers greet on stdout and then work."""
        if not self.stray_output and isinstance(error, ValidationError):
            self.stray_output = self.short(error.errors(include_url=False)[0]["input"], 200)

    async def on_response(self, response: Any) -> None:
        """Keep the status of an HTTP error, which the SDK leaves out of its own."""
        if response.status_code >= 400 and response.request.method == "POST":
            self.status = response.status_code

    def short(self, value: Any, limit: int = 300) -> str:
        """Return one line of at most `limit` characters, without secrets."""
        return redact_line(str(value), limit, self.secrets)


def explain_failure(error: BaseException | None, server: Server, progress: Progress) -> str:
    """Say what happened. The SDK raises groups, in which the first real error is the cause."""
    import httpx2
    from mcp.shared.exceptions import MCPError
    from mcp_types import CONNECTION_CLOSED

    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    match error:
        case ServerProblem():
            return str(error)
        case FileNotFoundError():
            return (
                f"its command {server.command!r} was not found; install it, or give its full path"
            )
        case PermissionError():
            return f"its command {server.command!r} may not be run; check its permissions"
        case MCPError(code=code, message="Connection closed") if code == CONNECTION_CLOSED:
            return f"it ended before it answered {progress.stage}; try it by hand"
        case MCPError():
            status = f" (HTTP {progress.status})" if progress.status else ""
            return (
                f"it answered {progress.stage} with the error {error.code}{status}: "
                f"{progress.short(error.message)}"
            )
        case ValidationError():
            problems = "; ".join(
                f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()[:3]
            )
            return f"its answer to {progress.stage} is not valid MCP: {problems}"
        case httpx2.HTTPStatusError():
            return f"it answered {progress.stage} with HTTP {error.response.status_code}"
        case httpx2.TransportError() | OSError():
            return f"it cannot be reached: {progress.short(error) or type(error).__name__}"
        case _:
            return f"{type(error).__name__}: {progress.short(error)}"


def evidence(progress: Progress, stderr: str) -> list[str]:
    """Return the server's stray output and the end of its stderr, as sentences."""
    sentences: list[str] = []
    if progress.stray_output:
        sentences.append(
            f"It wrote on stdout, which is for JSON-RPC only: {progress.stray_output!r}"
        )
    text = redact(TERMINAL.sub("", stderr), progress.secrets)
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    if informative := [line for line in lines if not CHATTER.search(line)] or lines:
        last = "\n".join(informative[-STDERR_LINES:])
        sentences.append(f"The end of its stderr: {last[-STDERR_SHOWN:]}")
    return sentences
