"""The start of a build: compare the formats of the lake with those of this version, once.

lake/formats.json    the formats of the version that wrote last, and its table contract

The file is written before any other, so a lake that a newer version wrote to is recognised before a
source is listed or an LLM is called. An older lake is reported in one line, when the first newer
version opens it."""

import logging
from typing import Any

from pegboard.store.contract import CONTRACT
from pegboard.store.database import public_uri
from tasks.lake.files import DamagedFile, Lake
from tasks.lake.formats import current_formats, newer_format

NOTE = "formats.json"
"""The file of the lake with the formats of the version that wrote last."""
CONTRACT_NAME = "the table contract"
"""The name of the table contract among the formats."""

logger = logging.getLogger(__name__)


def open_lake(uri: str) -> None:
    """Prepare the lake of the board at `uri` for a build by this version, and report an older lake.

    Raises:
        NewerFormat: a newer version of Pegboard wrote to the lake.
    """
    lake = Lake(uri)
    noted = _noted(lake)
    current = _current()
    _refuse_newer(lake, noted)
    if noted == current:
        return
    if noted or lake.walk("snapshots"):
        older = [
            f"{name} {noted.get(name, 0)} (now {number})"
            for name, number in current.items()
            if noted.get(name, 0) < number
        ]
        which = ", ".join(older) if noted else "one that stated no formats"
        logger.warning(
            "An older version of Pegboard wrote %s: %s. Snapshots, vectors and LLM replies are "
            "read as they are; what else differs is made again. This is reported once.",
            public_uri(lake.uri),
            which,
        )
    lake.write_json(NOTE, {"formats": current})


def check_lake(uri: str) -> None:
    """Raise NewerFormat if a newer version of Pegboard wrote to the lake of the board at `uri`."""
    lake = Lake(uri)
    _refuse_newer(lake, _noted(lake))


def _current() -> dict[str, int]:
    return {CONTRACT_NAME: CONTRACT, **current_formats()}


def _noted(lake: Lake) -> dict[str, int]:
    """Return the formats of the version that wrote last; none if it noted none."""
    try:
        note: Any = lake.read_json(NOTE) or {}
    except DamagedFile:
        return {}
    return dict(note.get("formats", {}))


def _refuse_newer(lake: Lake, noted: dict[str, int]) -> None:
    current = _current()
    for name, number in noted.items():
        known = current.get(name, 0)
        if number > known:
            raise newer_format(public_uri(lake.uri), name, number, known)
