"""The settings of a file, read again when it changes: neither a permission nor a new server needs a
restart."""

import logging
from collections.abc import Iterator
from pathlib import Path

from pegboard.errors import PegboardError
from pegboard.serve.access import AccessRules
from pegboard.serve.settings import GatewaySettings, load_gateway_settings

FileStates = dict[Path, tuple[int, int, int]]

log = logging.getLogger("pegboard.serve")


class LiveSettings:
    """Settings and access rules of a pegboard.toml, and of the files of MCP servers it names.

    A change may take from anyone and give to clients with credentials. It never lets everyone in:
    an emptied file reads like one that asks for that, so only a start does.

    Attributes:
        settings, rules: those that hold. While the file is broken, these are the last good ones.
        closed: whether every client needs credentials, since others than this machine may ask.
    """

    def __init__(self, settings: GatewaySettings) -> None:
        self.settings, self.rules = settings, AccessRules(settings.serve.clients)
        self.closed = False
        self._read = self._seen = _states(settings)

    def reload_if_changed(self) -> bool:
        """Read files that changed; return whether other settings hold now.

        A change is read at the second look that sees it: at the first, the file may be half
        written.
        """
        states = _states(self.settings)
        settled, self._seen = states == self._seen, states
        if states == self._read or not settled or self.settings.file is None:
            return False
        self._read = states
        try:
            settings = load_gateway_settings(self.settings.file)
            rules = AccessRules(settings.serve.clients)
        except PegboardError as error:
            log.error("The settings stay as they were: %s", error)
            return False
        if why := self._opens(rules):
            log.error(
                "The settings stay as they were: in %s %s. Restart the gateway if that is meant.",
                settings.file,
                why,
            )
            return False
        self.settings, self.rules = settings, rules
        self._read = self._seen = _states(settings)
        log.warning("The settings of %s were read again.", settings.file)
        return True

    def _opens(self, rules: AccessRules) -> str:
        """Say why everyone would be let in by rules that replace these; else ""."""
        if self.rules.clients and not rules.clients:
            return "[serve.clients] has no clients any more, and anyone could call every tool"
        if self.closed and rules.is_open:
            return "a client has no credentials, and the gateway is not on loopback"
        return ""


def _states(settings: GatewaySettings) -> FileStates:
    """Return when each file was changed, in nanoseconds, its bytes and its inode."""
    states: FileStates = {}
    for path in _paths(settings):
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
