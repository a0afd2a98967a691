"""`pegboard golden`."""


def register(subparsers: object) -> None:
    """Add the command."""
