"""`pegboard eval_agent`."""


def register_eval_agent(subparsers: object) -> None:
    """Add the command."""
