"""What belongs to a board on a Prefect server is named after the board's address, so that several
boards share a server. Importing this module does not import Prefect.
"""

import re

from pegboard.canonical import digest
from pegboard.store.database import public_uri

MAX_PLACE = 28
"""Characters of the address in a board's key."""


def board_key(uri: str) -> str:
    """Return the end of a board's address and a digest of all of it, as letters, digits and dashes:
    `demo-board-3f9a1c`.
    """
    address = public_uri(uri).rstrip("/")
    end = "-".join(address.split("/")[-2:])
    place = re.sub("[^a-z0-9]+", "-", end.lower())[-MAX_PLACE:].strip("-")
    return f"{place}-{digest(address)[:6]}"


def board_tag(uri: str) -> str:
    """Return the tag of a board's flow runs and deployments."""
    return f"board:{board_key(uri)}"


def board_resource(uri: str) -> str:
    """Return the resource of a board's events, such as `pegboard.release.published`."""
    return f"pegboard.board.{board_key(uri)}"


def catalog_resource(uri: str, catalog: str) -> str:
    """Return the resource of a catalog's events, such as `pegboard.catalog.changed`."""
    return f"{board_resource(uri)}.catalog.{catalog}"
