"""The watch: builds the catalogs that are due, one build at a time, until it is cancelled.

Changes are collected for a moment, so that a burst is one build. What changes during a build is
taken up after it. A build that fails, or that could not list a source, is repeated: when the source
changes again or is reachable again, and otherwise after a wait that doubles. A change of the
configuration's file is read; an invalid one is reported, and nothing is built until it is valid.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from pegboard.errors import PegboardError, StoreError
from pegboard.formatting import count_text
from pegboard.text.redaction import redact_line
from tasks.settings.configuration import Configuration, load_configuration
from tasks.watch.inputs import ALL, configuration_input, in_thread
from tasks.watch.looks import Look, read_looks, write_looks
from tasks.watch.watcher import Report, Watcher, WatchEvent

INTERVAL = 15.0
"""Default of the seconds between two looks at an input that is polled."""
FIRST_LOOK_SECONDS = 15.0
"""Seconds that the first build waits for a look at every input. What is seen later is due again."""
SETTLE_SECONDS = 1.0
"""Seconds without a change after which a build starts."""
MAX_SETTLE_SECONDS = 10.0
"""Seconds after which a build starts although changes go on."""
RETRY_SECONDS = 30.0
"""Seconds after which a failed build is repeated; doubled each time."""
MAX_RETRY_SECONDS = 1800.0
"""Seconds after which a failed build is repeated, at most."""


@dataclass(frozen=True, slots=True)
class BuildResult:
    """How a build of some catalogs ended.

    Attributes:
        text: its outcome, for people, in one line.
        succeeded: whether it did its work; a release that is held counts as done.
        failed: why catalogs could not be listed, by catalog; their last good tools are kept.
        exit_code: as of `pegboard build`.
        facts: as JSON values.
    """

    text: str
    succeeded: bool = True
    failed: Mapping[str, str] = field(default_factory=dict[str, str])
    exit_code: int = 0
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])


Build = Callable[[Configuration, list[str]], Awaitable[BuildResult]]
"""Builds some catalogs of a configuration; the others keep their snapshots."""


@dataclass(slots=True)
class _Retry:
    """A catalog that could not be built.

    Attributes:
        looks: what was seen of its inputs at the last attempt.
        count: of failed attempts.
        after: when it is tried again, by the event loop's clock.
    """

    looks: dict[str, Look]
    count: int
    after: float


class Watch:
    """Watches the sources of a configuration, and builds the catalogs that changed.

    Args:
        file: a pegboard.toml.
        build: builds some catalogs.
        report: takes every event.
        interval: seconds between two looks at an input that is polled.
    """

    def __init__(
        self, file: str | Path, build: Build, report: Report, interval: float = INTERVAL
    ) -> None:
        self._file = Path(file).expanduser().resolve()
        self._build = build
        self._report = report
        self._interval = interval
        self._retries: dict[str, _Retry] = {}
        self._built: dict[str, Look] = {}

    async def once(self) -> int:
        """Look at every input once, build what is due, and return the exit code.

        Raises:
            ConfigurationError: the configuration is invalid.
        """
        look = await self._configuration_look()
        configuration = load_configuration(self._file)
        watcher = await self._start(configuration, look)
        async with anyio.create_task_group() as group:
            group.start_soon(watcher.observe)
            await watcher.wait_until_complete()
            group.cancel_scope.cancel()
        code = 3 if watcher.problems else 0
        if due := [*watcher.due()]:
            code = (await self._build_catalogs(configuration, watcher, due)).exit_code or code
        else:
            self._report(WatchEvent("unchanged", "nothing changed since the last build"))
        return code

    async def run(self) -> None:
        """Watch until this is cancelled.

        Raises:
            ConfigurationError: the configuration is invalid at the start.
        """
        look = await self._configuration_look()
        configuration = load_configuration(self._file)
        while True:
            watcher = await self._start(configuration, look)
            async with anyio.create_task_group() as group:
                group.start_soon(watcher.observe)
                await self._build_until_redefined(configuration, watcher)
                group.cancel_scope.cancel()
            look, configuration = await self._reloaded()

    async def _start(self, configuration: Configuration, look: Look) -> Watcher:
        self._retries.clear()
        try:
            self._built = await in_thread(lambda: read_looks(configuration.uri))
        except StoreError as error:  # everything is built again, which repeats little work
            self._built = {}
            self._report(WatchEvent("failed", str(error), {"problem": str(error)}))
        watcher = Watcher(configuration, self._built, self._interval, self._report, look)
        catalogs = count_text(len(configuration.catalogs), "catalog")
        inputs = count_text(len(watcher.inputs), "input")
        facts = {
            "catalogs": list(configuration.catalogs),
            "inputs": [row.label for row in watcher.inputs],
        }
        self._report(WatchEvent("watching", f"{catalogs}, {inputs}", facts))
        return watcher

    async def _configuration_look(self) -> Look:
        row = configuration_input(self._file)
        assert row.look is not None
        return await row.look(None)

    async def _reloaded(self) -> tuple[Look, Configuration]:
        """Return the configuration that was read again, as soon as it is valid."""
        reported: Look | None = None
        while True:
            look = await self._configuration_look()
            if look != reported:
                try:
                    configuration = load_configuration(self._file)
                except PegboardError as error:
                    text = f"{error} Nothing is built until it is correct."
                    self._report(WatchEvent("invalid", text, {"problem": str(error)}))
                    reported = look
                else:
                    self._report(WatchEvent("reloaded", str(self._file)))
                    return look, configuration
            await anyio.sleep(SETTLE_SECONDS)

    async def _build_until_redefined(self, configuration: Configuration, watcher: Watcher) -> None:
        """Build what is due again and again, until a file that names inputs changed."""
        with anyio.move_on_after(FIRST_LOOK_SECONDS):
            await watcher.wait_until_complete()
        while not watcher.redefined:
            if catalogs := self._catalogs_to_build(watcher):
                await self._settle(watcher)
                if watcher.redefined:
                    return
                catalogs = self._catalogs_to_build(watcher) or catalogs
                await self._build_catalogs(configuration, watcher, catalogs)
            else:
                await watcher.wait_for_change(self._seconds_to_retry(watcher))

    async def _settle(self, watcher: Watcher) -> None:
        """Wait until nothing changed for a moment."""
        with anyio.move_on_after(MAX_SETTLE_SECONDS):
            while await watcher.wait_for_change(SETTLE_SECONDS):
                pass

    def _catalogs_to_build(self, watcher: Watcher) -> list[str]:
        """Return the catalogs that are due and do not wait for another attempt."""
        now = anyio.current_time()
        for name in watcher.take_recovered():
            self._retries.pop(name, None)
        catalogs: list[str] = []
        for name in watcher.due():
            retry = self._retries.get(name)
            waits = retry is not None and retry.after > now
            if not waits or (retry and retry.looks != watcher.looks_of({name})):
                catalogs.append(name)
        return catalogs

    def _seconds_to_retry(self, watcher: Watcher) -> float:
        """Return the seconds until the next failed catalog is tried again."""
        due = watcher.due()
        waits = [retry.after for name, retry in self._retries.items() if name in due]
        return max(min(waits, default=float("inf")) - anyio.current_time(), 0.0)

    async def _build_catalogs(
        self, configuration: Configuration, watcher: Watcher, catalogs: list[str]
    ) -> BuildResult:
        looks = watcher.looks_of({*catalogs})
        text = ", ".join(catalogs)
        self._report(WatchEvent("building", text, {"catalogs": catalogs}))
        start = anyio.current_time()
        try:
            result = await self._build(configuration, catalogs)
        except Exception as error:  # a failed build does not end the watch
            text = redact_line(str(error)) or type(error).__name__
            result = BuildResult(text, succeeded=False, exit_code=1)
        seconds = round(anyio.current_time() - start, 1)
        kind = "built" if result.succeeded else "failed"
        facts = {"catalogs": catalogs, "seconds": seconds, **result.facts}
        self._report(WatchEvent(kind, f"{text}: {result.text} ({seconds:g} s)", facts))
        await self._record(configuration, watcher, catalogs, looks, result)
        return result

    async def _record(
        self,
        configuration: Configuration,
        watcher: Watcher,
        catalogs: list[str],
        looks: Mapping[str, Look],
        result: BuildResult,
    ) -> None:
        """Record what was built, and when the rest is tried again."""
        failed = {*catalogs} if not result.succeeded else {*catalogs} & {*result.failed}
        for name in failed:
            count = self._retries[name].count + 1 if name in self._retries else 1
            seconds = min(RETRY_SECONDS * 2 ** (count - 1), MAX_RETRY_SECONDS)
            attempt = {key: look for key, look in looks.items() if key in watcher.looks_of({name})}
            self._retries[name] = _Retry(attempt, count, anyio.current_time() + seconds)
        for name in {*catalogs} - failed:
            self._retries.pop(name, None)
        if not (built := self._inputs_built(watcher, catalogs, failed, result) & looks.keys()):
            return
        self._built.update({key: looks[key] for key in built})
        stored = dict(self._built)
        try:
            await in_thread(lambda: write_looks(configuration.uri, stored))
        except StoreError as error:
            problem = f"what was built is not recorded: {error}"
            self._report(WatchEvent("failed", problem, {"problem": str(error)}))

    def _inputs_built(
        self, watcher: Watcher, catalogs: list[str], failed: set[str], result: BuildResult
    ) -> set[str]:
        """Return the keys of the inputs that a build took up. It takes up the configuration even if
        it could not list some catalogs, which are tried again by themselves.
        """
        keys = {*watcher.looks_of({*catalogs} - failed)}
        if result.succeeded:
            keys |= {row.key for row in watcher.inputs if row.catalog == ALL}
        return keys
