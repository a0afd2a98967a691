"""Between staging and publishing: what the scores of each index of the release mean, by the golden
requests of its configuration.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from pegboard.board import IN_MEMORY_ROWS
from pegboard.encoders import Encoder
from pegboard.errors import PublishError
from pegboard.evaluation.golden import ToolNames
from pegboard.retrieval.strategy import Strategy
from pegboard.search.loaded import LoadedRelease
from pegboard.store.contract import CONTRACT, embedding_table
from pegboard.store.database import open_table, store_errors
from pegboard.store.releases import Pin, Release, ReleaseStore
from tasks.calibrate import LEAST, calibrate_index, unseen
from tasks.encoders import encoder_for
from tasks.gate.query_vectors import RememberingEncoder
from tasks.golden.reading import read_golden
from tasks.lake.files import Lake
from tasks.settings.configuration import Configuration
from tasks.settings.release import default_strategy
from tasks.wanted import Wanted


@dataclass(frozen=True, slots=True)
class Calibrated:
    """What came of the golden requests.

    Attributes:
        queries: how many have a right tool in the release.
        unknown: the names and ids that no tool of the release has.
        indexes: the calibration of every index, as a manifest holds it; without those for which too
            few requests are left.
        seen: how many stand word for word in the index and were left out: they find themselves, and
            say nothing of other requests.
    """

    queries: int = 0
    unknown: tuple[str, ...] = ()
    indexes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    seen: int = 0

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON values."""
        return asdict(self)


def calibrate_release(
    configuration: Configuration,
    wanted: Wanted,
    pins: Mapping[str, Pin],
    encoder: Encoder | None = None,
) -> Calibrated:
    """Search the staged tables for the golden requests; nothing without any.

    Requests whose right tools are all unknown are left out, since a source may have lost a tool
    over night; an index for which fewer than `LEAST` are left has no calibration. Raises
    PublishError if the default strategy needs one and no gate chooses another.

    Args:
        pins: what was staged.
        encoder: stands in for those that are configured.
    """
    golden = read_golden(configuration)
    if golden is None:
        return Calibrated()
    indexes = {index.name: {} for index in configuration.indexes}
    manifest = {"default_index": configuration.default, "indexes": indexes}
    staged = Release(wanted.release, wanted.digest, CONTRACT, datetime.now(UTC), pins, manifest)
    loaded = LoadedRelease(ReleaseStore(configuration.uri), staged, IN_MEMORY_ROWS)
    meant, unknown = golden.meant(ToolNames(loaded.tool_names()))
    calibrations: dict[str, Mapping[str, Any]] = {}
    left = len(meant)
    for index in configuration.indexes:
        fresh = unseen(meant, _texts(configuration.uri, pins[embedding_table(index.name)], meant))
        left = min(left, len(fresh))
        if len(fresh) >= LEAST:
            searched = loaded.index(index.name)
            made_by = RememberingEncoder(encoder or encoder_for(index), Lake(configuration.uri))
            found = calibrate_index(searched, made_by, fresh, golden.unanswerable, name=index.name)
            calibrations[index.name] = found.to_dict()
    calibrated = Calibrated(len(meant), tuple(unknown), calibrations, len(meant) - left)
    if (
        configuration.gate is None
    ):  # a gate asks by the strategy that it chooses, and says what cannot be asked
        _check_strategy(configuration, calibrated)
    return calibrated


def _check_strategy(configuration: Configuration, calibrated: Calibrated) -> None:
    """Raises PublishError if the default strategy asks for probabilities that the release would not
    have: every reader would fail.
    """
    strategy = default_strategy(configuration.find.strategy)
    if strategy is None or not Strategy.from_dict(strategy).needs_calibration():
        return
    asked = strategy.get("indexes") or [configuration.default]
    if missing := sorted(set(asked) - set(calibrated.indexes)):
        usable = calibrated.queries - calibrated.seen
        raise PublishError(
            f"Nothing was published: the default strategy '{strategy['name']}' asks for "
            f"probabilities, and index {', '.join(missing)} cannot "
            f"be calibrated: {usable} golden requests can be used, {LEAST} are needed. "
            f"{len(calibrated.unknown)} tools that they "
            f"name are not in the release, and {calibrated.seen} requests stand in the index word "
            f"for word. Add requests to "
            "[golden], or choose another [find] strategy."
        )


def _texts(
    uri: str, pin: Pin, meant: Sequence[tuple[str, Collection[str]]]
) -> dict[str, list[str]]:
    """The texts of an index by the id of the tool, of the right tools."""
    right = {tool for _, tools in meant for tool in tools}
    table = open_table(ReleaseStore(uri).database, pin.table, uri, pin.version)
    with store_errors(uri):
        rows = table.search().select(["tool", "text"]).to_arrow()
    texts: dict[str, list[str]] = {}
    for tool, text in zip(
        rows.column("tool").to_pylist(), rows.column("text").to_pylist(), strict=True
    ):
        if tool in right:
            texts.setdefault(tool, []).append(text)
    return texts
