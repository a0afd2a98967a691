"""Following a channel: when it is checked, what happens during an outage, how old answers are."""

import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from threading import Lock, Thread

from pegboard.search.loaded import LoadedRelease
from pegboard.store.releases import Channel

PATIENCE = 0.25
"""Seconds that a call waits for a check while the store is unreachable; the first call that finds
the store unreachable waits for the whole check.
"""
CHECK_SHARE = 0.5
"""Share of `refresh` after which a check is due. The rest is for the check itself, during which
other callers are answered from the current release.
"""

logger = logging.getLogger("pegboard")


@dataclass(frozen=True, slots=True)
class BoardStatus:
    """The release that a board answers from, and its age.

    Attributes:
        release: the id of the current release.
        channel: the channel that is followed; None for a board that was opened with `release=`.
        generation: the channel's generation at the last check; None without a channel.
        loaded_at: when the current release was loaded.
        checked_at: when the channel was last read successfully.
        age_seconds: seconds since `checked_at`; 0 without a channel, since a release never changes.
        error: why the last check failed; None if it succeeded.
    """

    release: str
    channel: str | None
    generation: int | None
    loaded_at: datetime
    checked_at: datetime
    age_seconds: float
    error: str | None


@dataclass(frozen=True, slots=True)
class _State:
    """The outcome of one check. Replaced atomically, so that readers see consistent values."""

    loaded: LoadedRelease
    loaded_at: datetime
    channel: Channel
    checked_at: datetime
    checked: float
    error: str | None = None


class ChannelFollower:
    """The loaded release of a channel, kept up to date. Thread-safe.

    An answer is at most `refresh` seconds behind the channel: once half of that has passed since
    the last check began, the next caller checks, while others are answered from the current
    release. A failed check is repeated after the same time.

    Args:
        read: reads the channel.
        load: loads a release by its id.
        prove: raises an error unless a release can answer a search.
        refresh: seconds.
    """

    def __init__(
        self,
        read: Callable[[], Channel],
        load: Callable[[str], LoadedRelease],
        prove: Callable[[LoadedRelease], None],
        *,
        refresh: float,
    ) -> None:
        self._read = read
        self._load = load
        self._prove = prove
        self._refresh = refresh
        self._process = os.getpid()
        self._lock = Lock()
        now = datetime.now(UTC)
        self._last_check = time.monotonic()
        channel = read()
        self._state = _State(load(channel.release), now, channel, now, self._last_check)

    @property
    def loaded(self) -> LoadedRelease:
        """The current release, without a check of the channel."""
        return self._state.loaded

    def current(self) -> LoadedRelease:
        """Check the channel if a check is due, and return the current release. Never raises: an old
        release is better than none.
        """
        lock = self._process_lock()
        if self._due() and lock.acquire(blocking=False):
            if self._state.error is None:
                self._check_and_release(lock)
            else:  # An unreachable store takes long to fail again.
                thread = Thread(
                    target=self._check_and_release, args=(lock,), name="pegboard-check", daemon=True
                )
                thread.start()
                thread.join(PATIENCE)
        return self._state.loaded

    def replacement(self, failed: LoadedRelease) -> LoadedRelease | None:
        """Return the channel's release if it differs from the one whose tables could not be read,
        else None.

        Checks immediately, but not more often than usual while the store is unreachable.
        """
        with self._process_lock():
            if self._state.loaded is failed and (self._state.error is None or self._due()):
                self._check()
            return None if self._state.loaded is failed else self._state.loaded

    def status(self) -> BoardStatus:
        """Return the current status."""
        state = self._state
        return BoardStatus(
            release=state.loaded.release.id,
            channel=state.channel.name,
            generation=state.channel.generation,
            loaded_at=state.loaded_at,
            checked_at=state.checked_at,
            age_seconds=time.monotonic() - state.checked,
            error=state.error,
        )

    def _check_and_release(self, lock: Lock) -> None:
        try:
            self._check()
        finally:
            lock.release()

    def _check(self) -> None:
        state = self._state
        # This check sees every move of the channel up to this moment; later ones may be missed.
        began_at = datetime.now(UTC)
        began = time.monotonic()
        try:
            channel = self._read()
            loaded = state.loaded
            loaded_at = state.loaded_at
            if channel.release != loaded.release.id:
                loaded = self._load(channel.release)
                loaded_at = datetime.now(UTC)
                loaded.warm(state.loaded)
                self._check_answers(loaded, state.loaded)
        # Whatever failed in the store or the new release, the current release still answers.
        except Exception as error:
            self._state = replace(state, error=str(error) or type(error).__name__)
            self._last_check = time.monotonic()
            if state.error is None:
                since = f"{state.checked_at:%Y-%m-%d %H:%M:%S} UTC"
                release = state.loaded.release.id
                logger.warning("The board stays on release %s of %s: %s", release, since, error)
            return
        self._state = _State(loaded, loaded_at, channel, began_at, began)
        self._last_check = began
        if state.error is not None:
            release = channel.release
            logger.info("The board follows channel '%s' again: release %s.", channel.name, release)

    def _check_answers(self, loaded: LoadedRelease, previous: LoadedRelease) -> None:
        """Raise an error if a release cannot answer and the previous one can."""
        try:
            self._prove(loaded)
        except Exception:
            try:
                self._prove(previous)
            except Exception:  # such as of a reader that searches text alone, without the encoder
                return
            raise

    def _due(self) -> bool:
        return time.monotonic() - self._last_check >= self._refresh * CHECK_SHARE

    def _process_lock(self) -> Lock:
        # A thread of the parent process may have held the lock at the fork.
        if self._process != os.getpid():
            self._process = os.getpid()
            self._lock = Lock()
        return self._lock
