"""Being told of changes in folders by the system (inotify)."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import anyio
from watchfiles import DefaultFilter, awatch

from pegboard.errors import SourceError

MAGIC = frozenset("*?[")
"""Characters that make a part of a path a pattern."""
STOP_MILLISECONDS = 250
"""Milliseconds after which a watch that is cancelled ends, at most."""
Folders = frozenset[tuple[Path, bool]]
"""Folders, each with whether the folders below it are meant, too."""


def folders_of(
    base: Path, patterns: Iterable[str], find: Callable[[], Sequence[Path]] | None
) -> Folders:
    """Return the folders that exist in which files of some patterns are, or may appear.

    Args:
        base: the folder of relative patterns.
        find: returns the files now.
    """
    folders = {_folder(base / Path(pattern).expanduser()) for pattern in patterns}
    try:
        files = find() if find is not None else ()
    except (SourceError, OSError):
        files = ()
    folders |= {(file.parent, False) for file in files if file.parent.is_dir()}
    deep = {folder for folder, is_deep in folders if is_deep}
    return frozenset(
        (folder, is_deep)
        for folder, is_deep in folders
        if not any(other in folder.parents for other in deep) and (is_deep or folder not in deep)
    )


def _folder(path: Path) -> tuple[Path, bool]:
    """Return the nearest folder that exists of a path or pattern, and whether to look below it."""
    fixed = Path(path.anchor)
    rest = list(path.parts[1:])
    while rest and not MAGIC & set(rest[0]):
        fixed /= rest.pop(0)
    is_deep = len(rest) > 1 or (not rest and fixed.is_dir())
    if not rest and not is_deep:
        fixed = fixed.parent
    while not fixed.is_dir():
        fixed = fixed.parent
        is_deep = False
    return fixed, is_deep


def contains(folders: Folders, path: Path) -> bool:
    """Return whether a path is in one of the folders, or is one."""
    return any(
        folder in (path, path.parent) or (is_deep and folder in path.parents)
        for folder, is_deep in folders
    )


async def follow_folders(
    folders: Folders, ignored: Path, on_change: Callable[[set[Path]], None]
) -> None:
    """Report paths that change in some folders, in bursts, until this is cancelled.

    Args:
        ignored: a folder whose changes are not reported.
        on_change: called with each burst; and without paths as soon as the folders are followed,
            since earlier changes are not reported.

    Raises:
        OSError: a folder is gone, or the system watches no more.
    """
    deep = [folder for folder, is_deep in folders if is_deep]
    flat = [folder for folder, is_deep in folders if not is_deep]
    async with anyio.create_task_group() as group:
        for paths, is_deep in ((deep, True), (flat, False)):
            if paths:
                group.start_soon(_follow, paths, is_deep, ignored, on_change)


async def _follow(
    paths: list[Path], is_deep: bool, ignored: Path, on_change: Callable[[set[Path]], None]
) -> None:
    watch_filter = DefaultFilter(ignore_paths=(ignored,))
    is_ready = False
    async for changes in awatch(
        *paths,
        watch_filter=watch_filter,
        recursive=is_deep,
        rust_timeout=STOP_MILLISECONDS,
        yield_on_timeout=True,
    ):
        if not is_ready:
            on_change(set())
            is_ready = True
        if changes:
            on_change({Path(path) for _, path in changes})
