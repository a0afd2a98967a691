"""The encoders of this run's indexes, each loaded once in a process."""

from functools import cache
from typing import Any

from pegboard.encoders import Encoder, load_encoder
from tasks.configuration import IndexSettings

__all__ = ["encoder_for"]


def encoder_for(settings: IndexSettings) -> Encoder:
    """The encoder of an index. Raises EncoderError if it cannot load; nothing else is ever used in its place."""
    return _encoder(settings.encoder, tuple(sorted(settings.options.items())))


@cache
def _encoder(name: str, options: tuple[tuple[str, Any], ...]) -> Encoder:
    return load_encoder(name, **dict(options))
