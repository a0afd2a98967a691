"""Files of the lake that nothing needs any more: half-written ones, and sets that no pointer and no
kept release leads to.

What is needed is found from what is written down. Pointers (`latest*.json`) and the manifests of
releases name sets by their digests; a set that is a JSON file names its layers. A file is needed if
a digest in its path was named. All that can be lost by
removing another is a little time: it is made again from what is never removed, which is what
encoders and LLMs said."""

import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from pegboard.errors import StoreError
from pegboard.store.database import store_errors
from pegboard.store.releases import Release
from tasks.lake.files import Lake
from tasks.lake.orphans import Leftovers
from tasks.lake.places import HALF_WRITTEN, place_at

FOLDERS = ("snapshots", "documents", "records", "edges", "bought", "enriched", "filtered", "gates")
"""What can be made again. The ledger and the vectors are in no list of what may go."""
DIGEST = re.compile(r"[0-9a-f]{64}")


def remove_forgotten(
    uri: str, releases: Iterable[Release], *, before: datetime, unused: datetime, dry_run: bool
) -> Leftovers:
    """Remove what is not needed of the lake of the board at `uri`.

    Args:
        before: half-written files from before then go: whoever wrote them has ended.
        unused: sets from before then go, if nothing leads to them.
    """
    lake, now = Lake(uri), datetime.now(UTC)
    with store_errors(uri):
        place = place_at(lake.uri)
        files = {
            path: (size, now - timedelta(seconds=age))
            for path, (size, age) in place.walk("").items()
        }
    sets = {path for path in files if path.split("/")[0] in FOLDERS and not _is_pointer(path)}
    needed = _needed(lake, files, releases)
    gone = {
        path: size
        for path, (size, written) in files.items()
        if (path.endswith(HALF_WRITTEN) and written <= before)
        or (
            path in sets
            and written <= unused
            and DIGEST.search(path)
            and not needed & set(DIGEST.findall(path))
        )
    }
    if not dry_run:
        for path in gone:
            lake.delete(path)
    return Leftovers(len(gone), sum(gone.values()))


def _needed(lake: Lake, files: Iterable[str], releases: Iterable[Release]) -> set[str]:
    """The digests to which pointers and releases lead, directly or through sets that name
    others.
    """
    named = {
        one for release in releases for one in DIGEST.findall(json.dumps(dict(release.manifest)))
    }
    sets: dict[str, list[str]] = {}
    for path in files:
        if not path.endswith(".json"):
            continue
        if _is_pointer(path):
            named |= _digests_in(lake, path)
        else:
            for one in DIGEST.findall(path):
                sets.setdefault(one, []).append(path)
    needed, ahead = set[str](), named
    while ahead:
        needed |= ahead
        ahead = {
            one for name in ahead for path in sets.get(name, ()) for one in _digests_in(lake, path)
        } - needed
    return needed


def _digests_in(lake: Lake, path: str) -> set[str]:
    try:
        return set(DIGEST.findall(lake.read_text(path)))
    except StoreError:
        return set()  # Another prune was faster.


def _is_pointer(path: str) -> bool:
    return path.rpartition("/")[2].startswith("latest")
