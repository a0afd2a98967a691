"""The progress of long steps as artifacts, with a client that records what it is asked for."""

from contextlib import contextmanager
from types import SimpleNamespace
from uuid import UUID

from flows.prefect import progress


def test_a_running_step_has_one_artifact_that_is_updated_and_an_ended_one_has_none(monkeypatch):
    calls = []

    class Client:
        def create_artifact(self, artifact):
            calls.append(("create", artifact.key, artifact.data))
            return SimpleNamespace(id=UUID(int=1))

        def update_artifact(self, artifact, update):
            calls.append(("update", artifact, update.data))

    @contextmanager
    def client(**_):
        yield Client()

    monkeypatch.setattr(progress, "get_client", client)
    artifacts = progress._Artifacts(UUID(int=2), "acme-board-3f9a1c")
    running = [*progress.STEPS]

    artifacts.count("embed", 4, 0)
    artifacts.count("embed", 0, 4)
    artifacts.count("enrich", 10, 0)
    artifacts.count("enrich", 0, 5)
    artifacts._update([step for step in running if artifacts._is_running(step)])
    artifacts._update([step for step in running if artifacts._is_running(step)])
    artifacts.count("enrich", 0, 5)
    artifacts._update([step for step in running if artifacts._is_running(step)])

    assert calls == [
        ("create", "enrich-progress-acme-board-3f9a1c", 50.0),
        ("update", UUID(int=1), 100.0),
    ]
