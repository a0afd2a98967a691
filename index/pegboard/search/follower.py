"""Follow a channel: when it is checked, behaviour during an outage, and the age of answers."""

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
"""Seconds that a call waits to learn whether the store is back; the first call that finds it away
waits as long as that takes.
"""
CHECK_SHARE = 0.5
"""A check is due after this share of `refresh`: the rest is for the check itself, while other
callers answer from the release at hand.
"""

logger = logging.getLogger("pegboard")


@dataclass(frozen=True, slots=True)
class BoardStatus:
    """The release that a board answers from, and its age.

    Attributes:
        release: the id of the release at hand.
        channel: the channel that is followed; None for a board that was opened with `release=`.
        generation: the channel's generation then; None without a channel.
        loaded_at: when the release at hand was loaded.
        checked_at: when the channel was last read, and its release at hand.
        age_seconds: the seconds since then; 0 without a channel, since a release never changes.
        error: why the last look at the channel failed; None if it did not.
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
    """The outcome of one check; replaced as a whole, so that readers see one moment."""

    loaded: LoadedRelease
    loaded_at: datetime
    channel: Channel
    checked_at: datetime
    checked: float
    error: str | None = None


class ChannelFollower:
    """The loaded release of a channel, kept up to date. Threads may share it.

    An answer is at most `refresh` seconds behind the channel: once half of that has passed since
    the last check began, the next caller checks, while the others answer from the release at hand.
    A failed check is repeated after as long again.

    Args:
        read: reads the channel.
        load: loads a release by its id.
        prove: raises an error unless a release can answer.
    """

    def __init__(
        self,
        read: Callable[[], Channel],
        load: Callable[[str], LoadedRelease],
        prove: Callable[[LoadedRelease], None],
        *,
        refresh: float,
    ) -> None:
        self._read, self._load, self._prove, self._refresh = read, load, prove, refresh
        self._process, self._lock = os.getpid(), Lock()
        now, self._last_check = datetime.now(UTC), time.monotonic()
        channel = read()
        self._state = _State(load(channel.release), now, channel, now, self._last_check)

    @property
    def loaded(self) -> LoadedRelease:
        """The loaded release, without a check of the channel."""
        return self._state.loaded

    def current(self) -> LoadedRelease:
        """Return the release to answer from. Never raises: an old release is better than none."""
        lock = self._process_lock()
        if self._due() and lock.acquire(blocking=False):
            if self._state.error is None:
                self._check_and_release(lock)
            else:  # A store that is away takes long to fail again.
                thread = Thread(
                    target=self._check_and_release, args=(lock,), name="pegboard-check", daemon=True
                )
                thread.start()
                thread.join(PATIENCE)
        return self._state.loaded

    def replacement(self, failed: LoadedRelease) -> LoadedRelease | None:
        """Return the channel's release if it is another than one whose tables could not be read.

        Checks at once, but no more often than usual while the store is away.
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
        # A move of the channel after this moment may be missed, one before is not.
        began_at, began = datetime.now(UTC), time.monotonic()
        try:
            channel = self._read()
            loaded, loaded_at = state.loaded, state.loaded_at
            if channel.release != loaded.release.id:
                loaded, loaded_at = self._load(channel.release), datetime.now(UTC)
                loaded.warm(state.loaded)
                self._check_answers(loaded, state.loaded)
        # Whatever is wrong with the store or the new release, the one at hand still answers.
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

    def _check_answers(self, loaded: LoadedRelease, before: LoadedRelease) -> None:
        """Raise an error for a release that cannot answer, unless the one before cannot either."""
        try:
            self._prove(loaded)
        except Exception:
            try:
                self._prove(before)
            except Exception:  # such as of a reader by words alone, without the encoder
                return
            raise

    def _due(self) -> bool:
        return time.monotonic() - self._last_check >= self._refresh * CHECK_SHARE

    def _process_lock(self) -> Lock:
        # A thread of the parent may have held the lock at the fork.
        if self._process != os.getpid():
            self._process, self._lock = os.getpid(), Lock()
        return self._lock
