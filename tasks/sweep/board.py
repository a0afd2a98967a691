"""The configuration of the board that a sweep builds: that of the pegboard.toml, on a board and a
channel of its own.
"""

from collections.abc import Sequence
from typing import Any

from pegboard.store.storage import remember_options
from tasks.settings.configuration import BoardSettings, Configuration
from tasks.settings.release import FindSettings

CHANNEL = "sweep"
"""The channel that a sweep's releases are promoted on: nothing live moves."""


def sweep_configuration(
    configuration: Configuration, uri: str, indexes: Sequence[str] = (), *, calibrated: bool = False
) -> Configuration:
    """The configuration with the board at `uri`, without report, gate and default strategy.

    Args:
        indexes: those that the board has; all if empty.
        calibrated: keep the golden queries, which a strategy needs that asks for probabilities.
            Otherwise they do not change the board.
    """
    storage = configuration.board.storage if "://" in uri else {}
    changed: dict[str, Any] = {
        "board": BoardSettings(uri=uri, channel=CHANNEL, report=False, storage=storage),
        "find": FindSettings(),
        "gate": None,
    }
    if not calibrated:
        changed["golden"] = None
    if indexes:
        changed["indexes"] = tuple(one for one in configuration.indexes if one.name in indexes)
        changed["default_index"] = None
    own = configuration.model_copy(update=changed)
    remember_options(own.uri, storage)
    return own
