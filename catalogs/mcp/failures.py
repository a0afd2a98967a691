"""Why a live MCP server could not be listed, in words: from what the SDK raised, and from what was
heard on the way.
"""

import re
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from catalogs.mcp.config import Server, ServerProblem
from pegboard.redaction import redact, redact_line

STDERR_LINES, STDERR_SHOWN = 5, 800
CHATTER = re.compile(r"\b(INFO|DEBUG)\b|Processing request of type|npm (notice|warn)")
"""Lines of stderr that tell nothing of a failure."""
TERMINAL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass(slots=True)
class Talk:
    """How far a conversation came, and what was heard besides answers, for the message if it
    fails.
    """

    secrets: tuple[str, ...]
    stage: str = "the connection"
    status: int | None = None
    garbage: str = ""

    async def heard(self, error: Exception) -> None:
        """Keep the first line that was not a message; some servers greet on stdout and are fine
        afterwards.
        """
        if not self.garbage and isinstance(error, ValidationError):
            self.garbage = self.short(error.errors(include_url=False)[0]["input"], 200)

    async def saw(self, response: Any) -> None:
        """Keep the status of an HTTP answer that is an error, which the SDK leaves out of its
        own.
        """
        if response.status_code >= 400 and response.request.method == "POST":
            self.status = response.status_code

    def short(self, value: Any, limit: int = 300) -> str:
        """One line of at most `limit` characters, without secrets: these go first, since half a
        secret is not found.
        """
        return redact_line(str(value), limit, self.secrets)


def explain(error: BaseException | None, server: Server, talk: Talk) -> str:
    """What happened, for a person. The SDK raises groups, in which the first real error is the
    cause.
    """
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
        case MCPError(code=code) if code == CONNECTION_CLOSED:
            return f"it ended before it answered {talk.stage}; try it by hand"
        case MCPError():
            status = f" (HTTP {talk.status})" if talk.status else ""
            return (
                f"it answered {talk.stage} with the error {error.code}{status}: "
                f"{talk.short(error.message)}"
            )
        case ValidationError():
            problems = "; ".join(
                f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()[:3]
            )
            return f"its answer to {talk.stage} is not valid MCP: {problems}"
        case httpx2.HTTPStatusError():
            return f"it answered {talk.stage} with HTTP {error.response.status_code}"
        case httpx2.TransportError() | OSError():
            return f"it cannot be reached: {talk.short(error) or type(error).__name__}"
        case _:
            return f"{type(error).__name__}: {talk.short(error)}"


def evidence(talk: Talk, stderr: str) -> list[str]:
    """What the server wrote where it should not, and the end of what it wrote to stderr, as
    sentences.
    """
    found: list[str] = []
    if talk.garbage:
        found.append(f"It wrote on stdout, which is for JSON-RPC only: {talk.garbage!r}")
    text = redact(TERMINAL.sub("", stderr), talk.secrets)
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    if telling := [line for line in lines if not CHATTER.search(line)] or lines:
        last = "\n".join(telling[-STDERR_LINES:])
        found.append(f"The end of its stderr: {last[-STDERR_SHOWN:]}")
    return found
