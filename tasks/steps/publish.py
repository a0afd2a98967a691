"""Record a release with all its tables, and move the channel to it by compare-and-set.

The order is: tables (staged), tags that protect the pinned versions, the release's row, the
channel. A release that is held by its gate, or because of unapproved text, is recorded, so that it
can be opened, compared and promoted by hand, but no channel moves."""

import logging
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from pegboard.errors import BoardError, PromotionConflict, PublishError, StoreError
from pegboard.store.contract import key_column
from pegboard.store.database import public_uri, store_errors
from pegboard.store.releases import Pin, Release, ReleaseStore
from pegboard.store.writing import open_table, set_tag
from tasks.safety.changed import unapproved
from tasks.settings.configuration import Configuration
from tasks.steps.maintain import open_dataset, search_of
from tasks.steps.plan import Plan
from tasks.steps.release_spec import ReleaseSpec, staged_release, table_digest
from tasks.steps.snapshot import Snapshot
from tasks.steps.stage import key_digests

logger = logging.getLogger(__name__)


def publish_release(
    configuration: Configuration,
    plan: Plan,
    snapshots: list[Snapshot],
    spec: ReleaseSpec,
    pins: Mapping[str, Pin],
    gate: Mapping[str, Any] | None = None,
    suspicious: Mapping[str, Any] = MappingProxyType({}),
) -> Release:
    """Record the release, and move the channel to it unless it is held.

    A killed run may have done part of this before. A recorded release keeps its pins, unless the
    pinned versions were pruned: then it is recorded again with these pins. If another run moved the
    channel to the same release meanwhile, that release is returned.

    Args:
        gate: the decision of the gate, which replaces an earlier one in the manifest; None without
            a gate.
        suspicious: the result of `find_suspicious`; unapproved text in it holds the release.

    Raises:
        PromotionConflict: the channel moved since the plan was made. Nothing was changed if that
            was before the release was recorded.
        PublishError: the staged rows are gone.
    """
    store = ReleaseStore(configuration.uri)
    if (published := _published_meanwhile(store, plan, spec.release)) is not None:
        return published
    release = _recorded(store, spec.release)
    decision: dict[str, Any] = {} if gate is None else {"gate": dict(gate)}
    waiting = len(unapproved(suspicious))
    if waiting:
        decision["unapproved"] = waiting
    if release is None or not is_whole(store, release):
        _check_pins(store, spec, pins)
        release = staged_release(configuration, plan, snapshots, spec, pins, suspicious)
        release = replace(release, manifest={**release.manifest, **decision})
        protect(store, release)
        _check_pins(store, spec, pins)
        if (published := _published_meanwhile(store, plan, spec.release)) is not None:
            return published
        if not store.add(release):
            store.update(release)
    elif any(release.manifest.get(name) != value for name, value in decision.items()):
        release = replace(release, manifest={**release.manifest, **decision})
        store.update(release)
    protect(store, release)
    if not waiting and (gate is None or gate["passed"]):
        store.promote(release.id, plan.channel, expected=plan.generation)
    try:
        # A prune that decided before the channel moved may have removed row or tags meanwhile.
        if _recorded(store, release.id) is None:
            store.add(release)
        protect(store, release)
    except StoreError as error:  # The release is already published.
        logger.warning("Release %s is published, but: %s", release.id, error)
        return release
    return store.get(release.id)


def protect(store: ReleaseStore, release: Release) -> None:
    """Tag the versions that a release pins, so that no clean-up of old versions removes them.

    A tag's name has the release and the version. Setting a tag again renews its date.
    """
    with store_errors(store.uri):
        for pin in release.tables.values():
            table = open_table(store.database, pin.table, store.uri)
            set_tag(table, f"{release.id}-v{pin.version}", pin.version, renew=True)


def is_whole(store: ReleaseStore, release: Release) -> bool:
    """Return whether every table still has the rows and indices that a release pins."""
    return all(_pin_holds(store, name, pin) for name, pin in release.tables.items())


def _pin_holds(store: ReleaseStore, name: str, pin: Pin) -> bool:
    try:
        table = open_table(store.database, pin.table, store.uri, pin.version)
        with store_errors(store.uri):
            rows = key_digests(table, key_column(name))
            search = None
            if pin.search is not None:
                search = search_of(open_dataset(store.uri, pin.table, pin.version))
    except BoardError:
        return False
    return (rows.height, table_digest(rows), search) == (pin.rows, pin.digest, pin.search)


def _check_pins(store: ReleaseStore, spec: ReleaseSpec, pins: Mapping[str, Pin]) -> None:
    """Raise PublishError if the pinned versions no longer have the rows of the spec."""
    changed = [
        table.name
        for table in spec.tables
        if table.name not in pins
        or (pins[table.name].rows, pins[table.name].digest) != (table.rows, table.digest)
        or not _pin_holds(store, table.name, pins[table.name])
    ]
    if changed or len(pins) != len(spec.tables):
        raise PublishError(
            f"The tables staged for release {spec.release} of the board at "
            f"{public_uri(store.uri)} changed before it was published: "
            f"{', '.join(changed) or 'there are others'}. Nothing was published. Does another run "
            f"or a prune write to the same board? Run again."
        )


def _published_meanwhile(store: ReleaseStore, plan: Plan, release: str) -> Release | None:
    """Return the release if another run moved the channel to it since the plan; None if the channel
    did not move. Raises PromotionConflict if it names another release.
    """
    channel = store.channel(plan.channel)
    generation = channel.generation if channel else 0
    if generation != plan.generation:
        if channel is not None and channel.release == release:
            return store.get(release)
        has = f" (release {channel.release})" if channel else ""
        raise PromotionConflict(
            f"Channel '{plan.channel}' was moved by another publisher: expected generation "
            f"{plan.generation} when promoting release {release}, got {generation}{has}. Nothing "
            f"was changed. Run again to build on theirs."
        )
    return None


def _recorded(store: ReleaseStore, release: str) -> Release | None:
    return next((stored for stored in store.all() if stored.id == release), None)
