"""`pegboard bench`."""


def register(subparsers: object) -> None:
    """Add the command."""
