"""The encoders of this run's indexes, each loaded once in a process."""

import os
from functools import cache
from typing import Any

from pegboard.encoders import Encoder, load_encoder
from tasks.settings.configuration import IndexSettings


def encoder_for(settings: IndexSettings) -> Encoder:
    """The encoder of an index. Raises EncoderError if it cannot load; nothing else is ever used in
    its place.
    """
    return _encoder(settings.encoder, tuple(sorted(settings.options.items())))


@cache
def _encoder(name: str, options: tuple[tuple[str, Any], ...]) -> Encoder:
    return load_encoder(name, **dict(options))


def usable_cores() -> int:
    """How many cores this process may use, which may be fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
