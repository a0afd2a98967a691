"""Source kind `a2a`: agent cards of the Agent2Agent protocol (https://a2a-protocol.org), in files
or at URLs. A card becomes an agent. Each of its skills becomes a row of that agent, with the
skill's tags, and its examples as requests. See docs/how-to/sources.md."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import Field, model_validator

from catalogs.openapi.document import download
from catalogs.shared.listing import ListingBuilder, SourceKind, SourceOptions, files_of_path
from catalogs.shared.validity import member_text, texts_in
from catalogs.shared.watching import Watched, WatchedFiles, WatchedUrl
from pegboard.errors import SourceError
from pegboard.foreign.files import (
    check_names,
    decoded,
    flaw_of,
    matching_files,
    parse_json,
    read_json,
)
from pegboard.text.redaction import public_url


class A2aOptions(SourceOptions):
    """The options of a catalog of type `a2a`: either `path` (files of cards) or `urls`.

    `${NAME}` in `headers` is replaced by an environment variable."""

    path: str | None = None
    urls: tuple[str, ...] = ()
    headers: dict[str, str] = Field(default_factory=dict[str, str], repr=False)
    timeout: float = Field(30.0, gt=0)

    @model_validator(mode="after")
    def _one_place(self) -> "A2aOptions":
        if (self.path is None) == (not self.urls):
            raise ValueError("give either `path` or `urls` of agent cards")
        return self


def read(listing: ListingBuilder, options: A2aOptions) -> None:
    """List the agents and their skills. Raises SourceError if no card can be read."""
    for path in files_of_path(listing.base, options) or ():
        with listing.file(path):
            _add(listing, read_json(path, options.max_bytes), path.name)
    for url in options.urls:
        place = public_url(url)
        with listing.file(place):
            content = download(
                url,
                options.headers,
                timeout=options.timeout,
                max_bytes=options.max_bytes,
                retries=listing.retries,
            )
            _add(listing, parse_json(decoded(content, place), place), place)


def _add(listing: ListingBuilder, card: Any, place: str) -> None:
    """Add the agent of a card and its skills; invalid skills are rejected."""
    check_names(card, place)
    skills = card.get("skills") if isinstance(card, dict) else None
    name = card.get("name") if isinstance(card, dict) else None
    if not isinstance(skills, list) or not isinstance(name, str) or not name.strip():
        raise SourceError(
            f"{place} is not an agent card. Expected an object with a name and a list of skills."
        )
    address = next(_addresses(card), "")
    agent = listing.agent(
        name,
        description=card.get("description") or "",
        kind="agent",
        source=public_url(address) if address else place,
    )
    for number, skill in enumerate(skills):
        where = f"{place}: skills[{number}]"
        with listing.record(where):
            _add_skill(listing, agent, skill, where)


def _add_skill(listing: ListingBuilder, agent: str, skill: Any, where: str) -> None:
    if not isinstance(skill, dict):
        raise SourceError(f"it is {type(skill).__name__}, expected an object with id and name")
    if flaw := flaw_of(skill):
        raise SourceError(flaw)
    title = member_text(skill, "name")
    description = member_text(skill, "description")
    # An id may be opaque, so the skill's name belongs in the description.
    described = description if description.startswith(title) else f"{title}. {description}"
    listing.tool(
        agent,
        skill.get("id") or title,
        where=where,
        raw=skill,
        description=described.strip(),
        annotations={"title": title} if title else None,
        examples=texts_in(skill.get("examples")),
        tags=texts_in(skill.get("tags")),
    )


def _addresses(card: dict[str, Any]) -> Iterator[str]:
    """Yield the URLs of an agent: `url` (protocol before 1.0), then those of its interfaces."""
    interfaces = card.get("supportedInterfaces")
    for holder in (card, *(interfaces if isinstance(interfaces, list) else ())):
        if isinstance(holder, dict) and (url := member_text(holder, "url")):
            yield url


def watched(base: Path, options: A2aOptions) -> list[Watched]:
    """Return the cards, as files or at their URLs."""
    if options.path:
        return [WatchedFiles(partial(matching_files, base, options.path), (options.path,))]
    return [
        WatchedUrl(url, options.headers, options.timeout, options.max_bytes) for url in options.urls
    ]


source = SourceKind(options=A2aOptions, read=read, inputs=files_of_path, watched=watched)
