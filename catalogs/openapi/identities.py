"""Lead the references of schemas that have identities or definitions of their own to their targets.

A schema of OpenAPI 3.1 may have an `$id`, against which references below it count, an `$anchor`, or
`$defs`. Generators also put a whole JSON Schema with `$defs` or `definitions` into a body, whose
references then count from that schema instead of the document. `localize` rewrites all of these as
JSON Pointers from the root of the document, so that nothing else has to know about them.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

from catalogs.openapi.document import BY_NAME, OPAQUE

HOLDERS = ("$defs", "definitions")
"""Keywords of a schema that hold definitions."""
DEFINITIONS = ("/components/schemas/", "/definitions/", "/$defs/")
"""Where documents of different formats have the schemas that others refer to."""
ANCHORS = ("$anchor", "$dynamicAnchor")
SIGNS = re.compile(r"\$(id|anchor|dynamicAnchor|defs|self)\b")
"""Matches what a text has if references may count from elsewhere than its root."""

Place = tuple["Place", str] | None
"""The place of a part: that of its parent, and its name there. None is the document."""


@dataclass(frozen=True, slots=True)
class _Scope:
    """A part of the document against which references within it may count.

    Attributes:
        uri: its identity; empty without, such as that of a schema with mere definitions.
    """

    part: Any
    place: Place
    uri: str
    parent: "_Scope | None" = None

    def outwards(self) -> Iterator["_Scope"]:
        scope: _Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent


def localize(document: Any, text: str, address: str = "") -> dict[str, str]:
    """Rewrite references in a document, in place, and return the pointers of its anchors.

    Args:
        text: the document as it was written.
        address: URL of the document; empty for a file.
    """
    is_swagger = isinstance(document, dict) and "swagger" in document
    foreign = "#/components/" if is_swagger else "#/definitions/"
    if not SIGNS.search(text) and foreign not in text and not (address and address in text):
        return {}
    identities = _Identities(document, address)
    identities.walk()
    identities.rewrite()
    return identities.by_name


def pointer_parts(fragment: str) -> list[str]:
    """Return the names in a JSON Pointer (RFC 6901) that is the fragment of a URI."""
    tokens = unquote(fragment, errors="surrogatepass").split("/")[1:]
    return [token.replace("~1", "/").replace("~0", "~") for token in tokens]


@dataclass(slots=True)
class _Identities:
    """The identities, anchors and references of a document.

    Attributes:
        uris: pointers by identity.
        anchors: pointers by the identity that an anchor is within, and its name.
        by_name: the first pointer of each name of an anchor.
    """

    document: Any
    address: str
    uris: dict[str, str] = field(default_factory=dict[str, str])
    anchors: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    by_name: dict[str, str] = field(default_factory=dict[str, str])
    _references: list[tuple[dict[str, Any], _Scope]] = field(
        default_factory=list[tuple[dict[str, Any], _Scope]]
    )

    def walk(self) -> None:
        """Collect identities, anchors and references."""
        seen: set[int] = set()
        root = self._root()
        pending: list[tuple[Any, Place, _Scope, bool]] = [(self.document, None, root, False)]
        while pending:
            part, place, scope, by_name = pending.pop()
            if not isinstance(part, dict | list) or id(part) in seen:  # YAML aliases share values
                continue
            seen.add(id(part))
            if isinstance(part, list):
                pending += [(item, (place, str(n)), scope, False) for n, item in enumerate(part)]
                continue
            if not by_name:
                scope = self._enter(part, place, scope)
            for key, value in part.items():
                if by_name or not (key in OPAQUE or key.startswith("x-")):
                    pending.append((value, (place, key), scope, not by_name and key in BY_NAME))

    def rewrite(self) -> None:
        """Rewrite the references that count from elsewhere than the document."""
        for part, scope in self._references:
            for keyword in ("$ref", "$dynamicRef"):
                reference = part.get(keyword)
                pointer = self._pointer(reference, scope) if isinstance(reference, str) else None
                if pointer is not None:
                    del part[keyword]
                    part["$ref"] = f"#{pointer}"

    def _root(self) -> _Scope:
        stated = self.document.get("$self") if isinstance(self.document, dict) else None
        uri = urljoin(self.address, stated) if isinstance(stated, str) else self.address
        self.uris |= {uri: "", self.address: ""}
        self.uris.pop("", None)
        return _Scope(self.document, None, uri)

    def _enter(self, part: dict[str, Any], place: Place, scope: _Scope) -> _Scope:
        """Return the scope of the references in a part, and collect what it is called."""
        if place is None:
            return scope
        identity = part.get("$id")
        uri = identity if isinstance(identity, str) else ""
        if uri and not uri.startswith("#"):
            scope = _Scope(part, place, _joined(self._base(scope), uri).rstrip("#"), scope)
            self.uris.setdefault(scope.uri, _pointer_to(place))
        elif any(isinstance(part.get(key), dict) for key in HOLDERS):
            scope = _Scope(part, place, "", scope)
        # In drafts 6 and 7 an `$id` with only a fragment is an anchor.
        names = [part.get(key) for key in ANCHORS] + [uri[1:] if uri.startswith("#") else None]
        for name in names:
            if isinstance(name, str) and name:
                pointer = _pointer_to(place)
                self.anchors.setdefault((self._base(scope), name), pointer)
                self.by_name.setdefault(name, pointer)
        if "$ref" in part or "$dynamicRef" in part:
            self._references.append((part, scope))
        return scope

    def _base(self, scope: _Scope) -> str:
        return next((outer.uri for outer in scope.outwards() if outer.uri), "")

    def _pointer(self, reference: str, scope: _Scope) -> str | None:
        """Return the pointer that a reference means; None if it stays as it is."""
        try:
            uri, fragment = urldefrag(reference)
        except ValueError:
            return None  # rejected where it is followed
        if uri:
            bases = [outer.uri for outer in scope.outwards()]
            targets = [_joined(base, uri) for base in bases] + [uri]
            target = next((target for target in targets if target in self.uris), None)
            return None if target is None else self._within(target, fragment)
        if fragment and not fragment.startswith("/"):
            bases = [outer.uri for outer in scope.outwards()]
            named = [self.anchors.get((base, fragment)) for base in bases]
            return next(
                (pointer for pointer in named if pointer is not None), self.by_name.get(fragment)
            )
        return self._nearest(fragment, scope)

    def _within(self, uri: str, fragment: str) -> str | None:
        """Return the pointer to a fragment of the part with an identity."""
        if fragment and not fragment.startswith("/"):
            return self.anchors.get((uri, fragment))
        return f"{self.uris[uri]}{fragment}"

    def _nearest(self, fragment: str, scope: _Scope) -> str | None:
        """Return the pointer from the nearest part in which a pointer leads anywhere; first those
        with an identity, as JSON Schema has it, then the document, then those with definitions.
        """
        scopes = list(scope.outwards())
        for outer in [outer for outer in scopes if outer.uri]:
            if _leads_anywhere(outer.part, fragment):
                return f"{_pointer_to(outer.place)}{fragment}"
        if not fragment or _leads_anywhere(self.document, fragment):
            return None
        for outer in [outer for outer in scopes if not outer.uri]:
            if _leads_anywhere(outer.part, fragment):
                return f"{_pointer_to(outer.place)}{fragment}"
        start = next((start for start in DEFINITIONS if fragment.startswith(start)), None)
        for other in DEFINITIONS if start else ():
            pointer = f"{other}{fragment.removeprefix(start or '')}"
            if _leads_anywhere(self.document, pointer):
                return pointer
        return None


def _joined(base: str, uri: str) -> str:
    try:
        return urljoin(base, uri)
    except ValueError:
        return uri


def _pointer_to(place: Place) -> str:
    """Return the JSON Pointer of a place, as the fragment of a URI."""
    tokens: list[str] = []
    while place is not None:
        place, name = place
        tokens.append(name.replace("~", "~0").replace("/", "~1").replace("%", "%25"))
    return "".join(f"/{token}" for token in reversed(tokens))


def _leads_anywhere(part: Any, fragment: str) -> bool:
    for name in pointer_parts(fragment):
        if isinstance(part, Mapping) and name in part:
            part = part[name]
        elif isinstance(part, list) and name.isdecimal() and int(name) < len(part):
            part = part[int(name)]
        else:
            return False
    return True
