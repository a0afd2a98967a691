"""How a board follows its channel: when it looks, what it does when it cannot, and how old what it
has then is.
"""

import os
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING

from pegboard.search.loaded import LoadedRelease
from pegboard.store.releases import Channel

if TYPE_CHECKING:
    from logging import Logger

PATIENCE = 0.25
"""Seconds that a call waits to learn whether the store is back; the first call that finds it away
waits as long as that takes.
"""
LOOK_SHARE = 0.5
"""A look is due after this share of `refresh`: the rest is for the look itself, while other callers
answer from what is there.
"""
SHORTEST_WAIT = 0.05
"""Seconds that a thread in the background waits between two looks, at least."""


@dataclass(frozen=True, slots=True)
class BoardStatus:
    """What a board answers from, and how old that may be.

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
class _Held:
    """All that one look found out; replaced as a whole, so that every reader of it sees one
    moment.
    """

    loaded: LoadedRelease
    loaded_at: datetime
    channel: Channel
    checked_at: datetime
    checked: float
    error: str | None = None


class Following:
    """The loaded release of a channel, kept up to date. Threads may share it.

    An answer is at most `refresh` seconds behind the channel: once half of that has passed since
    the last look began, the next caller looks, while the others go on with what is there; with
    `background` a thread looks instead. A look that fails is repeated after as long again.
    """

    def __init__(
        self,
        read: Callable[[], Channel],
        load: Callable[[str], LoadedRelease],
        *,
        refresh: float,
        background: bool = False,
    ) -> None:
        self._read, self._load, self._refresh = read, load, refresh
        self._process, self._lock = os.getpid(), Lock()
        now, self._looked = datetime.now(UTC), time.monotonic()
        channel = read()
        loaded = load(channel.release)
        self._held = _Held(loaded, now, channel, now, self._looked)
        self._stop = Event()
        self._thread = (
            _thread(self, self._stop, max(refresh * LOOK_SHARE, SHORTEST_WAIT))
            if background
            else None
        )

    def current(self) -> LoadedRelease:
        """The release to answer from. Never raises: what is at hand is better than nothing."""
        if self._thread is not None and self._thread.is_alive():
            return self._held.loaded
        lock = self._guard()
        if self._due() and lock.acquire(blocking=False):
            if self._held.error is None:
                self._look_and_release(lock)
            else:  # A store that is away takes its time to say so again.
                looking = Thread(
                    target=self._look_and_release, args=(lock,), name="pegboard-look", daemon=True
                )
                looking.start()
                looking.join(PATIENCE)
        return self._held.loaded

    @property
    def held(self) -> LoadedRelease:
        """The release at hand, without looking at the channel."""
        return self._held.loaded

    def instead_of(self, failed: LoadedRelease) -> LoadedRelease | None:
        """The channel's release, if that is another than one whose tables could not be read; looks
        at once.

        While the store is away it looks no more often than ever.
        """
        with self._guard():
            if self._held.loaded is failed and (self._held.error is None or self._due()):
                self._look()
            return None if self._held.loaded is failed else self._held.loaded

    def look(self) -> None:
        """Look at the channel now, after whoever is looking."""
        with self._guard():
            self._look()

    def status(self) -> BoardStatus:
        """What is at hand, as of now."""
        held = self._held
        return BoardStatus(
            release=held.loaded.release.id,
            channel=held.channel.name,
            generation=held.channel.generation,
            loaded_at=held.loaded_at,
            checked_at=held.checked_at,
            age_seconds=time.monotonic() - held.checked,
            error=held.error,
        )

    def close(self) -> None:
        """End the thread in the background, if there is one; callers look again."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _look_and_release(self, lock: Lock) -> None:
        try:
            self._look()
        finally:
            lock.release()

    def _look(self) -> None:
        held = self._held
        # A move of the channel after this moment may be missed, one before is not.
        began_at, began = datetime.now(UTC), time.monotonic()
        try:
            channel = self._read()
            loaded, loaded_at = held.loaded, held.loaded_at
            if channel.release != loaded.release.id:
                loaded, loaded_at = self._load(channel.release), datetime.now(UTC)
                loaded.warm(held.loaded)
        # Whatever is wrong with the store or the new release, the one at hand still answers.
        except Exception as error:
            if held.error is None:
                since = f"{held.checked_at:%Y-%m-%d %H:%M:%S} UTC"
                _log().warning(
                    "The board stays on release %s of %s: %s", held.loaded.release.id, since, error
                )
            self._held = replace(held, error=str(error) or type(error).__name__)
            self._looked = time.monotonic()
        else:
            if held.error is not None:
                _log().info(
                    "The board follows channel '%s' again: release %s.",
                    channel.name,
                    channel.release,
                )
            self._held = _Held(loaded, loaded_at, channel, began_at, began)
            self._looked = began

    def _due(self) -> bool:
        return time.monotonic() - self._looked >= self._refresh * LOOK_SHARE

    def _guard(self) -> Lock:
        if (
            self._process != os.getpid()
        ):  # A thread of the parent may have held the lock at the fork.
            self._process, self._lock = os.getpid(), Lock()
        return self._lock


def _thread(following: Following, stop: Event, wait: float) -> Thread:
    """A thread that looks every `wait` seconds until it is stopped or the board is forgotten."""
    known = weakref.ref(following)

    def run() -> None:
        while not stop.wait(wait):
            there = known()
            if there is None:
                return
            there.look()
            del there

    thread = Thread(target=run, name="pegboard-refresh", daemon=True)
    thread.start()
    return thread


def _log() -> "Logger":
    import logging

    return logging.getLogger("pegboard")
