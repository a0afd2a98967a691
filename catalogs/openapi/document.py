"""The text of an OpenAPI document, and the parts of it that a `$ref` names.

A document is untrusted. A `$ref` to another file is followed only from a local document, and only
inside its own folder; none is ever followed over the network.
"""

import os
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urldefrag, urljoin, urlsplit
from urllib.request import url2pathname

from catalogs.shared.files import parse_json, read_text
from catalogs.shared.yaml_json import parse_yaml
from pegboard.errors import SourceError
from pegboard.redaction import public_url

MAX_DOCUMENT = 64_000_000
"""Bytes. The largest public document in wide use, Microsoft Graph's, has about half of it."""
MAX_HOPS = 20
"""References that only name another reference, one after the other; more is a circle."""


class InvalidPart(Exception):
    """A part of the document that cannot be used, and why: its operation is rejected."""


def read_document(path: Path) -> Any:
    """Read a JSON or YAML file. Raises SourceError if it is unreadable, too large or neither."""
    try:
        size = path.stat().st_size
    except OSError as error:
        raise SourceError(
            f"Cannot read {path}: {error.strerror}. Check the path and its permissions."
        ) from error
    if size > MAX_DOCUMENT:
        raise SourceError(f"{path} has {size:,} bytes, more than {MAX_DOCUMENT:,}. Split it.")
    return parse(read_text(path), str(path))


def parse(text: str, where: str) -> Any:
    """Return the value of a text that is JSON, or else YAML (which nearly all JSON is, too)."""
    if not text.lstrip().startswith(("{", "[")):
        return parse_yaml(text, where)
    try:
        return parse_json(text, where)
    except SourceError as error:
        try:
            return parse_yaml(text, where)
        except SourceError:
            raise error from None


def fetch(url: str, headers: Mapping[str, str], timeout: float) -> str:
    """Fetch the text at a URL. Redirects are not followed: the headers may hold keys for it alone.

    Raises:
        SourceError: there is no answer in time, or one that is an error, a redirect or too large.
            Its message has neither headers nor the query of the URL.
    """
    import httpx

    where = public_url(url)
    expanded = {name: _expanded(name, value) for name, value in headers.items()}
    try:
        with (
            httpx.Client(timeout=timeout) as client,
            client.stream("GET", url, headers=expanded) as response,
        ):
            if response.is_redirect:
                target = public_url(urljoin(url, response.headers.get("location", "")))
                raise SourceError(
                    f"{where} has moved to {target}. Write that address, if you trust it with the "
                    f"headers."
                )
            if not response.is_success:
                raise SourceError(
                    f"{where} answers {response.status_code} {response.reason_phrase}, expected "
                    f"the document."
                )
            body = _limited(response.iter_bytes(), where, timeout)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        # Only its type is named: some messages quote the request.
        raise SourceError(
            f"Cannot fetch {where}: {type(error).__name__}. Check the address and the network."
        ) from None
    return body.decode("utf-8-sig", "surrogateescape")


def _limited(chunks: Iterable[bytes], where: str, timeout: float) -> bytes:
    deadline, body = time.monotonic() + timeout, bytearray()
    for chunk in chunks:
        body += chunk
        if len(body) > MAX_DOCUMENT:
            raise SourceError(
                f"{where} sends more than {MAX_DOCUMENT:,} bytes. Split the document."
            )
        if time.monotonic() > deadline:
            raise SourceError(
                f"{where} is still sending after {timeout:g} seconds. Raise `timeout`."
            )
    return bytes(body)


def _expanded(header: str, value: str) -> str:
    """A header's value with each `${NAME}` replaced by that environment variable."""

    def variable(match: re.Match[str]) -> str:
        value = os.environ.get(match[1])
        if value is None:
            raise SourceError(
                f"The environment variable {match[1]}, which the header {header} needs, is not "
                f"set. Set it."
            )
        return value

    expanded = re.sub(r"\$\{(\w+)\}", variable, value)
    if not (expanded.isascii() and expanded.isprintable()):
        raise SourceError(
            f"The value of the header {header} has characters that a header cannot hold. Correct "
            f"it."
        )
    return expanded


@dataclass(slots=True)
class References:
    """The parts of a document, and of the files beside it, by reference.

    Attributes:
        uri: of the document; empty if it came from the network.
        folder: the only one whose files are read; None for a document from the network.
        left_document: whether a reference led out of the document, even to nothing.
    """

    uri: str
    folder: Path | None
    left_document: bool = False
    _files: dict[str, Any] = field(default_factory=dict[str, Any])
    _targets: dict[str, Any] = field(default_factory=dict[str, Any])

    @classmethod
    def of(cls, document: Any, path: Path | None) -> "References":
        uri = path.resolve().as_uri() if path else ""
        return cls(uri, path.resolve().parent if path else None, _files={uri: document})

    def key(self, ref: Any, base: str) -> str:
        """Return the absolute form of a reference in the file `base`, or raise InvalidPart."""
        if not isinstance(ref, str):
            raise InvalidPart(f"a $ref is {type(ref).__name__}, expected text")
        try:
            uri, fragment = urldefrag(ref)
            return f"{urljoin(base, uri) if uri else base}#{fragment}"
        except ValueError as error:
            raise InvalidPart(f"a $ref is no reference: {error}") from None

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
        from referencing import Registry, Resource, Specification
        from referencing.exceptions import Unresolvable

        uri, _, fragment = key.partition("#")
        if uri not in self._files:
            self._files[uri] = self._load(uri)
        resource = Resource(self._files[uri], Specification.OPAQUE)
        try:
            return Registry().with_resource("", resource).resolver().lookup(f"#{fragment}").contents
        except (Unresolvable, ValueError, TypeError, LookupError):
            file = "" if uri == self.uri else Path(urlsplit(uri).path).name
            raise InvalidPart(f"it refers to {file}#{fragment}, which does not exist") from None

    def _load(self, uri: str) -> Any:
        self.left_document = True
        parts = urlsplit(uri)
        if self.folder is None or parts.scheme != "file" or parts.netloc:
            raise InvalidPart(
                f"it refers to {public_url(uri)}, and only references inside a local folder are "
                f"followed; bundle it in one file"
            )
        path = Path(url2pathname(parts.path)).resolve()
        if not path.is_relative_to(self.folder):
            raise InvalidPart(
                f"it refers to {path.name} outside the document's own folder, where no reference "
                f"is followed"
            )
        try:
            return read_document(path)
        except SourceError as error:
            raise InvalidPart(f"it refers to {path.name}, which cannot be read: {error}") from error
