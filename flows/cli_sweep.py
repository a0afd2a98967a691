"""`pegboard sweep`."""


def register(subparsers: object) -> None:
    """Add the command."""
