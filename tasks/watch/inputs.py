"""The inputs of a configuration's catalogs, each with a way to look at it."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from threading import Thread
from typing import TypeVar

from catalogs.mcp.registry import updated_since
from catalogs.openapi.document import download_if_changed
from catalogs.shared.isolation import list_isolated
from catalogs.shared.kinds import source_kind
from catalogs.shared.watching import (
    Watched,
    WatchedFiles,
    WatchedRegistry,
    WatchedServer,
    WatchedUrl,
)
from pegboard.canonical import digest
from pegboard.errors import SourceError
from pegboard.text.redaction import public_url
from tasks.settings.configuration import Configuration
from tasks.watch.looks import Look

T = TypeVar("T")
ALL = "*"
"""Stands for every catalog, as of the configuration itself."""
FileState = tuple[int, int, int]
"""Modification time, size and inode of a file."""


@dataclass(frozen=True, slots=True)
class Input:
    """Something from which a catalog is made.

    Attributes:
        catalog: its name, or `*` for every catalog.
        label: the input for people, without secrets.
        key: identifies the input over restarts.
        look: returns a new look, given the last one. Raises SourceError or OSError. None for a
            server, which `server` describes.
        patterns: the paths and patterns of files whose folders are watched.
        find: returns the files now; None for other inputs.
        names_inputs: whether its content says what else is watched.
        server: an MCP server, with which a session may stay open.
        is_pushed: whether the system reports its changes, so that looks may be rare.
    """

    catalog: str
    label: str
    key: str
    look: Callable[[Look | None], Awaitable[Look]] | None = None
    patterns: tuple[str, ...] = ()
    find: Callable[[], Sequence[Path]] | None = None
    names_inputs: bool = False
    server: WatchedServer | None = None
    is_pushed: bool = False


def inputs_of(configuration: Configuration) -> list[Input]:
    """Return the inputs of every catalog, and the configuration's file, which is first."""
    file = configuration.file
    inputs = [_files(ALL, WatchedFiles(lambda: [file], (str(file),), names_inputs=True))]
    for catalog in configuration.catalogs:
        options = configuration.options(catalog)
        try:
            watched = source_kind(options.type).watches(configuration.base, options)
        except (SourceError, OSError):
            watched = ()  # a build reports it
        inputs += [_input(configuration, catalog, row) for row in watched]
    return list({row.key: row for row in inputs}.values())


def configuration_input(file: Path) -> Input:
    """Return the file of a configuration that may be invalid."""
    return _files(ALL, WatchedFiles(lambda: [file], (str(file),), names_inputs=True))


def _input(configuration: Configuration, catalog: str, watched: Watched) -> Input:
    match watched:
        case WatchedFiles():
            return _files(catalog, watched)
        case WatchedRegistry():
            label = f"registry {public_url(watched.url)}"
            return Input(catalog, label, _key(catalog, watched), partial(_registry_look, watched))
        case WatchedUrl():
            label = public_url(watched.url)
            return Input(catalog, label, _key(catalog, watched), partial(_url_look, watched))
        case WatchedServer():
            label = f"MCP server {watched.name}"
            return Input(catalog, label, f"{catalog} server {watched.name}", server=watched)
        case _:
            return Input(
                catalog,
                "listing",
                f"{catalog} listing",
                partial(_listing_look, configuration, catalog),
                patterns=watched.patterns,
            )


def _files(catalog: str, watched: WatchedFiles) -> Input:
    label = ", ".join(watched.patterns) or "files"
    return Input(
        catalog,
        label,
        f"{catalog} files {label}",
        Files(watched.find).look,
        patterns=watched.patterns,
        find=watched.find,
        names_inputs=watched.names_inputs,
        is_pushed=True,
    )


def _key(catalog: str, watched: WatchedUrl) -> str:
    """Return a key without the URL's secrets, which differs with the URL."""
    return f"{catalog} url {digest(watched.url)[:16]}"


class Files:
    """Looks at files by content. A file whose state is unchanged is not read again."""

    def __init__(self, find: Callable[[], Sequence[Path]]) -> None:
        self._find = find
        self._digests: dict[Path, tuple[FileState, str]] = {}

    async def look(self, previous: Look | None) -> Look:
        """Return the digest of the files' paths and contents."""
        return await in_thread(self._look)

    def _look(self) -> Look:
        try:
            files = self._find()
        except SourceError:
            files = []  # none any more, which is a change
        digests: dict[Path, tuple[FileState, str]] = {}
        for file in dict.fromkeys(files):
            if (row := self._row(file)) is not None:
                digests[file] = row
        self._digests = digests
        return Look(digest([[str(file), row[1]] for file, row in digests.items()]))

    def _row(self, file: Path) -> tuple[FileState, str] | None:
        """Return the state and digest of a file; None if it is gone."""
        try:
            status = file.stat()
            state = (status.st_mtime_ns, status.st_size, status.st_ino)
            known = self._digests.get(file)
            if known is not None and known[0] == state:
                return known
            with file.open("rb") as stream:
                return state, hashlib.file_digest(stream, "sha256").hexdigest()
        except FileNotFoundError:
            return None


async def _url_look(watched: WatchedUrl, previous: Look | None) -> Look:
    known = previous or Look("")
    document = await download_if_changed(
        watched.url,
        watched.headers,
        timeout=watched.timeout,
        max_bytes=watched.max_bytes,
        etag=known.etag,
        modified=known.modified,
    )
    if document is None:
        return known
    content = hashlib.sha256(document.content).hexdigest()
    return Look(content, document.etag, document.modified)


async def _registry_look(watched: WatchedRegistry, previous: Look | None) -> Look:
    """Return the time of the last update, and a digest of the entries of that time."""
    yesterday = datetime.now(UTC) - timedelta(days=1)
    since = (previous and previous.since) or yesterday.strftime("%Y-%m-%dT%H:%M:%SZ")
    rows = await updated_since(watched, since)
    if not rows:
        return previous or Look(digest(""), since=since)
    last = rows[-1][0]
    return Look(digest([row for row in rows if row[0] == last]), since=last)


async def _listing_look(configuration: Configuration, catalog: str, previous: Look | None) -> Look:
    """List the source in a separate process, and return a digest of what it lists."""
    options = configuration.options(catalog)
    listing = await in_thread(partial(list_isolated, catalog, configuration.base, options))
    if listing.failures:
        raise SourceError(listing.failures[0].why)
    rows = hashlib.sha256(b"\n".join(listing.rows)).hexdigest()
    agents = [asdict(replace(agent)) for agent in listing.agents]
    return Look(digest(agents, rows))


async def in_thread(function: Callable[[], T]) -> T:
    """Call a function in a daemon thread, which a process that ends does not wait for."""
    future = Future[T]()

    def work() -> None:
        future.set_running_or_notify_cancel()
        try:
            future.set_result(function())
        except BaseException as error:
            future.set_exception(error)

    Thread(target=work, name="watch", daemon=True).start()
    return await asyncio.wrap_future(future)
