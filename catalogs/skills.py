"""Source kind `skills`: folders of Agent Skills (https://agentskills.io). A skill is a file
SKILL.md: YAML front matter with `name`, `description` and `allowed-tools`, then a body.

Before it chooses a skill, a model sees only the description. Searches also use the beginning of the
body, and clients read the body from the board. See docs/how-to/sources.md."""

import re
from collections.abc import Mapping
from glob import escape
from pathlib import Path
from typing import Any

from catalogs.openapi.document import parse_yaml
from catalogs.shared.listing import ListingBuilder, SourceKind, SourceOptions
from catalogs.shared.validity import texts_in
from pegboard.errors import SourceError
from pegboard.foreign.files import matching_files, read_text
from pegboard.foreign.limits import MAX_DESCRIPTION
from pegboard.records import Dependency

FILE = "SKILL.md"
"""Name of a skill's main file."""
MARK = "---"
"""Line before and after the front matter."""
KEY = re.compile(r"[A-Za-z][\w-]*")
"""Matches a key of front matter that is not valid YAML because a text lacks quotes, such as
`description: Use it for two things: reading and writing`."""
ALLOWED = re.compile(r"([^\s,()]+)(?:\([^()]*\))?")
"""Matches an entry of `allowed-tools`, separated by commas or blanks, such as `Bash(git add:*)`."""
OF_CLIENT = re.compile(r"[A-Z][A-Za-z]*")
"""Matches the name of a client's built-in tool, such as Bash or WebFetch, which no board has."""
OF_SERVER = re.compile(r"mcp__.+?__(.+)")
"""Matches the name that coding agents give to a tool of an MCP server."""


class SkillsOptions(SourceOptions):
    """The options of a catalog of type `skills`; `agent` defaults to the catalog's name.

    `path` is a folder, searched for files SKILL.md at any depth, or a pattern of such files."""

    path: str
    agent: str | None = None


def read(listing: ListingBuilder, options: SkillsOptions) -> None:
    """List the skills. Raises SourceError if no file matches."""
    agent = listing.agent(options.agent or listing.catalog, kind="skill", source=options.path)
    for path in inputs(listing.base, options):
        with listing.file(path):
            text = read_text(path, options.max_bytes)
            place = str(
                path.relative_to(listing.base) if path.is_relative_to(listing.base) else path
            )
            add_skill(
                listing, agent, text, where=place, name=path.parent.name, place={"file": place}
            )


def add_skill(
    listing: ListingBuilder,
    agent: str,
    text: str,
    *,
    where: str,
    name: str,
    place: Mapping[str, str],
) -> None:
    """Add the skill of a SKILL.md, or reject it.

    Args:
        name: used if the front matter has no name.
        place: where a client finds the skill and its other files; stored as annotations.
    """
    with listing.record(where):
        head, body = split_front_matter(text, where)
        if len(body) > MAX_DESCRIPTION:
            raise SourceError(
                f"its body has {len(body):,} characters, more than {MAX_DESCRIPTION:,}; move "
                f"parts of it to other files"
            )
        listing.tool(
            agent,
            head.get("name") or name,
            where=where,
            raw=head,
            description=head.get("description"),
            annotations={**place, "body": body},
            dependencies=[
                Dependency(tool, "tool-directly-depends-on", reason="in its allowed-tools")
                for tool in allowed_tools(head.get("allowed-tools"))
            ],
        )


def split_front_matter(text: str, where: str) -> tuple[dict[str, Any], str]:
    """Return the front matter and body of a SKILL.md. Raises SourceError without front matter."""
    lines = [line.rstrip() for line in text.strip().split("\n")]
    if lines[0] != MARK or MARK not in lines[1:]:
        raise SourceError(
            "it has no front matter; begin the file with a line ---, name and description, and "
            "another line ---"
        )
    end = lines.index(MARK, 1)
    try:
        head = parse_yaml("\n".join(lines[1:end]), where)
    except SourceError:
        # Many skills have unquoted texts that are not valid YAML.
        pairs = (line.partition(": ") for line in lines[1:end])
        head = {key: value.strip() for key, _, value in pairs if KEY.fullmatch(key) and value}
        if "description" not in head:
            raise
    if not isinstance(head, dict):
        raise SourceError(f"its front matter is {type(head).__name__}, expected names and values")
    return head, "\n".join(lines[end + 1 :]).strip()


def allowed_tools(value: Any) -> list[str]:
    """Return the names of the tools that a skill may use, without the client's built-in tools."""
    entries = [value] if isinstance(value, str) else texts_in(value)
    names = [name for entry in entries for name in ALLOWED.findall(entry)]
    board_names = [name for name in names if not OF_CLIENT.fullmatch(name)]
    return list(dict.fromkeys(OF_SERVER.sub(r"\1", name) for name in board_names))


def inputs(base: Path, options: SkillsOptions) -> list[Path]:
    """Return the files of the skills."""
    path = Path(options.path).expanduser()
    folder = (path if path.is_absolute() else base / path).is_dir()
    return matching_files(
        base, str(Path(escape(str(path)), "**", FILE)) if folder else options.path
    )


source = SourceKind(options=SkillsOptions, read=read, inputs=inputs)
