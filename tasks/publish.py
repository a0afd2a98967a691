"""Step 6: one release, all tables or none, and the channel moved to it by compare-and-set.

The order is: tables (staged), tags that protect the pinned versions, the release's row, the
channel. A release that did not pass its
gate is held: it is recorded, so that it can be opened, compared and promoted by hand, and no
channel moves."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from pegboard.errors import BoardError, PromotionConflict, PublishError
from pegboard.store.contract import key_column
from pegboard.store.database import open_table, public_uri, sql_literals, store_errors
from pegboard.store.releases import Pin, Release, ReleaseStore
from tasks.gate.decision import GateDecision
from tasks.indices import search_of
from tasks.maintain import open_dataset
from tasks.manifest import staged_release
from tasks.plan import Plan
from tasks.settings.configuration import Configuration
from tasks.snapshot import Snapshot
from tasks.stage import key_digests
from tasks.wanted import Wanted, table_digest


def publish_release(
    configuration: Configuration,
    plan: Plan,
    snapshots: list[Snapshot],
    wanted: Wanted,
    pins: Mapping[str, Pin],
    calibrations: Mapping[str, Any] = MappingProxyType({}),
    gated: GateDecision | None = None,
) -> Release:
    """Record the release, and move the channel to it if no gate holds it.

    Args:
        calibrations: what the scores of each index mean, as far as it is known.
        gated: what came of its gate, if there is one; it stands in the manifest, instead of what
            stood there before.

    Each step is one that may have been taken before, by a run that was killed then. A release that
    is recorded keeps its
    pins, unless what it pins was pruned: then it is recorded anew with the ones given.

    Raises:
        PromotionConflict: the channel moved since the plan was made. If that was so before the
            release was recorded, nothing was changed.
        PublishError: what was staged is no longer there.
    """
    store = ReleaseStore(configuration.uri)
    _refuse_moved(store, plan, wanted.release)
    release = _recorded(store, wanted.release)
    said = gated.manifest() if gated is not None else {}
    if release is None or not is_whole(store, release):
        _check(store, wanted, pins)
        release = staged_release(configuration, plan, snapshots, wanted, pins, calibrations)
        release = replace(release, manifest={**release.manifest, **said})
        protect(store, release)
        _check(store, wanted, pins)
        _refuse_moved(store, plan, wanted.release)
        _remove_broken(store, wanted.release)
        store.add(release)
    elif any(release.manifest.get(name) != value for name, value in said.items()):
        release = replace(release, manifest={**release.manifest, **said})
        store.update(release)
    protect(store, release)
    if gated is None or gated.passed:
        store.promote(release.id, plan.channel, expected=plan.generation)
    # A prune that had decided before the channel moved may have taken the row or the tags
    # meanwhile.
    if _recorded(store, release.id) is None:
        store.add(release)
    protect(store, release)
    return store.get(release.id)


def protect(store: ReleaseStore, release: Release) -> None:
    """Tag the versions that a release pins, so that no clean-up of old versions takes them away.

    A tag names the release and the version, and never moves. Setting it again says that it is
    wanted now."""
    with store_errors(store.uri):
        for pin in release.tables.values():
            tags, tag = (
                open_table(store.database, pin.table, store.uri).tags,
                f"{release.id}-v{pin.version}",
            )
            if tag in tags.list():
                tags.update(tag, pin.version)
            else:
                tags.create(tag, pin.version)


def is_whole(store: ReleaseStore, release: Release) -> bool:
    """Whether every table still has the rows and indices that a release pins; a prune may have
    begun to take them.
    """
    return all(_pin_holds(store, name, pin) for name, pin in release.tables.items())


def _pin_holds(store: ReleaseStore, name: str, pin: Pin) -> bool:
    try:
        table = open_table(store.database, pin.table, store.uri, pin.version)
        with store_errors(store.uri):
            rows = key_digests(table, key_column(name))
            search = (
                search_of(open_dataset(store.uri, pin.table, pin.version))
                if pin.search is not None
                else None
            )
    except BoardError:
        return False
    return (rows.height, table_digest(rows), search) == (pin.rows, pin.digest, pin.search)


def _check(store: ReleaseStore, wanted: Wanted, pins: Mapping[str, Pin]) -> None:
    """Raises PublishError if what is to be pinned is not what was wanted: it may be long ago that
    it was staged.
    """
    spoilt = [
        table.name
        for table in wanted.tables
        if table.name not in pins
        or (pins[table.name].rows, pins[table.name].digest) != (table.rows, table.digest)
        or not _pin_holds(store, table.name, pins[table.name])
    ]
    if spoilt or len(pins) != len(wanted.tables):
        raise PublishError(
            f"What was staged for release {wanted.release} of the board at "
            f"{public_uri(store.uri)} is not what was wanted: "
            f"{', '.join(spoilt) or 'other tables'} changed or went away since. Nothing was "
            f"published. "
            "Does another run or a prune write to the same board? Run again."
        )


def _refuse_moved(store: ReleaseStore, plan: Plan, release: str) -> None:
    """Raises PromotionConflict if the channel is not where the plan saw it, before anything is
    recorded.
    """
    there = store.channel(plan.channel)
    if (there.generation if there else 0) != plan.generation:
        raise PromotionConflict(
            f"Channel '{plan.channel}' was to move to release {release} from generation "
            f"{plan.generation}, but it is at "
            f"generation {there.generation if there else 0}"
            f"{f' (release {there.release})' if there else ''}: someone else moved it meanwhile. "
            "Nothing was changed. Run again to build on theirs."
        )


def _recorded(store: ReleaseStore, release: str) -> Release | None:
    return next((one for one in store.all() if one.id == release), None)


def _remove_broken(store: ReleaseStore, release: str) -> None:
    with store_errors(store.uri):
        open_table(store.database, "releases", store.uri).delete(
            f"release = {sql_literals([release])}"
        )
