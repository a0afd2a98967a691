"""What surrounds the process of an MCP server: the variables it gets, the end of its stderr, and
that nothing of it stays.
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
"""The environment variable of a server's process, and of all that it starts, by which they are
found and ended."""
PASSED = re.compile(
    r"(?i)(SSL_CERT_FILE|SSL_CERT_DIR|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|NODE_EXTRA_CA_CERTS"
    r"|HTTP_PROXY|HTTPS_PROXY|ALL_PROXY|NO_PROXY|LANG|LC_ALL|TZ|TMPDIR|XDG_CACHE_HOME|XDG_DATA_HOME"
    r"|(PIP|UV|NPM_CONFIG)_\w+)"
)
"""Variables of this process that a server gets besides the SDK's own few (HOME, PATH, ...) and
those of its configuration: certificates, proxies, and the settings of launchers such as uvx and
npx. Names that sound like a secret are not passed."""
KEPT = 8_192
"""Bytes of stderr: enough for the end of a traceback. A server may write without end, so it never
goes to a file.
"""


def passed_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables of an environment that every stdio server gets."""
    return {
        name: value
        for name, value in environment.items()
        if PASSED.fullmatch(name) and not is_secret_name(name)
    }


@contextmanager
def killing_leftovers() -> Generator[dict[str, str]]:
    """Yield variables for a server; afterwards kill every process that inherited them.

    The SDK ends a server's process group, but not if the server itself ended first: a launcher that
    leaves a child in the background would leave one more every night. Only Linux tells the
    environment of a process; elsewhere they stay.
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
    """A pipe for the stderr of a process, of which only the end is kept."""

    def __init__(self) -> None:
        reading, writing = os.pipe()
        self.file: TextIO = os.fdopen(writing, "w")
        self._tail = b""
        self._cut = False
        self._drain = Thread(target=self._read, args=(reading,), daemon=True)
        self._drain.start()

    def end(self) -> str:
        """Close the pipe, and return the end of what was written, in whole lines."""
        self.file.close()
        self._drain.join(timeout=1)
        text = self._tail.decode("utf-8", "replace")
        return text.partition("\n")[2] if self._cut else text

    def _read(self, reading: int) -> None:
        while chunk := os.read(reading, 65_536):
            self._cut = self._cut or len(self._tail) + len(chunk) > KEPT
            self._tail = (self._tail + chunk)[-KEPT:]
        os.close(reading)
