"""What an agent answered, kept as JSON lines: on the disk before anything else happens, so that no
reply is ever bought twice.
"""

import json
import logging
import os
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pegboard.errors import ConfigurationError
from pegboard.llm import ChatReply, ToolCall

logger = logging.getLogger(__name__)

NAME = "replies.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentReply:
    """One reply of an agent, as it came.

    Attributes:
        key: what was asked (`agent_asking.key_of`).
        query: the id of the golden query.
        tools: how many tools the agent was given.
        counted: whether the server counted the tokens of the prompt; otherwise they are an
            estimate.
    """

    key: str
    model: str
    calling: str
    query: str
    tools: int
    text: str
    calls: tuple[ToolCall, ...]
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int
    counted: bool
    cost_usd: float | None
    seconds: float
    at: str


def agent_reply(reply: ChatReply, *, key: str, calling: str, query: str, tools: int) -> AgentReply:
    """A completer's reply as it is kept."""
    return AgentReply(
        key=key,
        model=reply.model,
        calling=calling,
        query=query,
        tools=tools,
        text=reply.text,
        calls=reply.calls,
        finish_reason=reply.finish_reason,
        prompt_tokens=reply.prompt_tokens,
        completion_tokens=reply.completion_tokens,
        counted=reply.counted,
        cost_usd=reply.cost_usd,
        seconds=round(reply.seconds, 3),
        at=datetime.now(UTC).isoformat(timespec="seconds"),
    )


class AgentReplies:
    """The replies that a folder keeps. Several runs may write to it one after the other.

    Args:
        folder: is made where it is missing, with the first reply.

    Raises ConfigurationError if what is there cannot be read.
    """

    def __init__(self, folder: str | Path) -> None:
        self.path = Path(folder) / NAME
        self._known: dict[str, AgentReply] = {}
        self._whole = True
        try:
            text = self.path.read_text("utf-8") if self.path.exists() else ""
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(
                f"{self.path} cannot be read: {error}. Name another folder."
            ) from error
        self._whole = not text or text.endswith("\n")
        for line in text.split("\n"):
            if reply := _read(line):
                self._known[reply.key] = reply
            elif line.strip():
                logger.warning("%s: a line that a kill cut in two is passed over", self.path)

    def __len__(self) -> int:
        return len(self._known)

    def get(self, key: str) -> AgentReply | None:
        """The reply to a question; None if it was never answered."""
        return self._known.get(key)

    def add(self, reply: AgentReply) -> None:
        """Keep a reply; it is on the disk when this returns. Raises ConfigurationError where
        nothing can be written.
        """
        line = json.dumps(asdict(reply), ensure_ascii=False) + "\n"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(line if self._whole else f"\n{line}")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise ConfigurationError(
                f"{self.path} cannot be written: {error.strerror}. Choose a folder that can be."
            ) from error
        self._whole = True
        self._known[reply.key] = reply


def _read(line: str) -> AgentReply | None:
    try:
        row: dict[str, Any] = json.loads(line)
        row["calls"] = tuple(ToolCall(**one) for one in row["calls"])
        return AgentReply(**row)
    except (ValueError, TypeError, KeyError):
        return None
