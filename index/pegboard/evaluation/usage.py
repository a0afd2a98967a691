"""Example requests learned from a gateway's log: what clients searched for and then called.

Clients write the log, so no single client is trusted. A request becomes an example of a tool only
if enough clients with credentials made it in the same words and then called that tool: text that
only one person wrote, such as a name or a number, is never indexed. Each client has one vote on a
request, and can withdraw only its own vote.
"""

import json
import re
from collections import Counter, OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pegboard.errors import ConfigurationError
from pegboard.evaluation.golden import GoldenQuery
from pegboard.text.redaction import HIDDEN_CREDENTIAL, redact, redact_credentials
from pegboard.text.secret_values import HIDDEN
from pegboard.text.words import query_words

MIN_CLIENTS = 2
"""Minimum number of different clients behind an example."""
PER_TOOL = 5
"""Maximum number of examples of a tool."""
MAX_CHARACTERS = 500
"""Maximum number of characters of an example; longer requests are ignored."""
MAX_SESSIONS = 100_000
"""Maximum number of sessions whose last requests are held while a log is read."""
LAST_REQUESTS = 50
"""Number of a session's last requests that a call may belong to."""
MINUTES = 5
"""Maximum minutes between a request and its call if neither has a session."""

Words = frozenset[str]
Requests = list[tuple[datetime, str, frozenset[str]]]
"""The last requests of a session: their time, text and the ids of the tools that they found."""
Sessions = OrderedDict[tuple[str, str], Requests]
"""Requests by client and session; the session is "" for requests without one."""


@dataclass(frozen=True, slots=True)
class Use:
    """A request after which a tool that it had found was called.

    Attributes:
        credentials: whether the client had any.
        time: of the call.
    """

    query: str
    tool: str
    client: str
    credentials: bool
    time: datetime


@dataclass(slots=True)
class LoggedRequest:
    """A request of a log: how often it was made, and the ids of the tools that it found last, best
    first.
    """

    count: int = 0
    tools: tuple[str, ...] = ()


@dataclass(slots=True)
class Usage:
    """The content of a request log.

    Attributes:
        uses: uses of tools, in the order of the calls.
        pairs: consecutive calls in a session, as uses of the second tool; `query` is the id of the
            first tool.
        requests: requests by their text, in the order of their first occurrence.
        finds: the number of requests.
        invalid: the number of lines that are not valid log lines.
    """

    uses: list[Use] = field(default_factory=list[Use])
    pairs: list[Use] = field(default_factory=list[Use])
    requests: dict[str, LoggedRequest] = field(default_factory=dict[str, LoggedRequest])
    finds: int = 0
    invalid: int = 0


@dataclass(frozen=True, slots=True)
class Learned:
    """The examples, as golden queries of origin `logs` with one tool each, and what was left out.

    Attributes:
        few: the number of requests that too few clients made before calling the same tool.
        secret: the number of requests with a secret.
    """

    examples: tuple[GoldenQuery, ...]
    few: int
    secret: int


def read_usage(log: Path) -> Usage:
    """Read a request log with its rotated files, the oldest first.

    Raises:
        ConfigurationError: the log cannot be read.
    """
    usage = Usage()
    sessions = Sessions()
    last_tools = OrderedDict[tuple[str, str], str]()
    for line in _lines(log):
        event = _event(line)
        if event is None:
            usage.invalid += 1
        elif event["event"] == "find":
            _add_find(usage, sessions, event)
        elif event["event"] == "call":
            _add_call(usage, sessions, event)
            _add_pair(usage, last_tools, event)
    return usage


def learn(usage: Usage, min_clients: int = MIN_CLIENTS) -> Learned:
    """Return the requests that are examples of their tools, the earliest learned first, so that
    later clients cannot displace what earlier ones taught.

    Args:
        min_clients: the number of different clients needed for the same words and tool; with 1,
            clients without credentials count, too.
    """
    requests: dict[Words, list[Use]] = {}
    for use in usage.uses:
        words = frozenset(query_words(use.query))
        if words and len(use.query) <= MAX_CHARACTERS and (use.credentials or min_clients == 1):
            requests.setdefault(words, []).append(use)
    taught: list[tuple[datetime, str, str]] = []
    few = secret = 0
    for uses in requests.values():
        supported = {
            tool: votes for tool, votes in _votes(uses).items() if len(votes) >= min_clients
        }
        if not supported:
            few += 1
        for tool, votes in supported.items():
            # The shortest text has the least of what single clients add to the common words.
            query = min((use.query for use in votes.values()), key=lambda text: (len(text), text))
            if _is_public(query):
                times = sorted(use.time for use in votes.values())
                learned_at = times[min_clients - 1]
                taught.append((learned_at, query, tool))
            else:
                secret += 1
    examples: list[GoldenQuery] = []
    candidates: Counter[str] = Counter()
    for _, query, tool in sorted(taught):
        candidates[tool] += 1
        if candidates[tool] <= PER_TOOL:
            examples.append(GoldenQuery(query, (tool,), origin="logs"))
    return Learned(tuple(examples), few, secret)


def learn_sequences(usage: Usage, min_clients: int = MIN_CLIENTS) -> list[dict[str, Any]]:
    """Return the tools that are called after another: the ids `after` and `next`, and the number of
    `clients`.

    As in `learn`, each client has one vote on what follows a tool.
    """
    pairs: dict[str, list[Use]] = {}
    for pair in usage.pairs:
        if pair.credentials or min_clients == 1:
            pairs.setdefault(pair.query, []).append(pair)
    return [
        {"after": tool, "next": following, "clients": len(clients)}
        for tool, uses in sorted(pairs.items())
        for following, clients in sorted(_votes(uses).items())
        if len(clients) >= min_clients
    ]


def _votes(uses: list[Use]) -> dict[str, dict[str, Use]]:
    """Return, for each tool, the clients that called it more often than any other tool after a
    request, each with its first such use. A client's ties go to the tool it called last.
    """
    calls: dict[str, Counter[str]] = {}
    for use in reversed(uses):
        calls.setdefault(use.client, Counter())[use.tool] += 1
    votes = {client: counts.most_common(1)[0][0] for client, counts in calls.items()}
    by_tool: dict[str, dict[str, Use]] = {}
    for use in uses:
        if votes[use.client] == use.tool:
            by_tool.setdefault(use.tool, {}).setdefault(use.client, use)
    return by_tool


def _is_public(query: str) -> bool:
    hidden = HIDDEN in query or HIDDEN_CREDENTIAL in query
    return not hidden and redact(query) == query == redact_credentials(query)


def _lines(log: Path) -> Iterator[str]:
    rotated = {
        int(match[1]): file
        for file in log.parent.glob(f"{log.name}.*")
        if (match := re.fullmatch(r".*\.(\d+)", file.name))
    }
    try:
        for file in [*(rotated[number] for number in sorted(rotated, reverse=True)), log]:
            with file.open(encoding="utf-8", errors="replace") as lines:
                yield from lines
    except OSError as error:
        raise ConfigurationError(
            f"{log} cannot be read: {error.strerror}. Expected the file that [serve] log names."
        ) from error


def _event(line: str) -> dict[str, Any] | None:
    """Return the event of a line, its time parsed; None if it is not a valid log line."""
    try:
        event: Any = json.loads(line)
        texts = (event["event"], event["client"], event["session"])
        if event["event"] == "find":
            texts = (*texts, event["query"], *(hit["tool"] for hit in event["hits"]))
        elif event["event"] == "call":
            texts = (*texts, event["tool"], event["outcome"])
        event["time"] = datetime.fromisoformat(event["time"]).astimezone(UTC)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None
    return event if all(isinstance(text, str) for text in texts) else None


def _add_find(usage: Usage, sessions: Sessions, event: dict[str, Any]) -> None:
    usage.finds += 1
    key = (event["client"], event["session"])
    requests = sessions.setdefault(key, [])
    tools = tuple(hit["tool"] for hit in event["hits"])
    logged = usage.requests.setdefault(event["query"], LoggedRequest())
    logged.count += 1
    logged.tools = tools
    requests.append((event["time"], event["query"], frozenset(tools)))
    del requests[:-LAST_REQUESTS]
    sessions.move_to_end(key)
    if len(sessions) > MAX_SESSIONS:
        sessions.popitem(last=False)


def _add_call(usage: Usage, sessions: Sessions, event: dict[str, Any]) -> None:
    """Attribute a successful call to the last request of its session that had found the tool.

    Without sessions, several people may share one client: then all requests of the last minutes
    that had found the tool must have the same words.
    """
    if event["outcome"] != "ok":
        return
    client = event["client"]
    session = event["session"]
    tool = event["tool"]
    queries = [
        query
        for time, query, found_tools in sessions.get((client, session), ())
        if tool in found_tools and (session or event["time"] - time <= timedelta(minutes=MINUTES))
    ]
    if not session and len({frozenset(query_words(query)) for query in queries}) > 1:
        return
    if queries:
        credentials = event.get("credentials") is True  # not in the logs of earlier versions
        usage.uses.append(Use(queries[-1], tool, client, credentials, event["time"]))


def _add_pair(
    usage: Usage, last_tools: OrderedDict[tuple[str, str], str], event: dict[str, Any]
) -> None:
    """Pair a successful call with the preceding one of its session; a repeated call of the same
    tool is not a pair.
    """
    if event["outcome"] != "ok" or not event["session"]:
        return
    key = (event["client"], event["session"])
    tool = event["tool"]
    previous_tool = last_tools.get(key) or tool
    last_tools[key] = tool
    last_tools.move_to_end(key)
    if len(last_tools) > MAX_SESSIONS:
        last_tools.popitem(last=False)
    if previous_tool != tool:
        credentials = event.get("credentials") is True
        usage.pairs.append(Use(previous_tool, tool, event["client"], credentials, event["time"]))
