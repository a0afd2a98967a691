"""Boards of the reader's tests that take several builds: built once per session, and copied by
whoever changes them.
"""

import shutil
from datetime import UTC, datetime, timedelta

import pytest

from tasks.settings.configuration import KeepSettings
from tasks.steps.prune import prune_board
from tests.openai_server import KEY, serve_openai


@pytest.fixture
def server():
    """A scripted server with OpenAI's API."""
    with serve_openai() as server:
        yield server


@pytest.fixture
def openai_key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


@pytest.fixture(scope="session")
def two_releases_built(tmp_path_factory, workshop_type):
    workshop = workshop_type(tmp_path_factory.mktemp("two-releases"))
    first, second = (
        workshop.publish(
            {name: [workshop.tool(f"{name}_{number}", f"Task {number}.") for number in range(12)]},
            allow_removal=True,
        ).release
        for name in ("old", "new")
    )
    workshop.store.promote(first.id)
    return workshop.uri, first, second


@pytest.fixture
def two_releases(two_releases_built, workshop):
    """A copy of a board with two releases that share no tool, the first live; the tools of each are
    named after it.
    """
    uri, first, second = two_releases_built
    shutil.copytree(uri, workshop.uri)
    return workshop, first, second


@pytest.fixture
def publish_and_prune():
    """A function: publishes two further releases, each with tools of its own, removes all releases
    that the channel no longer needs, and returns what was removed.
    """

    def publish_and_prune(workshop):
        for name in ("third", "fourth"):
            tools = [workshop.tool(f"{name}_{number}", f"Task {number}.") for number in range(12)]
            workshop.publish({name: tools}, allow_removal=True)
        keep = KeepSettings(releases=1, days=0, grace_hours=1e-6)
        return prune_board(workshop.uri, keep, datetime.now(UTC) + timedelta(hours=1))

    return publish_and_prune
