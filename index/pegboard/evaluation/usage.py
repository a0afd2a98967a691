"""Example requests from use: what clients of a gateway asked for and then called.

A gateway's log is written by its clients, so none of them is believed alone. A request becomes an
example of a tool only if enough clients with credentials made it in the same words and then called
that tool: what only one person wrote, a name or a number, goes into no index. Each client has one
vote on a request, so it can take back its own vote alone.
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
from pegboard.redaction import HIDDEN_CREDENTIAL, redact, redact_credentials
from pegboard.search.text import query_words
from pegboard.secret_values import HIDDEN

MIN_CLIENTS = 2
"""Different clients behind each example."""
PER_TOOL = 5
"""The most examples of one tool."""
MAX_CHARACTERS = 500
"""Maximum characters of a request; a longer one is not an example."""
MAX_SESSIONS = 100_000
"""Sessions whose last requests are held while a log is read."""
LAST_REQUESTS = 50
"""Requests of one session that a call may belong to."""
MINUTES = 5
"""Between a request and a call that belong together although neither has a session."""

Words = frozenset[str]
Requests = list[tuple[datetime, str, frozenset[str]]]
"""Time, words and tools found of the last requests of a session."""
Sessions = OrderedDict[tuple[str, str], Requests]
"""By client and session; "" for requests without one."""


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
        uses: in the order of the calls.
        pairs: tools called one after the other in a session, as uses of the second whose query is
            the first.
        requests: by their text, in the order of the first.
        finds: requests for tools.
        invalid: lines that are none of a log.
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
        few: requests that too few clients made before calling the same tool.
        secret: requests with a secret.
    """

    examples: tuple[GoldenQuery, ...]
    few: int
    secret: int


def read_usage(log: Path) -> Usage:
    """Read a request log with its rotated files, the oldest first.

    Raises:
        ConfigurationError: the log cannot be read.
    """
    usage, sessions, last = Usage(), Sessions(), OrderedDict[tuple[str, str], str]()
    for line in _lines(log):
        event = _event(line)
        if event is None:
            usage.invalid += 1
        elif event["event"] == "find":
            _add_find(usage, sessions, event)
        elif event["event"] == "call":
            _add_call(usage, sessions, event)
            _add_pair(usage, last, event)
    return usage


def learn(usage: Usage, min_clients: int = MIN_CLIENTS) -> Learned:
    """Return the requests that are examples of their tools, those first that were taught first: no
    later client takes the place of what others taught.

    Args:
        min_clients: different clients with the same words and the same tool; with 1, clients
            without credentials count, too.
    """
    requests: dict[Words, list[Use]] = {}
    for use in usage.uses:
        words = frozenset(query_words(use.query))
        if words and len(use.query) <= MAX_CHARACTERS and (use.credentials or min_clients == 1):
            requests.setdefault(words, []).append(use)
    taught: list[tuple[datetime, str, str]] = []
    few = secret = 0
    for uses in requests.values():
        by_tool = _votes(uses)
        supported = {tool: own for tool, own in by_tool.items() if len(own) >= min_clients}
        few += not supported
        for tool, own in supported.items():
            # The shortest text: whatever a client adds to the common words does not matter.
            query = min((use.query for use in own.values()), key=lambda text: (len(text), text))
            if _is_public(query):
                times = sorted(use.time for use in own.values())
                taught.append((times[min_clients - 1], query, tool))
            else:
                secret += 1
    examples: list[GoldenQuery] = []
    places: Counter[str] = Counter()
    for _, query, tool in sorted(taught):
        places[tool] += 1
        if places[tool] <= PER_TOOL:
            examples.append(GoldenQuery(query, (tool,), origin="logs"))
    return Learned(tuple(examples), few, secret)


def learn_sequences(usage: Usage, min_clients: int = MIN_CLIENTS) -> list[dict[str, Any]]:
    """Return which tools follow which: `after` and `next`, ids, and the number of `clients`.

    The rules are those of `learn`: each client has one vote on what follows a tool.
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
    """Return of each tool the clients that called it more often than any other after a request,
    each with its first such use; of tools that one called equally often, the last.
    """
    calls: dict[str, Counter[str]] = {}
    for use in reversed(uses):
        calls.setdefault(use.client, Counter())[use.tool] += 1
    votes = {client: own.most_common(1)[0][0] for client, own in calls.items()}
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
    """The event of a line, with its time as such; None for a line that is none of a log."""
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
    logged.count, logged.tools = logged.count + 1, tools
    requests.append((event["time"], event["query"], frozenset(tools)))
    del requests[:-LAST_REQUESTS]
    sessions.move_to_end(key)
    if len(sessions) > MAX_SESSIONS:
        sessions.popitem(last=False)


def _add_call(usage: Usage, sessions: Sessions, event: dict[str, Any]) -> None:
    """Add a call that succeeded to the last request of its session that had found the tool.

    Without sessions several people may be one client: then the requests of the last minutes that
    had found the tool must all be the same.
    """
    if event["outcome"] != "ok":
        return
    client, session, tool = event["client"], event["session"], event["tool"]
    queries = [
        query
        for time, query, found in sessions.get((client, session), ())
        if tool in found and (session or event["time"] - time <= timedelta(minutes=MINUTES))
    ]
    if not session and len({frozenset(query_words(query)) for query in queries}) > 1:
        return
    if queries:
        credentials = event.get("credentials") is True  # not in the logs of earlier versions
        usage.uses.append(Use(queries[-1], tool, client, credentials, event["time"]))


def _add_pair(usage: Usage, last: OrderedDict[tuple[str, str], str], event: dict[str, Any]) -> None:
    """Add a call that succeeded to the one before it in its session. A tool called again is none
    that follows itself.
    """
    key, tool = (event["client"], event["session"]), event["tool"]
    if event["outcome"] != "ok" or not event["session"]:
        return
    before = last.get(key) or tool
    last[key] = tool
    last.move_to_end(key)
    if len(last) > MAX_SESSIONS:
        last.popitem(last=False)
    if before != tool:
        credentials = event.get("credentials") is True
        usage.pairs.append(Use(before, tool, event["client"], credentials, event["time"]))
