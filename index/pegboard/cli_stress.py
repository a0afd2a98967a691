"""`pegboard stress`."""


def register_stress(subparsers: object) -> None:
    """Add the command."""
