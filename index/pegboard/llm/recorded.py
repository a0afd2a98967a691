"""Recorded replies: an LLM's answers kept in a folder, so that a run can be repeated without it.

    FOLDER/*.jsonl       the replies, one in each line; see `RecordedReply`
    FOLDER/open.jsonl    the requests that nothing answers yet, in the format of batch APIs

A reply is found by the key of its request, which is the digest of what the model reads: messages,
reply schema and tools. The limits of a reply, the temperature and the model's name are not part of
it, so replies to the same prompt can be read under another limit.

Open requests have OpenAI's batch format, which other providers and local servers read, too;
`pegboard.llm.answers` reads what answers them.

Every line is appended as a whole, and a line that was cut off by a kill is ignored, so a run may be
interrupted anywhere and repeated.
"""

import json
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, cast, get_args

from pegboard.canonical import digest
from pegboard.errors import CompletionError, ConfigurationError
from pegboard.llm import ChatReply, ChatRequest, Completer, ToolCall, openai_fields
from pegboard.text.redaction import redact_credentials
from pegboard.tokens import estimate_tokens

MissingReplies = Literal["ask", "write", "fail"]
"""What happens to a request without a recorded reply: ask the model and record its answer, write
the request to `open.jsonl`, or neither."""
OPEN_FILE = "open.jsonl"
NEW_FILE = "recorded.jsonl"
"""The file to which replies of a model are appended."""
KEY_DIGITS = 32


def request_key(request: ChatRequest) -> str:
    """Return the key of a request: 32 hexadecimal digits."""
    messages = [[message.role, message.content] for message in request.messages]
    return digest(messages, request.schema, list(request.tools))[:KEY_DIGITS]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedReply:
    """A reply as the folder keeps it.

    Attributes:
        key: of its request.
        calls: the tool calls, each as name and arguments.
        author: who wrote it: the model that answered, or what a person or program is.
        date: when it was written, as year-month-day.
        prompt_tokens: as the server counted them, or estimated from the length; likewise
            `completion_tokens`.
        cost_usd: None if unknown.
    """

    key: str
    text: str
    author: str
    date: str
    finish_reason: str = "stop"
    calls: tuple[tuple[str, str], ...] = ()
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = None

    def to_json(self) -> str:
        """Return one line of JSON, without the fields that have their defaults."""
        values = asdict(self)
        for name in ("finish_reason", "calls", "cost_usd"):
            if values[name] in ("stop", (), None):
                del values[name]
        return json.dumps(values, ensure_ascii=False)

    def to_chat_reply(self) -> ChatReply:
        """Return the reply as a completer gives it."""
        return ChatReply(
            text=self.text,
            finish_reason=self.finish_reason,
            model=self.author,
            prompt_tokens=self.prompt_tokens,
            completion_tokens=self.completion_tokens,
            cost_usd=self.cost_usd,
            seconds=0.0,
            calls=tuple(ToolCall(name, arguments) for name, arguments in self.calls),
        )


class ReplyFolder:
    """Recorded replies and open requests in a folder. Threads may share one.

    Raises:
        ConfigurationError: the folder cannot be read, or a file in it holds something else.
    """

    def __init__(self, folder: str | Path) -> None:
        self.path = Path(folder)
        self._lock = threading.Lock()
        self._replies: dict[str, RecordedReply] = {}
        self._open: dict[str, Mapping[str, Any]] = {}
        if not self.path.exists():
            return
        if not self.path.is_dir():
            raise ConfigurationError(f"{self.path} is a file. Expected a folder of replies.")
        for file in sorted(self.path.glob("*.jsonl")):
            if file.name == OPEN_FILE:
                self._open |= {str(line.get("custom_id")): line for line in _json_lines(file)}
            else:
                self._replies |= {reply.key: reply for reply in _read_replies(file)}
        for key in self._open.keys() & self._replies.keys():
            del self._open[key]

    def replies(self) -> list[RecordedReply]:
        """Return all replies, sorted by key."""
        return [self._replies[key] for key in sorted(self._replies)]

    def open_requests(self) -> dict[str, Mapping[str, Any]]:
        """Return the open requests by key, in the order in which they were asked, each as a line of
        a batch file.
        """
        return dict(self._open)

    def find(self, key: str) -> RecordedReply | None:
        """Return the reply to the request with that key, if there is one."""
        return self._replies.get(key)

    def add(self, replies: Iterable[RecordedReply], file: str = NEW_FILE) -> None:
        """Append replies to a file of the folder. A later reply to the same request counts."""
        replies = list(replies)
        with self._lock:
            self._append(file, [reply.to_json() for reply in replies])
            for reply in replies:
                self._replies[reply.key] = reply
                self._open.pop(reply.key, None)

    def add_open(self, request: ChatRequest, model: str) -> None:
        """Write a request to `open.jsonl`, unless it is there."""
        key = request_key(request)
        with self._lock:
            if key in self._open:
                return
            line = batch_line(key, request, model)
            self._append(OPEN_FILE, [json.dumps(line, ensure_ascii=False)])
            self._open[key] = line

    def keep_open(self) -> None:
        """Rewrite `open.jsonl` with the requests that are still open."""
        file = self.path / OPEN_FILE
        with self._lock:
            if not self._open:
                file.unlink(missing_ok=True)
                return
            beside = file.with_name(f".{OPEN_FILE}.new")
            lines = (json.dumps(line, ensure_ascii=False) for line in self._open.values())
            beside.write_text("".join(f"{line}\n" for line in lines), "utf-8")
            beside.replace(file)

    def _append(self, file: str, lines: list[str]) -> None:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            text = "".join(f"{line}\n" for line in lines)
            # One write, so that processes may share a file; behind a line that a kill cut off.
            with (self.path / file).open("ab+") as stream:
                if stream.tell() and _last_byte(stream) != b"\n":
                    text = f"\n{text}"
                stream.write(text.encode("utf-8", "surrogatepass"))
        except OSError as error:
            raise ConfigurationError(
                f"{self.path / file} cannot be written: {error.strerror}. Give another folder for "
                "replies."
            ) from error


class RecordedCompleter:
    """A completer that answers from a folder of replies.

    Args:
        name: the model, for messages and the batch file.
        missing: what happens to a request without a reply.
        completer: asked for what is missing; needed for `ask`.

    Attributes:
        folder: the replies.
        missing_keys: the requests of this run that had no reply, if the model was not asked.
    """

    def __init__(
        self,
        name: str,
        folder: ReplyFolder,
        missing: MissingReplies = "ask",
        completer: Completer | None = None,
    ) -> None:
        if missing == "ask" and completer is None:
            raise ConfigurationError("missing_replies = 'ask' needs a model to ask.")
        self.name = name
        self.folder = folder
        self.missing_keys: set[str] = set()
        self._missing = missing
        self._completer = completer

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Return the recorded reply, or as `missing` says.

        Raises:
            CompletionError: there is no reply (kind `unrecorded`), or the model did not answer.
        """
        key = request_key(request)
        recorded = self.folder.find(key)
        if recorded is not None:
            return recorded.to_chat_reply()
        if self._missing == "ask":
            assert self._completer is not None
            reply = await self._completer.complete(request)
            self.folder.add([_recorded(key, reply)])
            return reply
        self.missing_keys.add(key)
        if self._missing == "write":
            self.folder.add_open(request, self.name)
        raise CompletionError("no recorded reply", kind="unrecorded")

    def price_per_token(self) -> tuple[float, float] | None:
        """Return the model's price; none is paid where only recorded replies are read."""
        if self._completer is None:
            return 0.0, 0.0
        price: Any = getattr(self._completer, "price_per_token", lambda: None)
        return price()

    def count_tokens(self, text: str) -> int:
        """Return about how many tokens a text has."""
        count: Any = getattr(self._completer, "count_tokens", None)
        return count(text) if count else round(estimate_tokens(text))

    async def aclose(self) -> None:
        """Close the model's connections."""
        close: Any = getattr(self._completer, "aclose", None)
        if close is not None:
            await close()

    def missing_message(self) -> str:
        """Return what to do about the requests without a reply; empty if there are none."""
        if not self.missing_keys:
            return ""
        count = len(self.missing_keys)
        requests = "1 request has" if count == 1 else f"{count} requests have"
        if self._missing == "fail":
            return (
                f"{requests} no recorded reply in {self.folder.path}. Ask the model for them "
                "(missing_replies = 'ask'), or write them to a batch file ('write')."
            )
        return (
            f"{requests} no recorded reply and now stand in {self.folder.path / OPEN_FILE}, in the "
            "format of batch APIs. Have them answered, read the answers by `pegboard replies read "
            f"ANSWERS.jsonl --replies {self.folder.path} --author NAME`, and run again."
        )


def recorded_completer(
    name: str,
    folder: str | Path | None,
    missing: MissingReplies | None,
    make: Callable[[], Completer],
) -> Completer:
    """Return the model that `make` returns, behind the replies of a folder if one is given.

    Args:
        make: called without arguments, and only if the model may be asked: it loads LiteLLM.

    Raises:
        ConfigurationError: `missing` is given without a folder or has an invalid value.
    """
    if missing is not None and missing not in get_args(MissingReplies):
        expected = ", ".join(get_args(MissingReplies))
        raise ConfigurationError(f"missing_replies is {missing!r}, expected one of: {expected}.")
    if folder is None:
        if missing is not None:
            raise ConfigurationError(
                "missing_replies needs a folder of recorded replies: give it as replies."
            )
        return make()
    missing = missing or "ask"
    completer = make() if missing == "ask" else None
    return RecordedCompleter(name, ReplyFolder(folder), missing, completer)


def missing_message(completer: Completer) -> str:
    """Return `RecordedCompleter.missing_message` of a completer; empty for any other completer."""
    message: Any = getattr(completer, "missing_message", lambda: "")()
    return str(message)


def batch_line(key: str, request: ChatRequest, model: str) -> dict[str, Any]:
    """Return a request as a line of OpenAI's batch files."""
    body = {
        "model": model.rpartition("/")[2],
        "max_tokens": request.max_tokens,
        **openai_fields(request),
    }
    return {"custom_id": key, "method": "POST", "url": "/v1/chat/completions", "body": body}


def _recorded(key: str, reply: ChatReply) -> RecordedReply:
    from datetime import UTC, datetime

    return RecordedReply(
        key=key,
        text=redact_credentials(reply.text),
        author=reply.model,
        date=datetime.now(UTC).date().isoformat(),
        finish_reason=reply.finish_reason,
        calls=tuple((call.name, call.arguments) for call in reply.calls),
        prompt_tokens=reply.prompt_tokens,
        completion_tokens=reply.completion_tokens,
        cost_usd=reply.cost_usd,
    )


def _read_replies(file: Path) -> Iterator[RecordedReply]:
    for line in _json_lines(file):
        try:
            values: dict[str, Any] = dict(line)
            calls = values.pop("calls", ())
            yield RecordedReply(
                **values, calls=tuple((str(name), str(text)) for name, text in calls)
            )
        except (TypeError, ValueError) as error:
            raise ConfigurationError(
                f"{file} holds a line that is no recorded reply: {error}. Expected key, text, "
                "author and date."
            ) from error


def _json_lines(file: Path) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of a file, without lines that a kill cut off."""
    for _, line in numbered_lines(file):
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            yield cast("dict[str, Any]", value)


def numbered_lines(file: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file that are not blank, with their numbers.

    Raises ConfigurationError if it cannot be read.
    """
    try:
        text = file.read_text("utf-8", "surrogatepass")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigurationError(f"{file} cannot be read: {reason}.") from error
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, line


def _last_byte(stream: Any) -> bytes:
    stream.seek(-1, os.SEEK_END)
    return stream.read(1)
