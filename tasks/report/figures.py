"""Numbers of a page, each taken from the report's values by its place there (a JSON pointer, RFC
6901), which stands beside it.

So a page cannot show another number than the JSON has, and whoever reads the page by program finds
the exact value."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from markupsafe import Markup

NOTHING = "–"


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _share(value: float) -> str:
    return f"{value:.3f}"


def _density(value: float) -> str:
    return f"{100 * value:.3f}"


def _seconds(value: float) -> str:
    return f"{value:,.1f}"


def _usd(value: float) -> str:
    return f"{value:,.4f}"


STYLES: Mapping[str, Callable[[float], str]] = {
    "count": _count,
    "share": _share,
    "percent": _density,
    "seconds": _seconds,
    "usd": _usd,
}
"""How a number is written. `percent` is a share times 100."""


def figure(data: Mapping[str, Any], pointer: str, style: str = "count") -> "Markup":
    """The number at a place, as HTML that names its place and style; a dash where there is none."""
    from markupsafe import Markup

    value = resolved(data, pointer)
    text = NOTHING if value is None else STYLES[style](value)
    return Markup('<span class="n" data-json="{}" data-style="{}">{}</span>').format(
        pointer, style, text
    )


def resolved(data: Any, pointer: str) -> Any:
    """The value at a place of JSON values, None where there is no such place."""
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(data, list):
            data = data[int(key)] if int(key) < len(data) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        elif isinstance(data, Mapping):
            data = data.get(key)  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
        else:
            return None
    return data  # pyright: ignore[reportUnknownVariableType]
