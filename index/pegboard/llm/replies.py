"""The JSON in a model's reply, which may stand in a code fence, amid prose or behind thoughts."""

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, cast

MAX_JSON_STARTS = 20
"""Maximum positions in a reply at which a JSON object is parsed, if prose surrounds it."""


def answer_text(reply: str) -> str:
    """Return a reply without the thoughts that some models write before it."""
    return reply.rpartition("</think>")[2].strip()


def json_objects(reply: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects in a reply, in order, nested ones after the one that holds them.

    They may stand in a code fence or amid prose. Broken JSON is never repaired; control characters
    inside strings are accepted.
    """
    text = answer_text(reply)
    decoder = json.JSONDecoder(strict=False)
    start = text.find("{")
    for _ in range(MAX_JSON_STARTS):
        if start < 0:
            return
        with suppress(ValueError, RecursionError):
            yield cast("dict[str, Any]", decoder.raw_decode(text, start)[0])
        start = text.find("{", start + 1)
