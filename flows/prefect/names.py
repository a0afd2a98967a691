"""What belongs to a board on a Prefect server is named after the board's address, so that several
boards share a server. Importing this module does not import Prefect.
"""

from pegboard.events import board_key as board_key
from pegboard.events import board_resource as board_resource
from pegboard.events import catalog_resource as catalog_resource


def board_tag(uri: str) -> str:
    """Return the tag of a board's flow runs and deployments."""
    return f"board:{board_key(uri)}"
