"""How a command line names a release: by its id or the beginning of one, or by a channel."""

from pegboard.errors import BoardNotFound
from pegboard.store.database import public_uri
from pegboard.store.releases import Release, ReleaseStore

NAME_HELP = "the id of a release or its beginning, or a channel such as live"


def named_release(store: ReleaseStore, name: str) -> Release:
    """The release that a channel of that name has, or else the one whose id begins so. Raises
    BoardNotFound.
    """
    channel = store.channel(name)
    return store.get(channel.release if channel else name)


def release_before(store: ReleaseStore, channel: str) -> Release:
    """The release that a channel had before and that is still there. Raises BoardNotFound if there
    is none.
    """
    now, there = store.channel(channel), {release.id: release for release in store.all()}
    for identity in now.history if now else ():
        if identity in there:
            return there[identity]
    raise BoardNotFound(
        f"Channel '{channel}' of the board at {public_uri(store.uri)} has no earlier release to "
        f"compare with. "
        "Name two releases; `pegboard releases list` shows them."
    )
