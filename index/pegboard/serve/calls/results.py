"""Results of calls as servers send them: what is valid is handed on, and the rest as text."""

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, cast

from mcp_types import CallToolResult, ContentBlock, InputRequiredResult, TextContent
from pydantic import TypeAdapter, ValidationError

_BLOCK: TypeAdapter[ContentBlock] = TypeAdapter(ContentBlock)


def call_result(raw: Mapping[str, Any]) -> CallToolResult | InputRequiredResult:
    """Return the result of a call as far as it is valid.

    A block of an unknown kind becomes a text with its JSON. Structured content without content is
    repeated as a text, as the protocol recommends; numbers in it that JSON lacks become null.

    Raises:
        ValidationError: a question to the user is invalid.
    """
    if raw.get("resultType") == "input_required":
        return InputRequiredResult.model_validate(raw, by_name=False)
    structured = _finite(raw.get("structuredContent"))
    content: list[ContentBlock] = [_block(block) for block in _blocks(raw)]
    if structured is not None and not content:
        content = [TextContent(text=_as_json(structured))]
    meta = raw.get("_meta")
    return CallToolResult(
        content=content,
        # Clients with protocols before 2026-07-28, and FastMCP, accept only objects.
        structured_content=structured if isinstance(structured, dict) else None,
        is_error=raw.get("isError") in (True, "true", 1),
        _meta=_finite(meta) if isinstance(meta, dict) else None,
    )


def _blocks(raw: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the blocks of a result; a value in place of a list is one block."""
    content = raw.get("content", raw.get("toolResult"))  # the latter in the protocol of 2024-10
    if isinstance(content, list):
        yield from cast("list[Any]", content)
    elif content is not None:
        yield content


def _block(value: Any) -> ContentBlock:
    if isinstance(value, str):
        return TextContent(text=value)
    try:
        return _BLOCK.validate_python(value, by_name=False)
    except ValidationError:
        return TextContent(text=_as_json(_finite(value)))


def _finite(value: Any) -> Any:
    """Return a JSON value with null in place of NaN and infinite numbers."""
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        return _without_nan(value)
    return value


def _without_nan(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_without_nan(item) for item in cast("list[Any]", value)]
    return value


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
