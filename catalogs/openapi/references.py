"""Resolve the `$ref`s of an OpenAPI document.

Documents are untrusted. A `$ref` to another file is followed only from a local document and only
inside the folder that the catalog allows; no `$ref` is followed over the network.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urldefrag, urljoin, urlsplit
from urllib.request import url2pathname

from catalogs.openapi.document import parse
from catalogs.openapi.identities import localize, pointer_parts
from pegboard.errors import SourceError
from pegboard.foreign.files import RepeatedNames, read_text
from pegboard.text.redaction import public_url

MAX_HOPS = 20
"""Maximum length of a chain of references; a longer chain is treated as a cycle."""


@dataclass(slots=True)
class References:
    """Resolves references within a document and to files beside it.

    Attributes:
        uri: URI of the document; empty for a document from the network.
        folder: the only folder from which files are read, links followed; None for a document from
            the network.
        max_bytes: bytes that may still be read from other files, in total.
        has_subtypes: whether any document that was read has a `discriminator`.
        left_document: whether any reference led out of the document, even to a missing file.
    """

    uri: str
    folder: Path | None
    max_bytes: int
    has_subtypes: bool = False
    left_document: bool = False
    _files: dict[str, Any] = field(default_factory=dict[str, Any])
    _anchors: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])

    @classmethod
    def of_file(
        cls, text: str, path: Path, max_bytes: int, folder: Path | None = None
    ) -> "References":
        """Return the references of a document in a file.

        Args:
            folder: the folder from which files are read; None for that of the document.
        """
        path = path.resolve()
        references = cls(path.as_uri(), folder.resolve() if folder else path.parent, max_bytes)
        references._add(references.uri, text, str(path))
        return references

    @classmethod
    def of_url(cls, text: str, place: str, address: str) -> "References":
        """Return the references of a document from the network.

        Args:
            place: the address for messages.
        """
        references = cls("", None, 0)
        references._add("", text, place, address)
        return references

    @property
    def document(self) -> Any:
        return self._files[self.uri]

    def key(self, ref: Any, base: str) -> str:
        """Return the absolute form of a reference in the file `base`, or raise SourceError."""
        if not isinstance(ref, str):
            raise SourceError(f"a $ref is {type(ref).__name__}, expected text")
        try:
            uri, fragment = urldefrag(ref)
            return f"{urljoin(base, uri) if uri else base}#{fragment}"
        except ValueError as error:
            raise SourceError(f"a $ref is not a valid URI reference: {error}") from None

    def lookup(self, key: str) -> Any:
        """Return the target of an absolute reference, or raise SourceError."""
        uri, _, fragment = key.partition("#")
        if uri not in self._files:
            try:
                self._files[uri] = self._load(uri)
            except SourceError as error:
                # Errors are cached, too: a thousand operations may refer to the same broken file.
                self._files[uri] = error
        part = self._files[uri]
        if isinstance(part, SourceError):
            raise SourceError(*part.args)
        fragment = self._anchors.get(uri, {}).get(fragment, fragment)
        for name in pointer_parts(fragment):
            if isinstance(part, RepeatedNames) and name in part.repeated:
                raise SourceError(f"it refers to {name!r}, which is repeated; remove one")
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
        raise SourceError(f"it refers to {file}#{fragment}, which does not exist")

    def follow(self, part: Any, base: str) -> tuple[Any, str]:
        """Return the part itself or the target of its `$ref`, and the file that contains it."""
        for _ in range(MAX_HOPS):
            if not (isinstance(part, dict) and "$ref" in part):
                return part, base
            key = self.key(part["$ref"], base)
            part = self.lookup(key)
            base = key.partition("#")[0]
        raise SourceError(
            f"its references form a cycle, or a chain of more than {MAX_HOPS} references"
        )

    def _load(self, uri: str) -> Any:
        self.left_document = True
        parts = urlsplit(uri)
        if self.folder is None or parts.scheme != "file" or parts.netloc:
            raise SourceError(
                f"it refers to {public_url(uri)}, and only references inside a local folder are "
                f"followed; bundle it in one file"
            )
        path = Path(url2pathname(parts.path))
        try:
            path = path.resolve()
        except (OSError, ValueError) as error:
            raise SourceError(f"it refers to a file with an invalid name: {error}") from None
        if not path.is_relative_to(self.folder):
            raise SourceError(
                f"it refers to {path.name} outside the folder {self.folder}, where references are "
                f"not followed; allow a folder that has both as `root` of the catalog"
            )
        try:
            text = read_text(path, self.max_bytes)
            self.max_bytes -= len(text)
            return self._add(uri, text, str(path))
        except (SourceError, ValueError) as error:
            raise SourceError(f"it refers to {path.name}, which cannot be read: {error}") from error

    def _add(self, uri: str, text: str, where: str, address: str = "") -> Any:
        """Add a document, and return it."""
        document = parse(text, where)
        self.has_subtypes = self.has_subtypes or "discriminator" in text
        self._files[uri] = document
        self._anchors[uri] = localize(document, text, address)
        return document
