"""A Prefect server that is stopped during a run and started again: what was published is reported,
and the next run builds.
"""

import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from flows.prefect.names import board_resource, board_tag
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
    with (config.parent / "stderr").open("ab") as errors:
        return start_child(
            [sys.executable, str(script), str(config), event],
            cwd=config.parent,
            env=server.environment,
            stdout=subprocess.PIPE,
            stderr=errors,
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
        assert run.poll() is None, (workshop.folder / "stderr").read_text("utf-8")
        server.stop()
        (workshop.folder / "go").touch()
        eventually(lambda: is_published(workshop))
        server.start()
        printed, _ = run.communicate(timeout=GUARD)
    finally:
        end_child(run)
        server.start_if_stopped()
    log = (workshop.folder / "stderr").read_text("utf-8")
    assert (run.returncode, printed) == (0, "published\n"), log
    api = Api(server.url)
    (first,) = api.runs("reindex", config)
    assert first["state"]["name"] == "Published"
    assert board_tag(workshop.uri) in first["tags"]

    resource = board_resource(workshop.uri)
    (event,) = eventually(lambda: api.events("pegboard.release.", resource))
    assert event["event"] == "pegboard.release.published"

    again = start_run(server, config, "never")
    printed, _ = again.communicate(timeout=GUARD)

    assert printed == "unchanged\n", (workshop.folder / "stderr").read_text("utf-8")
    states = [row["state"]["name"] for row in api.runs("reindex", config)]
    assert states == ["Published", "Unchanged"]
    assert "UNIQUE constraint failed" not in server.log.read_text("utf-8", "replace")


def pause_run(server, workshop, event):
    """Start a run that pauses at an event of a step; returns its process and its id."""
    for name in ("reached", "go"):
        (workshop.folder / name).unlink(missing_ok=True)
    config = workshop.folder / "pegboard.toml"
    process = start_run(server, config, event)
    eventually(lambda: (workshop.folder / "reached").exists() or process.poll() is not None)
    assert process.poll() is None, (workshop.folder / "stderr").read_text("utf-8")
    return process, Api(server.url).runs("reindex", config)[-1]["id"]


def test_a_run_during_which_the_server_restarted_is_not_taken_for_lost_when_it_has_ended(
    server, workshop
):
    """The first run has ended when the second is killed, so its time would be over earlier."""
    api = Api(server.url)
    workshop.servers({"git": [workshop.tool("create_issue", "Opens an issue.")]})
    config = workshop.configure().file
    deploy = [sys.executable, "-m", "pegboard", "deploy", "--name", "kept", "--cron", "none"]
    subprocess.run(deploy, cwd=config.parent, env=server.environment, check=True, timeout=GUARD)
    process, ended = pause_run(server, workshop, "begin publish_release")
    try:
        server.stop()
        server.start()
        (workshop.folder / "go").touch()
        process.communicate(timeout=GUARD)
    finally:
        end_child(process)
        server.start_if_stopped()
    assert api.state(ended) == "Published"
    workshop.servers({"git": [workshop.tool("close_issue", "Closes an issue.")]})
    process, killed = pause_run(server, workshop, "begin publish_release")
    process.kill()
    process.communicate()

    assert api.ended(killed)["name"] == "Crashed"

    automation = f"prefect.automation.{api.automation('pegboard kept: lost runs end')['id']}"

    def fired() -> set[str]:
        """The runs that the automation took for lost."""
        events = api.events("prefect.automation.triggered", automation)
        labels = [row["payload"]["triggering_labels"] for row in events]
        return {row["prefect.resource.id"].rpartition(".")[2] for row in labels}

    lost = eventually(fired)
    assert killed in lost
    assert lost <= {killed, *api.subflows(killed).values()}
