"""Source kind `a2a`: agent cards of the Agent2Agent protocol (https://a2a-protocol.org), in files
or at URLs. A card becomes an agent. Each of its skills becomes a row of that agent, with the
skill's tags, and its examples as requests. See docs/how-to/sources.md."""

from collections.abc import Iterator
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Card:
    """An agent card, and the file or URL that it comes from."""

    value: dict[str, Any]
    place: str

    @property
    def name(self) -> str:
        return self.value["name"].strip()

    @property
    def address(self) -> str:
        """The URL of the agent; the card's place if the card has none."""
        address = next(_addresses(self.value), "")
        return public_url(address) if address else self.place


def read(listing: ListingBuilder, options: A2aOptions) -> None:
    """List the agents and their skills. Raises SourceError if no card can be read."""
    cards: list[Card] = []
    for path in files_of_path(listing.base, options) or ():
        with listing.file(path):
            cards.append(_card(read_json(path, options.max_bytes), path.name))
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
            cards.append(_card(parse_json(decoded(content, place), place), place))
    by_name: dict[str, list[Card]] = {}
    for card in cards:
        by_name.setdefault(card.name, []).append(card)
    for name, same_name in by_name.items():
        _add_named(listing, name, same_name)


def _card(value: Any, place: str) -> Card:
    """Return the card. Raises SourceError if the value is not one."""
    check_names(value, place)
    skills = value.get("skills") if isinstance(value, dict) else None
    name = value.get("name") if isinstance(value, dict) else None
    if not isinstance(skills, list) or not isinstance(name, str) or not name.strip():
        raise SourceError(
            f"{place} is not an agent card. Expected an object with a name and a list of skills."
        )
    return Card(value, place)


def _add_named(listing: ListingBuilder, name: str, cards: list[Card]) -> None:
    """Add the agents of one name: one for each address, whose cards are taken together."""
    different: list[Card] = []
    for card in cards:
        same = next((other for other in different if other.value == card.value), None)
        if same is None:
            different.append(card)
        else:
            listing.notice("skipped", card.place, f"it is the same card as {same.place}")
    addresses = {card.address for card in different}
    if len(addresses) > 1:
        listing.notice(
            "renamed",
            different[0].place,
            f"{len(addresses):,} agents are named '{name:.200}'; each is listed with its address, "
            f"this one as '{_name_with_address(different[0]):.200}'. Give them different names.",
            count=len(addresses),
        )
    for card in different:
        _add(listing, card, _name_with_address(card) if len(addresses) > 1 else card.value["name"])


def _name_with_address(card: Card) -> str:
    return f"{card.name} ({card.address.partition('://')[2].rstrip('/') or card.address})"


def _add(listing: ListingBuilder, card: Card, name: str) -> None:
    """Add the agent of a card and its skills; invalid skills are rejected."""
    agent = listing.agent(
        name,
        description=card.value.get("description") or "",
        kind="agent",
        source=card.address,
    )
    for number, skill in enumerate(card.value["skills"]):
        where = f"{card.place}: skills[{number}]"
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
