"""Prefect as the engine of a command, on a machine with or without a Prefect server.

With PREFECT_API_URL, or a profile of the user's own, the running server is used and nothing is set. Otherwise a server is
started for this run (`flows/server.py`), before anything heavy is imported, so that both cores work at once. Its database
stays beside the configuration in `.pegboard/prefect`: nothing lands in the user's home, and the next start is faster.

Prefect can do this by itself, but then the run imports the whole server too, one after the other: 12.8 s against about
half of it here (`make bench`).
"""

import atexit
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from pegboard.errors import PegboardError

__all__ = ["Engine", "process_seconds"]

STARTUP_SECONDS = 120
"""A new database takes 10 to 30 s on a busy small machine."""


_LOADED = time.monotonic()


def process_seconds() -> float:
    """Seconds since this process was started, imports included; off Linux, since this module was loaded."""
    try:
        started = int(Path("/proc/self/stat").read_text("ascii").rpartition(")")[2].split()[19])
        uptime = float(Path("/proc/uptime").read_text("ascii").split()[0])
    except OSError:
        return time.monotonic() - _LOADED
    return uptime - started / os.sysconf("SC_CLK_TCK")


class Engine:
    """The Prefect server of this process. `start` returns at once; `ready` waits until the server answers."""

    def __init__(self, config: Path) -> None:
        self._home = Path(os.environ.get("PREFECT_HOME") or config.resolve().parent / ".pegboard" / "prefect")
        self._process: subprocess.Popen[bytes] | None = None
        self._url = ""
        self.waited = 0.0

    @property
    def own(self) -> bool:
        """Whether the server was started for this run."""
        return self._process is not None

    def start(self) -> None:
        """Start a server unless there is one to use, and set Prefect's environment. Call it before Prefect is imported."""
        os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
        os.environ.setdefault("DO_NOT_TRACK", "1")
        if "prefect" in sys.modules:  # its settings are made: it will use, or start, a server by itself
            return
        if os.environ.get("PREFECT_API_URL") or os.environ.get("PREFECT_PROFILE") or _user_profile().is_file():
            return
        try:
            self._home.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise PegboardError(
                f"Prefect's working folder {self._home} cannot be made: {error.strerror}. Set PREFECT_HOME to a folder "
                "that can be written, or PREFECT_API_URL to a running Prefect server."
            ) from error
        with socket.create_server(("127.0.0.1", 0), backlog=128) as listening:
            listening.set_inheritable(True)
            self._url = f"http://127.0.0.1:{listening.getsockname()[1]}/api"
            # The command reports errors itself, in one message; that server ends with the run, and any log in it too.
            quiet = {"PREFECT_LOGGING_LEVEL": "CRITICAL", "PREFECT_LOGGING_TO_API_ENABLED": "false"}
            for name, value in quiet.items():
                os.environ.setdefault(name, value)
            os.environ["PREFECT_HOME"] = str(self._home)
            with (self._home / "server.log").open("wb") as log:
                self._process = subprocess.Popen(  # noqa: S603  our own module
                    [sys.executable, "-m", "flows.server", str(listening.fileno())],
                    env={**os.environ, **_server_environment()},
                    pass_fds=[listening.fileno()],
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                )
        os.environ["PREFECT_API_URL"] = self._url
        atexit.register(self.stop)

    def ready(self) -> None:
        """Wait until the server answers. Raises PegboardError with the end of its log if it does not."""
        if self._process is None:
            return
        begin = time.monotonic()
        while time.monotonic() - begin < STARTUP_SECONDS and self._process.poll() is None:
            try:
                with urllib.request.urlopen(f"{self._url}/health", timeout=STARTUP_SECONDS):  # noqa: S310  our own address
                    self.waited = time.monotonic() - begin
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.05)
        log = (self._home / "server.log").read_text("utf-8", "replace").strip().splitlines()
        raise PegboardError(
            f"Prefect's server for this run did not start: {log[-1] if log else 'it said nothing'}. "
            f"Its log is {self._home / 'server.log'}; `pegboard doctor` looks for the cause. "
            "A running server can be used instead: set PREFECT_API_URL."
        )

    def stop(self) -> None:
        """End the server that was started for this run."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(timeout=3)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()


def _user_profile() -> Path:
    return Path(os.environ.get("PREFECT_HOME") or Path.home() / ".prefect") / "profiles.toml"


def _server_environment() -> dict[str, str]:
    return {
        "PREFECT__SERVER_EPHEMERAL": "1",
        "PREFECT__SERVER_WEBSERVER_ONLY": "1",
        "PREFECT__SERVER_FINAL": "1",
        "PREFECT_UI_ENABLED": "0",
        "PREFECT_API_BLOCKS_REGISTER_ON_START": "false",
        "PREFECT_SERVER_LOGGING_LEVEL": "ERROR",
    }
