"""The source kinds that are installed: every distribution may add its own under the entry-point
group `pegboard.catalogs`.
"""

from importlib.metadata import entry_points

from catalogs.shared.listing import SourceKind
from pegboard.errors import ConfigurationError

GROUP = "pegboard.catalogs"


def source_kinds() -> list[str]:
    """The names of all installed source kinds, sorted."""
    return sorted({point.name for point in entry_points(group=GROUP)})


def source_kind(name: str) -> SourceKind:
    """The source kind of that name. Raises ConfigurationError if none is installed or it does not
    import.
    """
    points = [point for point in entry_points(group=GROUP) if point.name == name]
    if not points:
        known = ", ".join(source_kinds())
        raise ConfigurationError(
            f"There is no source of type '{name}'. Installed types: {known}. "
            f"A package adds one under the entry-point group '{GROUP}'."
        )
    try:
        kind = points[0].load()
    except ImportError as error:
        raise ConfigurationError(
            f"The source type '{name}' ({points[0].value}) cannot be imported: {error}. Install "
            f"what it needs."
        ) from error
    if not isinstance(kind, SourceKind):
        raise ConfigurationError(
            f"The source type '{name}' ({points[0].value}) is not a "
            f"catalogs.shared.listing.SourceKind."
        )
    return kind
