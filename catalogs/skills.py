"""Source kind `skills`: folders of Agent Skills (https://agentskills.io). A skill is a file
SKILL.md: front matter with `name`, `description` and `allowed-tools`, then a body.

Before it chooses a skill, a model sees only the description. Searches also use the beginning of the
body, and clients read the body from the board. See docs/how-to/sources.md."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from catalogs.shared.found_files import find_files
from catalogs.shared.front_matter import split_front_matter
from catalogs.shared.listing import ListingBuilder, SourceKind, SourceOptions
from catalogs.shared.validity import texts_in
from pegboard.errors import SourceError
from pegboard.foreign.files import read_text
from pegboard.foreign.limits import MAX_DESCRIPTION
from pegboard.formatting import count_text
from pegboard.records import Dependency

FILE = "SKILL.md"
"""Name of a skill's main file."""
INTERNAL = "disable-model-invocation"
"""Key of a skill that only users start."""
YES = (True, "true", "True", "yes", "on")
"""Values of a flag that is set: YAML 1.2 has only the first one."""
ALLOWED = re.compile(r"([^\s,()]+)(?:\([^()]*\))?")
"""Matches an entry of `allowed-tools`, separated by commas or blanks, such as `Bash(git add:*)`."""
OF_CLIENT = re.compile(r"[A-Z][A-Za-z]*")
"""Matches the name of a client's built-in tool, such as Bash or WebFetch, which no board has."""
OF_SERVER = re.compile(r"mcp__.+?__(.+)")
"""Matches the name that coding agents give to a tool of an MCP server."""


class SkillsOptions(SourceOptions):
    """The options of a catalog of type `skills`; `agent` defaults to the catalog's name.

    `path` is a folder, searched for files SKILL.md at any depth, or a pattern of such files.

    Attributes:
        links: folders outside of `path` that links in it may lead to.
        internal: whether skills that only users start are listed.
    """

    path: str
    agent: str | None = None
    links: tuple[str, ...] = ()
    internal: bool = False


@dataclass(frozen=True, slots=True)
class SkillFile:
    """A SKILL.md and where it is.

    Attributes:
        name: of its folder; used if the front matter has no name.
        folders: the folders down to its own, which tell skills of one name apart.
        place: where a client finds the skill and its other files; stored as annotations.
    """

    where: str
    text: str
    name: str
    folders: tuple[str, ...]
    place: Mapping[str, str]


def read(listing: ListingBuilder, options: SkillsOptions) -> None:
    """List the skills. Raises SourceError if no file matches."""
    agent = listing.agent(options.agent or listing.catalog, kind="skill", source=options.path)
    found = find_files(listing.base, options.path, FILE, options.links)
    for kind, path, why in found.left_out:
        listing.notice(kind, _place(listing.base, path), why)
    files: list[SkillFile] = []
    for path in found.files:
        with listing.file(path):
            text = read_text(path, options.max_bytes)
            place = _place(listing.base, path)
            folders = path.parent.relative_to(found.root).parts
            files.append(SkillFile(place, text, path.parent.name, folders, {"file": place}))
    add_skills(listing, agent, files, internal=options.internal)


def _place(base: Path, path: Path) -> str:
    return str(path.relative_to(base) if path.is_relative_to(base) else path)


def add_skills(
    listing: ListingBuilder, agent: str, files: Iterable[SkillFile], *, internal: bool = False
) -> None:
    """Add skills, or reject them. Skills of one name are listed under their folders.

    Args:
        internal: whether skills that only users start are listed.
    """
    names: dict[str, list[tuple[SkillFile, dict[str, Any], str]]] = {}
    hidden: list[str] = []
    for file in files:
        with listing.record(file.where):
            head, body = split_front_matter(file.text, file.where)
            if head.get(INTERNAL) in YES and not internal:
                hidden.append(file.where)
                continue
            name = head.get("name") or file.name
            names.setdefault(str(name), []).append((file, head, body))
    if hidden:
        listing.notice(
            "skipped",
            hidden[0],
            f"{count_text(len(hidden), 'skill')} with `{INTERNAL}` left out, this is the first. "
            "Set `internal = true` to list them.",
            count=len(hidden),
        )
    for name, skills in names.items():
        _add_named(listing, agent, name, skills)


def _add_named(
    listing: ListingBuilder,
    agent: str,
    name: str,
    skills: Sequence[tuple[SkillFile, dict[str, Any], str]],
) -> None:
    """Add the skills of one name; of equal files the first."""
    different: dict[str, tuple[SkillFile, dict[str, Any], str]] = {}
    for skill in skills:
        file = skill[0]
        if (earlier := different.setdefault(file.text, skill)[0]) is not file:
            listing.notice("skipped", file.where, f"it has the same text as {earlier.where}")
    if len(different) == 1:
        ((file, head, body),) = different.values()
        _add(listing, agent, head.get("name") or file.name, file, head, body)
        return
    unique = [_name_with_folders(name, file.folders) for file, _, _ in different.values()]
    listing.notice(
        "renamed",
        skills[0][0].where,
        f"{count_text(len(unique), 'skill')} named '{name:.200}' are listed under their folders, "
        f"this one as '{unique[0]:.200}'. Give them different names.",
        count=len(unique),
    )
    for new_name, (file, head, body) in zip(unique, different.values(), strict=True):
        _add(listing, agent, new_name, file, head, body)


def _name_with_folders(name: str, folders: Sequence[str]) -> str:
    parts = folders[:-1] if folders and folders[-1] == name else folders
    return ":".join((*parts, name))


def _add(
    listing: ListingBuilder, agent: str, name: Any, file: SkillFile, head: dict[str, Any], body: str
) -> None:
    with listing.record(file.where):
        if len(body) > MAX_DESCRIPTION:
            raise SourceError(
                f"its body has {len(body):,} characters, more than {MAX_DESCRIPTION:,}; move "
                f"parts of it to other files"
            )
        listing.tool(
            agent,
            name,
            where=file.where,
            raw=head,
            description=head.get("description"),
            annotations={**file.place, "body": body},
            dependencies=[
                Dependency(tool, "tool-directly-depends-on", reason="in its allowed-tools")
                for tool in allowed_tools(head.get("allowed-tools"))
            ],
        )


def allowed_tools(value: Any) -> list[str]:
    """Return the names of the tools that a skill may use, without the client's built-in tools."""
    entries = [value] if isinstance(value, str) else texts_in(value)
    names = [name for entry in entries for name in ALLOWED.findall(entry)]
    board_names = [name for name in names if not OF_CLIENT.fullmatch(name)]
    return list(dict.fromkeys(OF_SERVER.sub(r"\1", name) for name in board_names))


def inputs(base: Path, options: SkillsOptions) -> list[Path]:
    """Return the files of the skills."""
    return find_files(base, options.path, FILE, options.links).files


source = SourceKind(options=SkillsOptions, read=read, inputs=inputs)
