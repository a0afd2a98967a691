"""A Prefect server that is stopped during a run and started again: what was published is reported,
and the next run builds.
"""

import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from flows.prefect.names import board_key
from pegboard.errors import BoardNotFound
from pegboard.store.releases import ReleaseStore
from tests.children import end_child, start_child
from tests.flows.prefect_api import GUARD, Api, eventually
from tests.prefect_server import PrefectServer

pytestmark = pytest.mark.prefect

ROOT = Path(__file__).parents[2]
POINTS = (
    "begin take_snapshot",
    "end make_plan",
    "begin compose_index",
    "end stage_tables",
    "begin publish_release",
    "end publish_release",
)


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Generator[PrefectServer]:
    """A server that no other test uses. Its clients try a request again once, not for a minute."""
    server = PrefectServer(tmp_path_factory.mktemp("restarted"))
    server.environment["PREFECT_CLIENT_MAX_RETRIES"] = "1"
    server.environment["PYTHONPATH"] = str(ROOT)
    try:
        server.start()
        yield server
    finally:
        server.stop()


def is_published(workshop) -> bool:
    try:
        return ReleaseStore(workshop.uri).channel("live") is not None
    except BoardNotFound:
        return False


def start_run(server, config, event) -> "subprocess.Popen[str]":
    script = Path(__file__).with_name("paused_run.py")
    return start_child(
        [sys.executable, str(script), str(config), event],
        cwd=config.parent,
        env=server.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.parametrize("point", POINTS)
def test_a_run_is_published_whenever_the_server_was_away_and_no_later_run_waits(
    server, workshop, point
):
    workshop.servers({"git": [workshop.tool("create_issue", "Opens an issue.")]})
    config = workshop.configure().file
    run = start_run(server, config, point)
    try:
        eventually(lambda: (workshop.folder / "reached").exists() or run.poll() is not None)
        assert run.poll() is None, run.communicate()[0]
        server.stop()
        (workshop.folder / "go").touch()
        eventually(lambda: is_published(workshop))
        server.start()
        printed, _ = run.communicate(timeout=GUARD)
    finally:
        end_child(run)
        server.start_if_stopped()
    assert (run.returncode, printed.splitlines()[-1]) == (0, "published"), printed
    api = Api(server.url)
    (first,) = api.runs("reindex", config)
    assert first["state"]["name"] == "Published"
    assert f"board:{board_key(workshop.uri)}" in first["tags"]

    again = start_run(server, config, "never")
    printed, _ = again.communicate(timeout=GUARD)

    assert printed.splitlines()[-1] == "unchanged", printed
    states = [row["state"]["name"] for row in api.runs("reindex", config)]
    assert states == ["Published", "Unchanged"]
    assert "IntegrityError" not in server.log.read_text("utf-8", "replace")
