"""What `pegboard watch` looks at to notice that a source changed.

A source kind names its inputs with these classes (`SourceKind.watched`). Each look must be much
cheaper than a build, except for `WatchedListing`, which lists the source and compares.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class WatchedFiles:
    """Files, compared by content when the system reports a change in their folders.

    Attributes:
        find: returns the files; raises SourceError or OSError if there are none.
        patterns: paths and patterns, absolute or relative to the folder of pegboard.toml, whose
            folders are watched for new files. The folders of the files are watched anyway.
        names_inputs: whether the files say what else is watched, such as a list of servers.
    """

    find: Callable[[], Sequence[Path]]
    patterns: tuple[str, ...] = ()
    names_inputs: bool = False


@dataclass(frozen=True, slots=True)
class WatchedUrl:
    """A document at a URL, requested on the condition that it changed (ETag, Last-Modified).

    Attributes:
        headers: sent with each request; `${NAME}` is replaced by an environment variable.
        timeout: seconds of one request.
        max_bytes: limit of the document.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    timeout: float = 30.0
    max_bytes: int = 50_000_000


@dataclass(frozen=True, slots=True)
class WatchedRegistry(WatchedUrl):
    """An MCP registry, asked for the servers updated since the last look.

    `url` is the part before `/v0/servers`.
    """


@dataclass(frozen=True, slots=True)
class WatchedServer:
    """An MCP server. If it announces changes of its list, a session stays open for them; otherwise
    its list is compared.

    Attributes:
        name: of the server in its catalog.
        entry: its entry in the configuration, with references to the environment.
        base: the folder that its relative paths start from.
        include: what is listed besides tools.
        timeout: seconds of one listing.
        max_bytes: limit of one event over streamable HTTP.
    """

    name: str
    entry: Any = field(repr=False)
    base: Path
    include: tuple[str, ...] = ()
    timeout: float = 30.0
    max_bytes: int = 50_000_000


@dataclass(frozen=True, slots=True)
class WatchedListing:
    """The listing of the source itself, compared with the one before.

    Attributes:
        patterns: paths and patterns of files whose changes prompt a listing at once.
    """

    patterns: tuple[str, ...] = ()


Watched = WatchedFiles | WatchedUrl | WatchedServer | WatchedListing
