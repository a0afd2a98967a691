"""`pegboard eval`."""


def register_eval(subparsers: object) -> None:
    """Add the command."""
