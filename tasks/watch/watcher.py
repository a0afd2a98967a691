"""Looking at every input of a configuration, and knowing which catalogs are due.

Files are looked at when the system reports a change in their folders, MCP servers when they
announce one, everything else at an interval. A look compares content, so a file that was only
touched, or an announcement without a change, is not a change.
"""

import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import anyio

from pegboard.text.redaction import redact_line
from tasks.settings.configuration import Configuration
from tasks.watch.folders import Folders, contains, folders_of, follow_folders
from tasks.watch.inputs import ALL, Input, in_thread, inputs_of
from tasks.watch.looks import Look
from tasks.watch.servers import RESTART_SECONDS, Session, open_session

AT_ONCE = 8
"""Looks that are under way at the same time."""
PUSHED_TIMES = 4
"""Times the interval between two looks at an input whose changes are announced: an announcement may
be lost."""
REST_TIMES = 9
"""Times its duration that an input is left alone after a look, so that looks take a tenth of the
time at most."""
MAX_BACKOFF_TIMES = 16
"""Times the interval between two looks at an input that fails again and again, at most."""
MAX_RETRY_AFTER = 3600.0
"""Seconds that a server may ask to be left alone."""
MAX_PROBLEM = 500
"""Characters of a problem in an event."""


logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """Something that the watch reports. It contains no secrets.

    Attributes:
        kind: `watching`, `changed`, `unreachable`, `reachable`, `building`, `built`, `failed`,
            `reloaded`, `invalid` or `stopped`.
        text: for people, in one line.
        facts: as JSON values.
    """

    kind: str
    text: str
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])


class Report(Protocol):
    """Takes the events of a watch."""

    def __call__(self, event: WatchEvent, /) -> None: ...


class Watcher:
    """Looks at the inputs of one configuration until it is cancelled.

    Args:
        built: the looks that the last builds were made from, by input.
        interval: seconds between two looks at an input that is polled.
        configuration_look: the look at the file when the configuration was read.

    Attributes:
        inputs: everything that is looked at.
        seen: the last look at each input that could be looked at.
        problems: why the other inputs cannot be looked at now.
        redefined: whether a file that names inputs changed, so that a new watcher is needed.
    """

    def __init__(
        self,
        configuration: Configuration,
        built: Mapping[str, Look],
        interval: float,
        report: Report,
        configuration_look: Look,
    ) -> None:
        self.inputs = inputs_of(configuration)
        self.seen: dict[str, Look] = {self.inputs[0].key: configuration_look}
        self.problems: dict[str, str] = {}
        self.redefined = False
        self._configuration = configuration
        self._built = built
        self._interval = interval
        self._report = report
        self._recovered: set[str] = set()
        self._wakers = {row.key: anyio.Event() for row in self.inputs}
        self._failures: dict[str, int] = {}
        self._first = {row.key for row in self.inputs}
        self._complete = anyio.Event()
        self._changed = anyio.Event()
        self._slots = anyio.Semaphore(AT_ONCE)

    async def observe(self) -> None:
        """Look at every input again and again, until this is cancelled."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._follow_folders)
            for row in self.inputs:
                group.start_soon(self._observe, row)

    async def wait_until_complete(self) -> None:
        """Wait until every input was looked at once, or could not be."""
        await self._complete.wait()

    async def wait_for_change(self, seconds: float = float("inf")) -> bool:
        """Wait until an input changed, at most some seconds; return whether one did."""
        with anyio.move_on_after(seconds) as limit:
            await self._changed.wait()
        self._changed = anyio.Event()
        return not limit.cancelled_caught

    def due(self) -> dict[str, list[Input]]:
        """Return the inputs that differ from what the last builds were made from, by catalog. If
        the configuration does, every catalog is due.
        """
        due: dict[str, list[Input]] = {}
        for row in self.inputs:
            look = self.seen.get(row.key)
            if look is None or self._is_built(row.key, look):
                continue
            names = list(self._configuration.catalogs) if row.catalog == ALL else [row.catalog]
            for name in names:
                due.setdefault(name, []).append(row)
        return due

    def take_recovered(self) -> set[str]:
        """Return the catalogs with an input that is reachable again, each once."""
        recovered = self._recovered
        self._recovered = set()
        return recovered

    def looks_of(self, catalogs: set[str]) -> dict[str, Look]:
        """Return the last looks at the inputs of some catalogs; those of all catalogs if they are
        all named.
        """
        if catalogs == {*self._configuration.catalogs}:
            catalogs = catalogs | {ALL}
        return {
            row.key: self.seen[row.key]
            for row in self.inputs
            if row.catalog in catalogs and row.key in self.seen
        }

    def _is_built(self, key: str, look: Look) -> bool:
        built = self._built.get(key)
        return built is not None and built.digest == look.digest

    async def _observe(self, row: Input) -> None:
        if row.server is None:
            while True:
                seconds = await self._poll(row)
                await self._rest(row, seconds)
        while True:
            seconds = await self._hold_session(row)
            await self._rest(row, seconds)

    async def _poll(self, row: Input) -> float:
        """Look at an input, and return the seconds until the next look."""
        assert row.look is not None
        async with self._slots:
            start = anyio.current_time()
            try:
                look = await row.look(self.seen.get(row.key) or self._built.get(row.key))
            except Exception as error:  # of a plug-in, too
                return self._failed(row, error)
            duration = anyio.current_time() - start
        self._saw(row, look)
        times = PUSHED_TIMES if row.is_pushed else 1
        return max(self._interval * times, duration * REST_TIMES)

    async def _hold_session(self, row: Input) -> float:
        """Look at an MCP server over one session, as long as it is of use; return the seconds until
        the next session.
        """
        assert row.server is not None

        def wake() -> None:
            self._wakers[row.key].set()

        try:
            async with self._slot() as release:
                start = anyio.current_time()
                async with open_session(row.server, wake) as session:
                    self._saw(row, await session.look())
                    duration = anyio.current_time() - start
                    if session.is_stdio and not session.announces:
                        return max(RESTART_SECONDS, self._interval, duration * REST_TIMES)
                    release()
                    await self._stay(row, session)
        except Exception as error:  # of a server's own answers, too
            return self._failed(row, error)
        return self._interval

    async def _stay(self, row: Input, session: Session) -> None:
        """Look at a server over its open session, until it breaks off."""
        seconds = self._interval * (PUSHED_TIMES if session.announces else 1)
        while True:
            await self._rest(row, seconds)
            self._saw(row, await session.look())

    @asynccontextmanager
    async def _slot(self) -> AsyncGenerator[Callable[[], None]]:
        """Hold one of the looks at once; what is yielded gives it back early."""
        await self._slots.acquire()
        held = [self._slots]

        def release() -> None:
            if held:
                held.pop().release()

        try:
            yield release
        finally:
            release()

    async def _rest(self, row: Input, seconds: float) -> None:
        """Wait some seconds, or until the input is said to have changed."""
        with anyio.move_on_after(seconds):
            await self._wakers[row.key].wait()
        self._wakers[row.key] = anyio.Event()

    def _saw(self, row: Input, look: Look) -> None:
        """Take a new look at an input."""
        self._failures.pop(row.key, None)
        if self.problems.pop(row.key, None) is not None:
            self._say(row, "reachable", "reachable again")
            self._recovered.add(row.catalog)
            self._changed.set()
        seen = self.seen.get(row.key)
        previous = seen or self._built.get(row.key)
        self.seen[row.key] = look
        if previous is None or previous.digest != look.digest:
            self._say(row, "changed", "changed" if previous else "not built yet")
            if row.names_inputs and seen is not None:
                self.redefined = True
            self._changed.set()
        self._done_once(row)

    def _failed(self, row: Input, error: Exception) -> float:
        """Record why an input cannot be looked at; return the seconds until the next attempt."""
        count = self._failures[row.key] = self._failures.get(row.key, 0) + 1
        problem = redact_line(str(error), MAX_PROBLEM)
        if row.key not in self.problems:
            self._say(row, "unreachable", problem, problem=problem)
        self.problems[row.key] = problem
        self._done_once(row)
        seconds = self._interval * min(2 ** (count - 1), MAX_BACKOFF_TIMES)
        retry_after = getattr(error, "retry_after", None) or 0.0
        return max(seconds, min(retry_after, MAX_RETRY_AFTER))

    def _done_once(self, row: Input) -> None:
        self._first.discard(row.key)
        if not self._first:
            self._complete.set()

    def _say(self, row: Input, kind: str, text: str, **facts: Any) -> None:
        name = "configuration" if row.catalog == ALL else row.catalog
        facts = {"catalog": None if row.catalog == ALL else row.catalog, "input": row.label} | facts
        self._report(WatchEvent(kind, f"{name}: {row.label}: {text}", facts))

    async def _follow_folders(self) -> None:
        """Wake the inputs that are files when something changes in their folders. Folders that
        appear or are replaced are followed from the next look at them.
        """
        while True:
            folders = await self._folders()
            async with anyio.create_task_group() as group:
                group.start_soon(self._follow, folders)
                while await self._folders() == folders:
                    await anyio.sleep(self._interval * PUSHED_TIMES)
                group.cancel_scope.cancel()
            for key in folders:
                self._wakers[key].set()

    async def _follow(self, folders: Mapping[str, Folders]) -> None:
        def on_change(paths: set[Path]) -> None:
            for key, places in folders.items():
                if not paths or any(contains(places, path) for path in paths):
                    self._wakers[key].set()

        union = frozenset(place for places in folders.values() for place in places)
        while True:
            try:
                await follow_folders(union, Path(self._configuration.uri), on_change)
            except Exception as error:  # the files are looked at without it, too
                logger.warning("Changes of files are noticed late: %s", redact_line(str(error)))
            await anyio.sleep(self._interval * PUSHED_TIMES)

    async def _folders(self) -> dict[str, Folders]:
        """Return the folders of each input that has files."""
        base = self._configuration.base
        rows = [row for row in self.inputs if row.patterns or row.find]
        return await in_thread(
            lambda: {row.key: folders_of(base, row.patterns, row.find) for row in rows}
        )
