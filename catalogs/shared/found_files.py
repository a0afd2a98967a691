"""The files of one name in a folder, at any depth, such as every SKILL.md.

Nothing outside of the folder is read, except where the catalog allows it: a link in a folder of
untrusted files could lead to any file."""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path

from pegboard.errors import SourceError
from pegboard.foreign.files import matching_files
from pegboard.records import NoticeKind


@dataclass(slots=True)
class FoundFiles:
    """What a catalog's path names.

    Attributes:
        root: the folder that the files were looked for in.
        files: the files, sorted.
        left_out: links that were not followed (`skipped`) and folders that cannot be read
            (`partial`): the kind of notice, the path and the reason.
    """

    root: Path
    files: list[Path] = field(default_factory=list[Path])
    left_out: list[tuple[NoticeKind, Path, str]] = field(
        default_factory=list[tuple[NoticeKind, Path, str]]
    )


def find_files(base: Path, pattern: str, name: str, links: Sequence[str]) -> FoundFiles:
    """Return the files of a name in a folder, or those that match a pattern.

    Args:
        base: the folder that relative paths count from.
        pattern: a folder, a file or a pattern of files.
        links: folders outside that links may lead to.

    Raises:
        SourceError: there is no such file, or a folder of `links` does not exist.
    """
    path = base / Path(pattern).expanduser()
    found = FoundFiles(_fixed_folder(path))
    allowed = [found.root, *(base / Path(link).expanduser() for link in links)]
    if missing := [str(folder) for folder in allowed[1:] if not folder.is_dir()]:
        raise SourceError(
            f"`links` names folders that do not exist: {missing}. Relative paths count from the "
            f"folder of pegboard.toml."
        )
    allowed = [folder.resolve() for folder in allowed]
    files = _walk(found, name, allowed) if path.is_dir() else matching_files(base, pattern)
    for file in sorted(files):
        if _is_within(file, allowed):
            found.files.append(file)
        else:
            found.left_out.append(("skipped", file, _outside(file)))
    if not found.files:
        reasons = "".join(f" {file}: {why}." for _, file, why in found.left_out[:3])
        raise SourceError(
            f"There is no file {path}/**/{name}. Expected a folder with such files, or a pattern "
            f"such as 'folder/*/{name}'; relative paths count from the folder of pegboard.toml."
            f"{reasons}"
        )
    return found


def _fixed_folder(path: Path) -> Path:
    """Return the folder that a path or pattern names without `*`, `?` and `[`."""
    if path.is_dir():
        return path
    fixed = Path(*takewhile(lambda part: not set("*?[") & set(part), path.parts))
    return fixed.parent if fixed == path else fixed


def _walk(found: FoundFiles, name: str, allowed: Sequence[Path]) -> Iterable[Path]:
    """Return the files of a name below the root, each once, also those below links that may be
    followed. The others are added to what is left out.
    """
    files: list[Path] = []
    visited: set[Path] = set()
    folders = [found.root]
    while folders:
        for place, children, names in os.walk(folders.pop(0), onerror=_reporter(found)):
            folder = Path(place)
            if folder.resolve() in visited:
                children.clear()
                continue
            visited.add(folder.resolve())
            if name in names:
                files.append(folder / name)
            # Links come last, so that a file is found without them if it can be.
            for link in sorted(folder / child for child in children):
                if not link.is_symlink():
                    continue
                if _is_within(link, allowed):
                    folders.append(link)
                else:
                    found.left_out.append(("skipped", link, _outside(link)))
    return files


def _reporter(found: FoundFiles) -> Callable[[OSError], None]:
    def report(error: OSError) -> None:
        reason = f"the folder cannot be read: {error.strerror}; check its permissions"
        found.left_out.append(("partial", Path(str(error.filename)), reason))

    return report


def _is_within(path: Path, folders: Iterable[Path]) -> bool:
    real = path.resolve()
    return any(real.is_relative_to(folder) for folder in folders)


def _outside(path: Path) -> str:
    return (
        f"it leads to {path.resolve()}, outside of the catalog's folder; name a folder around that "
        f"in `links` to read it"
    )
