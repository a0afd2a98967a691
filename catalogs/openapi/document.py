"""The text of an OpenAPI document, and the parts of it that a `$ref` names.

A document is untrusted. A `$ref` to another file is followed only from a local document, and only
inside its own folder; none is ever followed over the network.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin, urlsplit
from urllib.request import url2pathname

from catalogs.shared.yaml_json import parse_yaml
from pegboard.errors import SourceError
from pegboard.foreign.files import RepeatedNames, parse_json, read_text
from pegboard.redaction import public_url

MAX_HOPS = 20
"""Maximum length of a chain of references; a longer one is a cycle."""


METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
NULLABLE = {"const", "default", *METHODS}
"""Members in which a null is kept: it is a value, or an operation that its author left empty."""
OPAQUE = {"const", "default", "enum", "example", "examples", "security"}
"""Members whose own members are no keywords."""
BY_NAME = {
    "$defs", "content", "definitions", "patternProperties", "properties", "responses", "schemas",
}  # fmt: skip
"""Members whose own members have names of the author's choice; an empty one allows anything."""


class InvalidPart(SourceError):
    """A part of the document that cannot be used, and why: its operation is rejected."""


def parse(text: str, where: str) -> Any:
    """Return the value of a text that is JSON, or else YAML (which nearly all JSON is, too).

    Members that are null are left out, but for paths and operations.
    """
    document = _parse(text, where)
    _drop_nulls(document)
    return document


def _parse(text: str, where: str) -> Any:
    if not text.lstrip().startswith(("{", "[")):
        return parse_yaml(text, where)
    try:
        return parse_json(text, where)
    except SourceError as error:
        try:
            return parse_yaml(text, where)
        except SourceError:
            raise error from None


def _drop_nulls(document: Any) -> None:
    """Remove members that are null, in place, but for paths and operations. Many generators of JSON
    write nulls, a YAML key without a value is one, and they say no more than an absent member.
    """
    seen, left = set[int](), [document]
    while left:
        part = left.pop()
        if not isinstance(part, dict | list) or id(part) in seen:  # YAML's aliases share values
            continue
        seen.add(id(part))
        if isinstance(part, list):
            left += part
            continue
        for key, value in list(part.items()):
            if value is None and key not in NULLABLE:
                del part[key]
            elif key == "paths" and isinstance(value, dict):
                left += value.values()
            elif key in BY_NAME and isinstance(value, dict):
                value |= {name: {} for name, named in value.items() if named is None}
                left += value.values()
            elif key not in OPAQUE and not str(key).startswith("x-"):
                left.append(value)


@dataclass(slots=True)
class References:
    """The parts of a document, and of the files beside it, by reference.

    Attributes:
        uri: of the document; empty if it came from the network.
        folder: the only one whose files are read; None for a document from the network.
        max_bytes: of all these files together.
        left_document: whether a reference led out of the document, even to nothing.
    """

    uri: str
    folder: Path | None
    max_bytes: int
    left_document: bool = False
    _files: dict[str, Any] = field(default_factory=dict[str, Any])
    _targets: dict[str, Any] = field(default_factory=dict[str, Any])

    @classmethod
    def of(cls, document: Any, path: Path | None, max_bytes: int) -> "References":
        uri = path.resolve().as_uri() if path else ""
        folder = path.resolve().parent if path else None
        return cls(uri, folder, max_bytes, _files={uri: document})

    def key(self, ref: Any, base: str) -> str:
        """Return the absolute form of a reference in the file `base`, or raise InvalidPart."""
        if not isinstance(ref, str):
            raise InvalidPart(f"a $ref is {type(ref).__name__}, expected text")
        try:
            uri, fragment = urldefrag(ref)
            return f"{urljoin(base, uri) if uri else base}#{fragment}"
        except ValueError as error:
            raise InvalidPart(f"a $ref is not a valid URI reference: {error}") from None

    def lookup(self, key: str) -> Any:
        """Return the target of an absolute reference, or raise InvalidPart."""
        if key not in self._targets:
            try:
                self._targets[key] = self._lookup(key)
            except InvalidPart as error:
                # Cached as well: a thousand operations may name the same broken file.
                self._targets[key] = error
        target = self._targets[key]
        if isinstance(target, InvalidPart):
            raise InvalidPart(*target.args)
        return target

    def follow(self, part: Any, base: str) -> tuple[Any, str]:
        """Return the part itself, or the target of its `$ref`, and the file it stands in."""
        for _ in range(MAX_HOPS):
            if not (isinstance(part, dict) and "$ref" in part):
                return part, base
            key = self.key(part["$ref"], base)
            part, base = self.lookup(key), key.partition("#")[0]
        raise InvalidPart(f"its references lead in a circle, or over more than {MAX_HOPS} steps")

    def _lookup(self, key: str) -> Any:
        uri, _, fragment = key.partition("#")
        if uri not in self._files:
            self._files[uri] = self._load(uri)
        part = self._files[uri]
        # A JSON Pointer, RFC 6901.
        for token in unquote(fragment, errors="surrogatepass").split("/")[1:]:
            name = token.replace("~1", "/").replace("~0", "~")
            if isinstance(part, RepeatedNames) and name in part.repeated:
                raise InvalidPart(f"it refers to {name!r}, which stands twice; remove one")
            if isinstance(part, dict) and name in part:
                part = part[name]
            elif isinstance(part, list) and name in map(str, range(len(part))):
                part = part[int(name)]
            else:
                break
        else:
            if not fragment or fragment.startswith("/"):
                return part
        file = "" if uri == self.uri else Path(urlsplit(uri).path).name
        raise InvalidPart(f"it refers to {file}#{fragment}, which does not exist")

    def _load(self, uri: str) -> Any:
        self.left_document = True
        parts = urlsplit(uri)
        if self.folder is None or parts.scheme != "file" or parts.netloc:
            raise InvalidPart(
                f"it refers to {public_url(uri)}, and only references inside a local folder are "
                f"followed; bundle it in one file"
            )
        path = Path(url2pathname(parts.path))
        try:
            path = path.resolve()
        except (OSError, ValueError) as error:
            raise InvalidPart(f"it refers to a file that has no valid name: {error}") from None
        if not path.is_relative_to(self.folder):
            raise InvalidPart(
                f"it refers to {path.name} outside the document's own folder, where no reference "
                f"is followed"
            )
        try:
            text = read_text(path, self.max_bytes)
            self.max_bytes -= len(text)
            return parse(text, str(path))
        except (SourceError, ValueError) as error:
            raise InvalidPart(f"it refers to {path.name}, which cannot be read: {error}") from error
