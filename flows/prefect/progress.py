"""The progress of long steps as artifacts of a flow run."""

import logging
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from threading import Event, Lock, Thread
from uuid import UUID

import httpx
from prefect import get_client
from prefect.client.schemas.actions import ArtifactCreate, ArtifactUpdate

from tasks.runtime import progress

STEPS = {
    "enrich": "Requests to the LLM that are answered.",
    "embed": "Texts that are encoded.",
}
"""Steps that may take minutes, and what their progress counts."""
UPDATE_SECONDS = 3.0
"""Seconds between two updates of the artifacts."""
logger = logging.getLogger(__name__)


@contextmanager
def progress_artifacts(run: UUID, key: str) -> Generator[None]:
    """Show the progress of long steps as artifacts of a flow run while what is inside runs.

    Args:
        key: the board's, with which the keys of the artifacts end.
    """
    artifacts = _Artifacts(run, key)
    ended = Event()
    thread = Thread(target=artifacts.update_until, args=(ended,), name="progress", daemon=True)
    with progress.observed(artifacts.count):
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


class _Artifacts:
    """Counts the pieces of steps, and updates an artifact for each from a thread of its own: a step
    may report from an event loop, which a request would block.
    """

    def __init__(self, run: UUID, key: str) -> None:
        self._run = run
        self._key = key
        self._totals: Counter[str] = Counter()
        self._done: Counter[str] = Counter()
        self._shown: dict[str, tuple[int, UUID]] = {}
        self._lock = Lock()

    def count(self, step: str, total: int, done: int) -> None:
        with self._lock:
            self._totals[step] += total
            self._done[step] += done

    def update_until(self, ended: Event) -> None:
        while not ended.wait(UPDATE_SECONDS):
            self._update([step for step in STEPS if self._is_running(step)])
        self._update([*self._shown])

    def _is_running(self, step: str) -> bool:
        """Return whether a step is under way, or its last pieces are not shown yet. One that has
        ended before its first update needs no artifact.
        """
        return step in self._shown or self._done[step] < self._totals[step]

    def _update(self, steps: list[str]) -> None:
        for step in steps:
            with self._lock:
                total = self._totals[step]
                done = self._done[step]
            try:
                self._show(step, done, total)
            except (httpx.HTTPError, RuntimeError) as error:
                logger.debug("The progress of %s was not shown: %s", step, error)

    def _show(self, step: str, done: int, total: int) -> None:
        shown = self._shown.get(step)
        if shown is not None and shown[0] == done:
            return
        percent = min(100.0, 100.0 * done / total)
        description = f"{STEPS[step]} {done} of {total}."
        with get_client(sync_client=True) as client:
            if shown is not None:
                update = ArtifactUpdate(data=percent, description=description)
                client.update_artifact(shown[1], update)
                self._shown[step] = done, shown[1]
                return
            artifact = client.create_artifact(
                ArtifactCreate(
                    type="progress",
                    key=f"{step}-progress-{self._key}",
                    description=description,
                    data=percent,
                    flow_run_id=self._run,
                )
            )
            self._shown[step] = done, artifact.id
