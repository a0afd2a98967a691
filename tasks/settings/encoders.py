"""The encoders that a configuration names."""

from functools import cache
from typing import Any

from pegboard.encoders import Encoder, load_encoder
from tasks.settings.configuration import IndexSettings


def encoder_for(settings: IndexSettings) -> Encoder:
    """Return the encoder of an index, loaded once in a process.

    Raises:
        EncoderError: the encoder cannot be loaded. No other encoder is used instead.
    """
    return _encoder(settings.encoder, tuple(sorted(settings.options.items())))


@cache
def _encoder(name: str, options: tuple[tuple[str, Any], ...]) -> Encoder:
    return load_encoder(name, **dict(options))
