"""A Prefect server on loopback, which tests start, stop and start again."""

import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from tests.children import clean_environment, end_child, start_child


class PrefectServer:
    """A Prefect server with a database and a home of its own.

    Attributes:
        url: of its API.
        home: PREFECT_HOME of the server and its clients.
        environment: for processes that use the server; nothing of the Prefect of the person who
            runs the tests is in it.
        log: the file that its output is appended to.
    """

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = str(free.getsockname()[1])
        self.url = f"http://127.0.0.1:{self._port}/api"
        self.home = folder / "home"
        self.log = folder / "server.log"
        self.environment = _environment(folder, self.url)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it answers."""
        command = [sys.executable, "-m", "prefect", "server", "start"]
        with self.log.open("ab") as output:
            self._process = start_child(
                [*command, "--host", "127.0.0.1", "--port", self._port, "--no-ui"],
                env=self.environment,
                stdout=output,
                stderr=output,
            )
        while not self._answers():  # pytest-timeout is the guard
            assert self._process.poll() is None, self.log.read_text("utf-8", "replace")
            time.sleep(0.2)

    def stop(self) -> None:
        """End it, if it runs; its database stays."""
        if self._process is not None:
            end_child(self._process)
            self._process = None

    def start_if_stopped(self) -> None:
        """Start it again, unless it runs."""
        if self._process is None:
            self.start()

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/health", timeout=60) as answer:
                return answer.status == 200
        except (urllib.error.URLError, OSError):
            return False


def _environment(folder: Path, url: str) -> dict[str, str]:
    user = folder / "user"
    user.mkdir()
    return clean_environment(user) | {
        "PREFECT_HOME": str(folder / "home"),
        "PREFECT_API_URL": url,
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        "NO_COLOR": "1",
        # Waits that a person hardly notices are most of the time of a test.
        "PREFECT_API_BLOCKS_REGISTER_ON_START": "false",
        "PREFECT_WORKER_QUERY_SECONDS": "2",
        "PREFECT_SERVER_DEPLOYMENTS_CONCURRENCY_SLOT_WAIT_SECONDS": "2",
    }
