"""Between staging and publishing: what the scores of each index of the release mean, by the golden requests of its configuration."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE

from pegboard.board import IN_MEMORY_ROWS
from pegboard.contract import CURRENT
from pegboard.encoders import Encoder
from pegboard.loaded import LoadedRelease
from pegboard.releases import Pin, Release, ReleaseStore
from pegboard.store import open_table, store_errors
from tasks.calibrate import LEAST, calibrate_index
from tasks.configuration import Configuration, load_configuration
from tasks.encoders import encoder_for
from tasks.golden import read_golden
from tasks.wanted import Wanted

__all__ = ["Calibrated", "calibrate", "calibrate_release"]


@dataclass(frozen=True, slots=True)
class Calibrated:
    """What came of the golden requests.

    Attributes:
        queries: how many have a right tool in the release.
        unknown: the names and ids that no tool of the release has.
        indexes: the calibration of every index, as a manifest holds it; empty if too few requests are left.
    """

    queries: int = 0
    unknown: tuple[str, ...] = ()
    indexes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON values."""
        return asdict(self)


@task(name="calibrate", task_run_name="calibrate {wanted.release}", cache_policy=NO_CACHE)
def calibrate(config: str, wanted: Wanted, pins: dict[str, Pin]) -> Calibrated:
    """The Prefect skin of `calibrate_release`."""
    return calibrate_release(load_configuration(config), wanted, pins)


def calibrate_release(
    configuration: Configuration, wanted: Wanted, pins: Mapping[str, Pin], encoder: Encoder | None = None
) -> Calibrated:
    """Search the staged tables for the golden requests; nothing without any.

    Requests whose right tools are all unknown are left out, since a source may have lost a tool over night; where fewer than
    `LEAST` are left, the release has no calibration.

    Args:
        pins: what was staged.
        encoder: stands in for those that are configured.
    """
    golden = read_golden(configuration)
    if golden is None:
        return Calibrated()
    meant, unknown = golden.meant(_names(configuration.uri, pins["tools"]))
    if len(meant) < LEAST:
        return Calibrated(len(meant), tuple(unknown))
    indexes = {index.name: {} for index in configuration.indexes}
    manifest = {"default_index": configuration.default, "indexes": indexes}
    staged = Release(wanted.release, wanted.digest, CURRENT.version, datetime.now(UTC), pins, manifest)
    loaded = LoadedRelease(ReleaseStore(configuration.uri), staged, IN_MEMORY_ROWS)
    calibrations = {
        index.name: calibrate_index(
            loaded.index(index.name),
            encoder or encoder_for(index),
            meant,
            golden.unanswerable,
            name=index.name,
        ).to_dict()
        for index in configuration.indexes
    }
    return Calibrated(len(meant), tuple(unknown), calibrations)


def _names(uri: str, pin: Pin) -> dict[str, str]:
    """The true name of every tool by its id."""
    table = open_table(ReleaseStore(uri).database, pin.table, uri, pin.version)
    with store_errors(uri):
        rows = table.search().select(["id", "name"]).to_arrow()
    return dict(zip(rows.column("id").to_pylist(), rows.column("name").to_pylist(), strict=True))
