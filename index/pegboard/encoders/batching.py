"""Batches the requests of concurrent callers.

A caller encodes at once if the encoder is free. Otherwise it queues, and the first caller in the
queue then encodes the texts of all. No caller waits for a timer, and batches grow with the load.
"""

import os
from collections import deque
from collections.abc import Callable, Sequence
from threading import Event, Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_TEXTS = 16
"""Maximum number of texts in a batch. Larger batches are not faster, and all callers wait for the
whole batch.
"""


def processors() -> int:
    """Return the number of processors that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


class QueryBatches:
    """Encodes texts for many threads with few calls. An error reaches only the caller whose text
    caused it: after a failed batch, each caller encodes its own texts.

    Args:
        encode: returns the vectors of texts, in order; a vector must not depend on other texts.
        concurrency: the maximum number of concurrent calls of `encode`.
    """

    def __init__(
        self, encode: "Callable[[Sequence[str]], NDArray[np.float32]]", concurrency: int
    ) -> None:
        self._encode = encode
        self._free = concurrency
        self._waiting: deque[_Call] = deque()  # empty while a call may still start
        self._lock = Lock()

    def encode(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """Return what `encode` returns for the texts. Raises what it raises for them."""
        import numpy as np

        call = _Call(texts)
        self._wait_for_turn(call)
        if call.leads:
            self._encode_batch(call)
        if call.vectors is None:
            return self._encode(texts)
        return np.stack(call.vectors) if call.vectors else self._encode(())

    def _wait_for_turn(self, call: "_Call") -> None:
        """Return once the call leads a batch, or its batch is done."""
        with self._lock:
            if self._free:
                self._free -= 1
                call.leads = True
                return
            self._waiting.append(call)
        try:
            call.turn.wait()
        except BaseException:  # the thread was interrupted: release the callers that wait
            with self._lock:
                if call in self._waiting:
                    self._waiting.remove(call)
                elif call.leads:
                    self._pass_on()
            raise

    def _encode_batch(self, leader: "_Call") -> None:
        batch = [leader]
        try:
            with self._lock:
                self._fill(batch)
            texts = list(dict.fromkeys(text for call in batch for text in call.texts))
            vector_of = dict(zip(texts, self._encode(texts), strict=True))
            for call in batch:
                call.vectors = [vector_of[text] for text in call.texts]
        except Exception:
            if len(batch) == 1:
                raise
        finally:
            with self._lock:
                self._pass_on()
            for call in batch[1:]:
                call.turn.set()

    def _fill(self, batch: "list[_Call]") -> None:
        """Move the queued calls that fit into the batch."""
        texts = len(batch[0].texts)
        while self._waiting and texts + len(self._waiting[0].texts) <= MAX_TEXTS:
            batch.append(self._waiting.popleft())
            texts += len(batch[-1].texts)

    def _pass_on(self) -> None:
        """Let the next call lead, or leave the encoder free."""
        if self._waiting:
            call = self._waiting.popleft()
            call.leads = True
            call.turn.set()
        else:
            self._free += 1


class _Call:
    """One caller's texts; `turn` is set once it leads a batch or its batch is done."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts
        self.leads = False
        self.turn = Event()
        self.vectors: list[NDArray[np.float32]] | None = None
