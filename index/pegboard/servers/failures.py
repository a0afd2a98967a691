"""Why a conversation with an MCP server failed, in words: from what the SDK raised, and from what
the server wrote besides messages.
"""

import re
from dataclasses import dataclass
from typing import Any

import httpx2
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED
from pydantic import ValidationError

from pegboard.redaction import redact, redact_line
from pegboard.servers.config import Server, ServerProblem

STDERR_LINES, STDERR_SHOWN = 5, 800
CHATTER = re.compile(r"\b(INFO|DEBUG)\b|Processing request of type|npm (notice|warn)")
"""Lines of stderr that tell nothing of a failure."""
TERMINAL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass(slots=True)
class Progress:
    """How far a conversation came, and stray output, for the message if it fails.

    Attributes:
        stage: what the server is to answer.
        status: of its last HTTP error.
        stray_output: the first line that was no message.
    """

    server: Server
    stage: str = "the connection"
    status: int | None = None
    stray_output: str = ""

    def on_invalid_message(self, error: ValidationError) -> None:
        """Keep the first line that was no message; some servers greet on stdout and then work."""
        if not self.stray_output:
            self.stray_output = self._short(error.errors(include_url=False)[0]["input"], 200)

    async def on_response(self, response: Any) -> None:
        """Keep the status of an HTTP error, which the SDK leaves out of its own."""
        if response.status_code >= 400 and response.request.method == "POST":
            self.status = response.status_code

    def reason(self, error: BaseException | None) -> str:
        """Return what happened, without secrets. The SDK raises groups, in which the first real
        error is the cause.
        """
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        return redact(self._reason(error), self.server.secrets)

    def with_evidence(self, why: str, stderr: str) -> str:
        """Return a reason with the server's stray output and the end of its stderr."""
        sentences = [why]
        if self.stray_output:
            sentences.append(
                f"It wrote on stdout, which is for JSON-RPC only: {self.stray_output!r}"
            )
        text = redact(TERMINAL.sub("", stderr), self.server.secrets)
        lines = [line.rstrip() for line in text.splitlines() if line.strip()]
        if informative := [line for line in lines if not CHATTER.search(line)] or lines:
            last = "\n".join(informative[-STDERR_LINES:])
            sentences.append(f"The end of its stderr: {last[-STDERR_SHOWN:]}")
        return redact(". ".join(sentences), self.server.secrets)

    def _reason(self, error: BaseException | None) -> str:
        command = repr(self.server.command)
        match error:
            case ServerProblem():
                return str(error)
            case FileNotFoundError():
                return f"its command {command} was not found; install it, or give its full path"
            case PermissionError():
                return f"its command {command} may not be run; check its permissions"
            case MCPError(code=code, message="Connection closed") if code == CONNECTION_CLOSED:
                return f"it ended before it answered {self.stage}; try it by hand"
            case MCPError():
                status = f" (HTTP {self.status})" if self.status else ""
                return (
                    f"it answered {self.stage} with the error {error.code}{status}: "
                    f"{self._short(error.message)}"
                )
            case ValidationError():
                problems = "; ".join(
                    f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()[:3]
                )
                return f"its answer to {self.stage} is not valid MCP: {problems}"
            case httpx2.HTTPStatusError():
                return f"it answered {self.stage} with HTTP {error.response.status_code}"
            case httpx2.TransportError() | OSError():
                return f"it cannot be reached: {self._short(error) or type(error).__name__}"
            case _:
                return f"{type(error).__name__}: {self._short(error)}"

    def _short(self, value: Any, limit: int = 300) -> str:
        return redact_line(str(value), limit, self.server.secrets)
