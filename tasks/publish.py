"""Step 6: one release, all tables or none, and the channel moved to it by compare-and-set."""

from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE

from pegboard.contract import CURRENT, VECTOR_OPTIONS
from pegboard.releases import Pin, Release, ReleaseStore
from pegboard.store import open_table, store_errors
from tasks.configuration import Configuration, load_configuration
from tasks.encoders import encoder_for
from tasks.plan import Plan
from tasks.snapshot import Snapshot
from tasks.wanted import Wanted

__all__ = ["publish", "publish_release"]


@task(name="publish", task_run_name="publish {wanted.release}", cache_policy=NO_CACHE)
def publish(config: str, plan: Plan, snapshots: list[Snapshot], wanted: Wanted, pins: dict[str, Pin]) -> Release:
    """The Prefect skin of `publish_release`."""
    return publish_release(load_configuration(config), plan, snapshots, wanted, pins)


def publish_release(
    configuration: Configuration, plan: Plan, snapshots: list[Snapshot], wanted: Wanted, pins: Mapping[str, Pin]
) -> Release:
    """Record the release and move the channel to it.

    Raises PromotionConflict if the channel moved since the plan was made; the release is then there, but not live.
    """
    store = ReleaseStore(configuration.uri)
    release = Release(
        id=wanted.release,
        digest=wanted.digest,
        contract=CURRENT.version,
        created_at=datetime.now(UTC),
        tables=pins,
        manifest=_manifest(configuration, plan, snapshots, wanted, pins),
    )
    # A release that was recorded before keeps its pins, so its tags must stay where they are.
    if all(recorded.id != release.id for recorded in store.all()):
        with store_errors(configuration.uri):
            for pin in pins.values():
                _protect(store, pin, release.id, configuration.uri)
        store.add(release)
    store.promote(release.id, plan.channel, expected=plan.generation)
    return store.get(release.id)


def _protect(store: ReleaseStore, pin: Pin, release: str, uri: str) -> None:
    """Tag the pinned version, so that no clean-up of old versions takes it away. The tag names both and never moves."""
    tags, tag = open_table(store.database, pin.table, uri).tags, f"{release}-v{pin.version}"
    if tag not in tags.list():
        tags.create(tag, pin.version)


def _manifest(
    configuration: Configuration, plan: Plan, snapshots: list[Snapshot], wanted: Wanted, pins: Mapping[str, Pin]
) -> dict[str, Any]:
    return {
        "pegboard": version("pegboard"),
        "default_index": configuration.default,
        "indexes": {
            index.name: {
                "encoder": index.encoder,
                "options": {name: index.options[name] for name in VECTOR_OPTIONS if name in index.options},
                "fingerprint": encoder_for(index).fingerprint,
                "dimensions": encoder_for(index).dimensions,
                "parts": list(index.parts),
                "shape": index.shape,
                "questions": index.questions,
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
