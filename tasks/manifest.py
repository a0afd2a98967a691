"""What a release says of itself: how its indexes were made, where its tools come from, and what
changed.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from types import MappingProxyType
from typing import Any

from pegboard.store.contract import CONTRACT, VECTOR_OPTIONS
from pegboard.store.releases import Pin, Release
from tasks.encoders import encoder_for
from tasks.plan import Plan
from tasks.settings.configuration import Configuration
from tasks.settings.release import default_strategy
from tasks.snapshot import Snapshot
from tasks.wanted import Wanted


def staged_release(
    configuration: Configuration,
    plan: Plan,
    snapshots: list[Snapshot],
    wanted: Wanted,
    pins: Mapping[str, Pin],
    calibrations: Mapping[str, Any] = MappingProxyType({}),
) -> Release:
    """The release that the staged tables will be, before it is recorded.

    Args:
        calibrations: what the scores of each index mean, as far as it is known.
    """
    manifest = _manifest(configuration, plan, snapshots, wanted, pins, calibrations)
    return Release(wanted.release, wanted.digest, CONTRACT, datetime.now(UTC), pins, manifest)


def _manifest(
    configuration: Configuration,
    plan: Plan,
    snapshots: list[Snapshot],
    wanted: Wanted,
    pins: Mapping[str, Pin],
    calibrations: Mapping[str, Any],
) -> dict[str, Any]:
    asked_by = default_strategy(configuration.find.strategy)
    return {
        "pegboard": version("pegboard"),
        **({"strategy": asked_by} if asked_by else {}),
        "default_index": configuration.default,
        "indexes": {
            index.name: {
                "encoder": index.encoder,
                "options": {
                    name: index.options[name] for name in VECTOR_OPTIONS if name in index.options
                },
                "fingerprint": encoder_for(index).fingerprint,
                "dimensions": encoder_for(index).dimensions,
                "parts": list(index.parts),
                "shape": index.shape,
                "questions": index.questions,
                **({"calibration": calibrations[index.name]} if index.name in calibrations else {}),
            }
            for index in configuration.indexes
        },
        "catalogs": {
            one.catalog: {
                "snapshot": one.digest,
                "tools": one.tools,
                "agents": one.agents,
                "rejected": len(one.rejected),
                "kept": list(one.kept),
            }
            for one in snapshots
        },
        "counts": {"tools": pins["tools"].rows, "agents": pins["agents"].rows, **wanted.counts},
        "changes": {
            "against": plan.live,
            "new": len(plan.new),
            "changed": len(plan.changed),
            "removed": len(plan.removed),
            "unchanged": plan.unchanged,
        },
    }
