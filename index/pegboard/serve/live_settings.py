"""The settings of a file, read again when it changes: neither a permission nor a new server needs a
restart."""

import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from pegboard.errors import PegboardError
from pegboard.serve.access import AccessRules
from pegboard.serve.settings import GatewaySettings

RELOAD_SECONDS = 1.0
"""Between two looks at the files, at least. One that was written since the look before may be half
written, and is read with the next one."""

log = logging.getLogger("pegboard.serve")


class LiveSettings:
    """Settings and access rules of a pegboard.toml, and of the files of MCP servers it names.

    A change may take from anyone and give to clients with credentials. It never lets everyone in:
    an emptied file reads like one that asks for that, so only a start does.

    Args:
        settings: those to begin with; the changes of their file are followed.
        read: reads a file.

    Attributes:
        closed: whether every client needs credentials, since others than this machine may ask.
    """

    def __init__(self, settings: GatewaySettings, read: Callable[[Path], GatewaySettings]) -> None:
        self._settings, self._read = settings, read
        self._rules = AccessRules(settings.serve.clients)
        self.closed = False
        self._state = self._files()
        self._checked = time.monotonic()

    def current(self) -> AccessRules:
        """Return the rules. While the file is broken, the last good ones hold, and say so."""
        if self._settings.file is not None and time.monotonic() - self._checked >= RELOAD_SECONDS:
            self._checked = time.monotonic()
            state = self._files()
            if state != self._state and not _is_fresh(state):
                self._state = state
                self._reload(self._settings.file)
        return self._rules

    def settings(self) -> GatewaySettings:
        """Return the settings that go with the rules."""
        self.current()
        return self._settings

    def _reload(self, file: Path) -> None:
        try:
            settings = self._read(file)
            rules = AccessRules(settings.serve.clients)
        except PegboardError as error:
            log.error("The settings stay as they were: %s", error)
            return
        if why := self._opens(rules):
            log.error(
                "The settings stay as they were: in %s %s. Restart the gateway if that is meant.",
                file,
                why,
            )
            return
        self._settings, self._rules = settings, rules
        self._state = self._files()
        log.warning("The settings of %s were read again.", file)

    def _opens(self, rules: AccessRules) -> str:
        """Say why everyone would be let in by rules that replace these; else ""."""
        if self._rules.clients and not rules.clients:
            return "[serve.clients] has no clients any more, and anyone could call every tool"
        if self.closed and rules.is_open:
            return "a client has no credentials, and the gateway is not on loopback"
        return ""

    def _files(self) -> dict[Path, tuple[int, int, int]]:
        """Return when each file was changed, in nanoseconds, its bytes and its inode."""
        states: dict[Path, tuple[int, int, int]] = {}
        for path in _paths(self._settings):
            try:
                status = path.stat()
            except OSError:
                continue
            states[path] = status.st_mtime_ns, status.st_size, status.st_ino
        return states


def _paths(settings: GatewaySettings) -> Iterator[Path]:
    if settings.file is not None:
        yield settings.file
    for table in settings.catalogs.values():
        if table.get("type") == "mcp" and table.get("path"):
            yield settings.base / Path(str(table["path"])).expanduser()


def _is_fresh(files: dict[Path, tuple[int, int, int]]) -> bool:
    """Whether a file was changed so lately that its writer may not have finished."""
    ages = (time.time() - changed / 1e9 for changed, _, _ in files.values())
    return any(0 <= age < RELOAD_SECONDS for age in ages)
