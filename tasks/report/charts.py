"""Pictures of a report as inline SVG: intervals beside their bounds, and the map of tools.

Places are percentages and colours are classes of the style sheet, so that a picture fits every
width, follows the light and the dark scheme, and needs no script."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from markupsafe import Markup

MAP_MARGIN = 4
"""Per cent of the map's width and height that stay empty at each side."""
WIDE, NARROW = (920, 460), (330, 300)
"""Pixels of the map on a desktop and on a phone, for labels that do not overlap."""
LETTER, LINE = 7.5, 18
"""Pixels of a label's letter and line."""
MAX_LABEL = 24


def interval_bar(
    value: float | None, low: float | None, high: float | None, bound: float | None = None
) -> "Markup":
    """Return a mean between 0 and 1 with its interval, and a mark at its bound."""
    from markupsafe import Markup

    if value is None or low is None or high is None:
        return Markup("")
    beyond = bound is not None and value < bound
    mark = (
        Markup('<line class="bound" x1="{0:.2f}%" x2="{0:.2f}%" y1="1" y2="17"/>').format(
            100 * min(max(bound, 0.0), 1.0)
        )
        if bound is not None
        else Markup("")
    )
    words = f"{value:.3f}, 95 % interval {low:.3f} to {high:.3f}"
    return Markup(
        '<svg class="bar{0}" role="img" aria-label="{1}" height="18">'
        '<line class="axis" x1="0" x2="100%" y1="9" y2="9"/>'
        '<line class="range" x1="{2:.2f}%" x2="{3:.2f}%" y1="9" y2="9"/>{4}'
        '<circle cx="{5:.2f}%" cy="9" r="4.5"/></svg>'
    ).format(
        " low" if beyond else "",
        words if bound is None else f"{words}, bound {bound:.3f}",
        100 * low,
        100 * high,
        mark,
        100 * value,
    )


def map_picture(data: Mapping[str, Any], numbers: Mapping[str, int]) -> "Markup":
    """Return the tools as points coloured by group, with the names of the groups.

    Args:
        data: the map of a report.
        numbers: for each tool's id its number in the list of tools.
    """
    from markupsafe import Markup

    circle = Markup('<circle class="c{}" data-t="{}" cx="{}%" cy="{}%" r="4"/>')
    others = next((at for at, group in enumerate(data["groups"]) if group["name"] == "others"), -1)
    circles = [
        circle.format(
            "x" if tool["group"] == others else tool["group"],
            numbers.get(tool["id"], ""),
            _percent(tool["x"]),
            _percent(1 - tool["y"]),
        )
        for tool in data["tools"]
    ]
    label = Markup('<text class="{}" x="{}%" y="{}%">{}</text>')
    labels = [
        label.format("" if narrow else "wide", _percent(x), _percent(y), name)
        for name, x, y, narrow in place_labels(data["groups"])
    ]
    return Markup('<svg class="map" role="img" aria-label="Map of the tools">{}{}</svg>').format(
        Markup("").join(circles), Markup("").join(labels)
    )


def place_labels(groups: Sequence[Mapping[str, Any]]) -> list[tuple[str, float, float, bool]]:
    """Return (name, x, y, whether it fits on a phone) of the labels that do not overlap.

    Larger groups go first. Coordinates are from 0 to 1, from the top left.
    """
    labels: list[tuple[str, float, float, bool]] = []
    for group in groups:
        if group["name"] == "others":
            continue
        name = group["name"]
        name = name if len(name) <= MAX_LABEL else f"{name[: MAX_LABEL - 1]}…"
        place = (name, group["x"], 1 - group["y"])
        if not _overlaps(place, labels, WIDE):
            narrow = [label for label in labels if label[3]]
            labels.append((*place, not _overlaps(place, narrow, NARROW)))
    return labels


def _overlaps(
    place: tuple[str, float, float],
    labels: Sequence[tuple[str, float, float, bool]],
    size: tuple[int, int],
) -> bool:
    name, x, y = place
    if not 0 <= x * size[0] - len(name) * LETTER / 2 <= size[0] - len(name) * LETTER:
        return size is NARROW
    return any(
        abs(x - other_x) * size[0] < (len(name) + len(other)) * LETTER / 2
        and abs(y - other_y) * size[1] < LINE
        for other, other_x, other_y, _ in labels
    )


def _percent(share: float) -> str:
    return f"{MAP_MARGIN + (100 - 2 * MAP_MARGIN) * share:.2f}"
