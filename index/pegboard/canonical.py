"""The canonical JSON form of a value and its digest, which do not depend on key order, white space
or the notation of numbers (5 and 5.0).
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

_ENCODER = json.JSONEncoder(
    ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False
)


def canonical_json(value: Any) -> str:
    """The one JSON text of a value: keys sorted, no whitespace, integral floats as integers.

    `required` lists of JSON Schema are sets, so they are sorted. Raises UnicodeEncodeError later,
    when encoded, for text that is not valid Unicode; raises ValueError for NaN and infinity, which
    JSON does not have."""
    return _ENCODER.encode(_canonical(value))


def digest(*values: Any) -> str:
    """The sha256 over the canonical forms of the values, as 64 hexadecimal digits."""
    return digest_of_json(map(canonical_json, values))


def digest_of_json(texts: Iterable[str]) -> str:
    """The `digest` of values whose canonical JSON is written already."""
    text = f"[{','.join(texts)}]"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _canonical(value: Any, key: str = "") -> Any:
    if isinstance(value, str):  # most values are; to ask an abstract class takes longer
        return value
    if isinstance(value, Mapping):
        mapping = cast("Mapping[Any, Any]", value)
        return {str(name): _canonical(item, str(name)) for name, item in mapping.items()}
    if isinstance(value, (list, tuple)):
        items = cast("Sequence[Any]", value)
        if key == "required" and all(isinstance(item, str) for item in items):
            return sorted(items)
        return [_canonical(item) for item in items]
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value
