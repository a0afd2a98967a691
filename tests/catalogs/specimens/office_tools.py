"""Tools of an office.

Written for the tests of the source kind `python`.
"""

from __future__ import annotations

import enum
import functools
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Room(BaseModel):
    """A room, and the one behind it."""

    name: str
    behind: Room | None = None


async def book_room(
    room: Room, hours: Annotated[int, Field(ge=1)], color: Color = Color.RED
) -> Room:
    """Book a room.

    The room is held for a day.

    Args:
        room: Which one.
        hours (int): For how long.

    Returns:
        The room.
    """
    return room


def convert(amount: float, to: str):
    """Convert money.

    Parameters
    ----------
    amount : float
        How much.
    to : str
        The currency,
        by its code.
    """
    return amount, to


def cancel(number):
    """Cancel a booking.

    :param number: The number of the booking.
    :type number: int
    """
    return number


def search(
    query: Annotated[str, Field(description="Said by the signature.")], folder: Path = Path("/")
) -> list[str]:
    """Search.

    Args:
        query: Said by the docstring.
    """
    return [query, str(folder)]


def count() -> dict[str, int]:
    """Count everything."""
    return {}


def log(message: str, *parts: Any, **fields: Any) -> None:
    """Log a message."""


def _hidden() -> None:
    """Not listed."""


class Desk:
    def find(self, name: str) -> str:
        """Find a desk."""
        return name

    def find_all(self, name: str) -> str:
        """Find all desks."""
        return name

    @classmethod
    def make(cls, size: int) -> Desk:
        """Make a desk."""
        return cls()


front = Desk()
short = functools.partial(convert, to="EUR")
