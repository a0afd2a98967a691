"""`pegboard report`."""


def register(subparsers: object) -> None:
    """Add the command."""
