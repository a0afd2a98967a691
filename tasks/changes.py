"""Whether a source says something else than what was published of it, found without storing
anything.
"""

from dataclasses import dataclass

from pegboard.errors import BoardNotFound
from pegboard.store.releases import ReleaseStore
from tasks.settings.configuration import Configuration
from tasks.snapshot import list_source, stored_snapshot, unchanged_snapshot


@dataclass(frozen=True, slots=True)
class Change:
    """What a source would be now. `changed` says whether a run would publish it; `problems` what
    could not be listed.
    """

    catalog: str
    changed: bool
    tools: int
    rejected: int
    problems: tuple[str, ...]


def compare_with_source(configuration: Configuration, catalog: str) -> Change:
    """List a catalog's source, and compare it with the stored snapshot and with the releases.

    What fails is replaced by its last good tools, so a failure alone is no change; nor is a source
    that fails before it was
    ever listed. Rejected records alone are none either: no table holds them, and the next nightly
    run reports them."""
    now = unchanged_snapshot(configuration, catalog) or list_source(configuration, catalog)[1]
    stored = stored_snapshot(configuration, catalog)
    nothing_yet = not now.tools and bool(now.problems)
    same = (
        stored is not None
        and stored.digest == now.digest
        and now.digest in _published(configuration.uri, catalog)
    )
    return Change(catalog, not same and not nothing_yet, now.tools, len(now.rejected), now.problems)


def _published(uri: str, catalog: str) -> set[str]:
    """The snapshots of a catalog that a release has or had.

    That a snapshot is stored does not say that it was published: `pegboard plan` stores one, and a
    run can fail later. Any release counts, not the live one, or a watch would undo a rollback
    within minutes."""
    try:
        releases = ReleaseStore(uri).all()
    except BoardNotFound:
        return set()
    catalogs = [release.manifest["catalogs"] for release in releases]
    return {named[catalog]["snapshot"] for named in catalogs if catalog in named}
