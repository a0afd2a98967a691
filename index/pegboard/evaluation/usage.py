"""Example requests from use: what clients of a gateway asked for and then called.

A gateway's log is written by its clients, so none of them is believed alone. A request becomes an
example of a tool only if similar requests of enough clients and sessions led to calls of that tool
that succeeded, and if each of its words was used by as many clients: what only one person wrote, a
name or a number, goes into no index.
"""

import json
import re
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Sequence
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
MIN_SESSIONS = 3
"""Different sessions behind each example."""
PER_TOOL = 5
"""The most examples of one tool."""
SIMILAR = 0.5
"""Jaccard similarity of the words of two requests from which on they mean the same."""
REPEATED = 0.8
"""Similarity from which on a request adds nothing to another of the same tool."""
MAX_CHARACTERS = 500
"""Maximum characters of a request; a longer one is not an example."""
MAX_SESSIONS = 100_000
"""Sessions whose last requests are held while a log is read."""
LAST_REQUESTS = 50
"""Requests of one session that a call may belong to."""
MINUTES = 5
"""Between a request and a call that belong together although neither has a session."""
MAX_COMPARED = 2_000
"""Different requests of one tool that are compared: the most frequent."""

Words = frozenset[str]
Requests = list[tuple[datetime, str, frozenset[str]]]
"""Time, words and tools found of the last requests of a session."""
Sessions = OrderedDict[tuple[str, str], Requests]
"""By client and session; "" for requests without one."""


@dataclass(frozen=True, slots=True)
class Use:
    """A request after which a tool that it had found was called.

    Attributes:
        session: where there is none, the hour: one client's calls of an hour count once.
    """

    query: str
    tool: str
    client: str
    session: str


@dataclass(slots=True)
class Usage:
    """The content of a request log.

    Attributes:
        uses: in the order of the calls.
        word_clients: the clients that used each word in any request.
        finds: requests for tools.
        invalid: lines that are none of a log.
    """

    uses: list[Use] = field(default_factory=list[Use])
    word_clients: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    finds: int = 0
    invalid: int = 0


@dataclass(frozen=True, slots=True)
class Learned:
    """The examples, as golden queries of origin `logs` with one tool each, and what was left out.

    Attributes:
        few: requests that too few clients or sessions made.
        private: requests with a word that too few clients used, or with a secret.
        other: requests after which more sessions called another tool.
    """

    examples: tuple[GoldenQuery, ...]
    few: int
    private: int
    other: int


def read_usage(log: Path) -> Usage:
    """Read a request log with its rotated files, the oldest first.

    Raises:
        ConfigurationError: the log cannot be read.
    """
    usage, sessions = Usage(), Sessions()
    for line in _lines(log):
        event = _event(line)
        if event is None:
            usage.invalid += 1
        elif event["event"] == "find":
            _add_find(usage, sessions, event)
        elif event["event"] == "call":
            _add_call(usage, sessions, event)
    return usage


def learn(usage: Usage, min_clients: int = MIN_CLIENTS) -> Learned:
    """Return the requests that are examples of their tools, the best supported first.

    Args:
        min_clients: different clients with a similar request for the tool, and with each word.
    """
    requests = _requests(usage.uses)
    of_request: Counter[Words] = Counter()
    for request in requests:
        of_request[request.words] += len(request.sessions)
    by_tool: dict[str, list[_Request]] = {}
    other = 0
    for request in requests:
        if 2 * len(request.sessions) > of_request[request.words]:
            by_tool.setdefault(request.tool, []).append(request)
        else:
            other += 1
    common = {word for word, own in usage.word_clients.items() if len(own) >= min_clients}
    examples: list[GoldenQuery] = []
    few = private = 0
    for tool in sorted(by_tool):
        supported = _supported(by_tool[tool], min_clients)
        public = [one for one in supported if one.words <= common and _is_public(one.query)]
        few += min(len(by_tool[tool]), MAX_COMPARED) - len(supported)
        private += len(supported) - len(public)
        taken: list[Words] = []
        for request in public:
            new = all(_similarity(request.words, words) < REPEATED for words in taken)
            if new and len(taken) < PER_TOOL:
                taken.append(request.words)
                examples.append(GoldenQuery(request.query, (tool,), origin="logs"))
    return Learned(tuple(examples), few, private, other)


@dataclass(slots=True)
class _Request:
    """The uses of one tool after requests with the same words."""

    query: str
    tool: str
    words: Words
    clients: set[str] = field(default_factory=set[str])
    sessions: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])


def _requests(uses: Iterable[Use]) -> list[_Request]:
    requests: dict[tuple[Words, str], _Request] = {}
    for use in uses:
        words = frozenset(query_words(use.query))
        if not words or len(use.query) > MAX_CHARACTERS:
            continue
        request = requests.setdefault((words, use.tool), _Request(use.query, use.tool, words))
        request.clients.add(use.client)
        request.sessions.add((use.client, use.session))
    return list(requests.values())


def _supported(requests: Sequence[_Request], min_clients: int) -> list[_Request]:
    """The requests that similar ones of enough clients and sessions support, the best first."""
    frequent = sorted(requests, key=lambda request: (-len(request.sessions), request.query))
    supported: list[tuple[int, int, _Request]] = []
    for request in frequent[:MAX_COMPARED]:
        clients, sessions = set[str](), set[tuple[str, str]]()
        for other in frequent[:MAX_COMPARED]:
            if _similarity(request.words, other.words) >= SIMILAR:
                clients |= other.clients
                sessions |= other.sessions
        if len(clients) >= min_clients and len(sessions) >= MIN_SESSIONS:
            supported.append((len(clients), len(sessions), request))
    supported.sort(key=lambda row: (-row[0], -row[1], row[2].query))
    return [request for _, _, request in supported]


def _similarity(one: Words, other: Words) -> float:
    common = len(one & other)
    return common / (len(one) + len(other) - common)


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
    client, query = event["client"], event["query"]
    for word in query_words(query):
        usage.word_clients.setdefault(word, set()).add(client)
    key = (client, event["session"])
    requests = sessions.setdefault(key, [])
    requests.append((event["time"], query, frozenset(hit["tool"] for hit in event["hits"])))
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
    if not session:
        session = f"{event['time']:%Y-%m-%d %H}"
        if len({frozenset(query_words(query)) for query in queries}) > 1:
            return
    if queries:
        usage.uses.append(Use(queries[-1], tool, client, session))
