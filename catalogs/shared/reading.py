"""List a source, and list it again after a failure that may pass.

Sources retry their own requests. What is retried here is `read` as a whole: for a plug-in that
raises `SourceError(..., may_pass=True)`, and for files that are being written."""

from typing import Any

from catalogs.shared.listing import Listing, ListingBuilder, SourceKind
from pegboard.errors import SourceError

SETTLE_SECONDS = 0.3
"""Seconds after which the files of a source that failed are looked at again: if they have changed
by then, they are being written."""

FileStates = dict[str, tuple[int, int, int]]
"""Modification time, size and inode of each file by path."""


def list_source(kind: SourceKind, builder: ListingBuilder, options: Any) -> Listing:
    """Return the listing of a source, retried by `builder.retries`.

    If files still change after the last attempt, what was read last is returned.

    Raises:
        SourceError: the source cannot be listed.
    """
    changing: list[Listing] = []

    def attempt() -> Listing:
        changing.clear()
        builder.clear()
        builder.selection = options.selection()
        before = _file_states(kind, builder, options)
        try:
            kind.read(builder, options)
            listing = builder.build()
        except SourceError as error:
            if not error.may_pass and _changed(kind, builder, options, before, settle=True):
                raise SourceError(f"{error} The files are being written.", may_pass=True) from None
            raise
        failed = bool(listing.unreadable or listing.failures)
        if not _changed(kind, builder, options, before, settle=failed):
            return listing
        changing.append(listing)
        raise SourceError("Its files changed while they were read.", may_pass=True)

    try:
        return builder.retries.call(attempt)
    except SourceError:
        if changing:
            return changing[0]
        raise


def _changed(
    kind: SourceKind,
    builder: ListingBuilder,
    options: Any,
    before: FileStates | None,
    *,
    settle: bool,
) -> bool:
    """Return whether the files of a source have changed, after a moment if `settle` is set."""
    if before is None:
        return False
    if settle and builder.retries.attempts > 1:
        builder.retries.sleep(SETTLE_SECONDS)
    return _file_states(kind, builder, options) != before


def _file_states(kind: SourceKind, builder: ListingBuilder, options: Any) -> FileStates | None:
    """Return the states of the files that determine a listing; None if it depends on more."""
    if kind.inputs is None:
        return None
    try:
        files = kind.inputs(builder.base, options)
    except (SourceError, OSError):
        return {}  # no file matches yet
    if files is None:
        return None
    states: FileStates = {}
    for file in files:
        try:
            state = file.stat()
        except OSError:
            continue  # removed meanwhile
        states[str(file)] = (state.st_mtime_ns, state.st_size, state.st_ino)
    return states
