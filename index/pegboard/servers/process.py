"""The process of an MCP server: its environment, the end of its stderr, and the end of processes
that it leaves behind.
"""

import os
import re
import secrets
import signal
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import TextIO

from pegboard.text.redaction import is_secret_name

MARK = "PEGBOARD_LISTING"
"""The environment variable by which a server's process, and all processes that it starts, are found
and killed."""
PASSED = re.compile(
    r"(?i)(SSL_CERT_FILE|SSL_CERT_DIR|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|NODE_EXTRA_CA_CERTS"
    r"|HTTP_PROXY|HTTPS_PROXY|ALL_PROXY|NO_PROXY|LANG|LC_ALL|TZ|TMPDIR|XDG_CACHE_HOME|XDG_DATA_HOME"
    r"|(PIP|UV|NPM_CONFIG)_\w+)"
)
"""Variables of this process that a server gets besides those of the SDK (HOME, PATH, ...) and of
its configuration: certificates, proxies, and settings of launchers such as uvx and npx. Variables
with the name of a secret are not passed."""
MAX_TAIL = 8_192
"""Bytes of the end of stderr that are kept in memory, enough for the end of a traceback. Stderr is
never written to a file, since a server may write without end."""


def passed_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of an environment that every stdio server gets."""
    return {
        name: value
        for name, value in environment.items()
        if PASSED.fullmatch(name) and not is_secret_name(name)
    }


@contextmanager
def killing_leftovers() -> Generator[dict[str, str]]:
    """Yield variables for a server, and kill every process that inherited them after the block.

    The SDK ends a server's process group unless the server itself ended first, so that a launcher
    with a child in the background would leave one more process with each build. Only Linux shows
    the environment of a process; on other systems such processes stay.
    """
    mark = secrets.token_hex(16)
    try:
        yield {MARK: mark}
    finally:
        marked = f"{MARK}={mark}".encode()
        for environ in Path("/proc").glob("[0-9]*/environ"):
            with suppress(OSError):
                process = int(environ.parent.name)
                if marked in environ.read_bytes().split(b"\0") and process != os.getpid():
                    os.kill(process, signal.SIGKILL)


class Stderr:
    """A pipe for the stderr of a process, which keeps only the end of the text."""

    def __init__(self) -> None:
        reading, writing = os.pipe()
        self.file: TextIO = os.fdopen(writing, "w")
        self._tail = b""
        self._cut = False
        self._drain = Thread(target=self._read, args=(reading,), daemon=True)
        self._drain.start()

    def end(self) -> str:
        """Close the pipe, and return the end of the text in whole lines."""
        self.file.close()
        self._drain.join(timeout=1)
        text = self._tail.decode("utf-8", "replace")
        return text.partition("\n")[2] if self._cut else text

    def _read(self, reading: int) -> None:
        while chunk := os.read(reading, 65_536):
            self._cut = self._cut or len(self._tail) + len(chunk) > MAX_TAIL
            self._tail = (self._tail + chunk)[-MAX_TAIL:]
        os.close(reading)
