"""The installed source kinds. A distribution adds one under the entry-point group
`pegboard.catalogs`."""

from functools import cache
from importlib.metadata import EntryPoint, entry_points

from catalogs.shared.listing import SourceKind
from pegboard.errors import ConfigurationError

GROUP = "pegboard.catalogs"
"""Entry-point group of source kinds."""


@cache
def _entry_points() -> dict[str, EntryPoint]:
    """Return the entry points by name, scanned once per process."""
    return {point.name: point for point in entry_points(group=GROUP)}


def source_kinds() -> list[str]:
    """Return the names of all installed source kinds, sorted."""
    return sorted(_entry_points())


@cache
def source_kind(name: str) -> SourceKind:
    """Load the source kind of that name.

    Raises ConfigurationError if none is installed or it cannot be imported.
    """
    point = _entry_points().get(name)
    if point is None:
        raise ConfigurationError(
            f"There is no source of type '{name}'. Installed types: {', '.join(source_kinds())}. "
            f"Packages add types under the entry-point group '{GROUP}'."
        )
    what = f"The source type '{name}' ({point.value})"
    try:
        kind = point.load()
    except ImportError as error:
        raise ConfigurationError(
            f"{what} cannot be imported: {error}. Install what it needs."
        ) from error
    if not isinstance(kind, SourceKind):
        raise ConfigurationError(f"{what} is not a catalogs.shared.listing.SourceKind.")
    return kind
