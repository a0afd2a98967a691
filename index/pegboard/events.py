"""The events of a board, and what they are named after, so that several boards share a server.

The pipeline emits events on a Prefect server; the gateway posts `pegboard.catalog.changed`.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from pegboard.canonical import digest
from pegboard.store.database import public_uri

CATALOG_CHANGED = "pegboard.catalog.changed"
"""Emitted by whoever changed a catalog, or noticed it; it starts a build."""
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


def board_resource(uri: str) -> str:
    """Return the resource of a board's events, such as `pegboard.release.published`."""
    return f"pegboard.board.{board_key(uri)}"


def catalog_resource(uri: str, catalog: str) -> str:
    """Return the resource of a catalog's events, such as `pegboard.catalog.changed`."""
    return f"{board_resource(uri)}.catalog.{catalog}"


def catalog_changed(uri: str, catalog: str, payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return the event that a catalog changed, as Prefect's API takes events."""
    resource = {
        "prefect.resource.id": catalog_resource(uri, catalog),
        "prefect.resource.name": catalog,
    }
    return {
        "id": str(uuid4()),
        "occurred": datetime.now(UTC).isoformat(),
        "event": CATALOG_CHANGED,
        "resource": resource,
        "payload": {"board": public_uri(uri), "catalog": catalog, **payload},
    }
