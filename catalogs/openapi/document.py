"""The text of an OpenAPI document, and the parts of it that a `$ref` names.

A document is untrusted. A `$ref` to another file is followed only from a local document, and only
inside its own folder; none is ever followed over the network.
"""

import os
import re
import time
from collections.abc import Mapping
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


class Broken(Exception):
    """A part of the document that cannot be used, and why. It takes its operation with it, not the
    document.
    """


def read_document(path: Path) -> Any:
    """The value of a JSON or YAML file. Raises SourceError if it cannot be read, is too large or is
    neither.
    """
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
    """The value of a text that is JSON, or else YAML (which nearly all JSON is, too)."""
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
    """The text at a URL. No redirect is followed, because the headers may hold keys for this
    address alone.

    Raises:
        SourceError: there is no answer in time, or one that is an error, a redirect or too large.
            Its message has neither headers nor the query of the URL.
    """
    import httpx

    where, sent = public_url(url), {name: _expanded(name, value) for name, value in headers.items()}
    deadline, body = time.monotonic() + timeout, bytearray()
    try:
        with (
            httpx.Client(timeout=timeout) as client,
            client.stream("GET", url, headers=sent) as answer,
        ):
            if answer.is_redirect:
                target = public_url(urljoin(url, answer.headers.get("location", "")))
                raise SourceError(
                    f"{where} has moved to {target}. Write that address, if you trust it with the "
                    f"headers."
                )
            if not answer.is_success:
                raise SourceError(
                    f"{where} answers {answer.status_code} {answer.reason_phrase}, expected the "
                    f"document."
                )
            for chunk in answer.iter_bytes():
                body += chunk
                if len(body) > MAX_DOCUMENT:
                    raise SourceError(
                        f"{where} sends more than {MAX_DOCUMENT:,} bytes. Split the document."
                    )
                if time.monotonic() > deadline:
                    raise SourceError(
                        f"{where} is still sending after {timeout:g} seconds. Raise `timeout`."
                    )
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        # Only its kind is told: some messages quote the request.
        raise SourceError(
            f"Cannot fetch {where}: {type(error).__name__}. Check the address and the network."
        ) from None
    return body.decode("utf-8-sig", "surrogateescape")


def _expanded(header: str, value: str) -> str:
    """A header's value with each `${NAME}` replaced by that environment variable."""

    def variable(match: re.Match[str]) -> str:
        found = os.environ.get(match[1])
        if found is None:
            raise SourceError(
                f"The environment variable {match[1]}, which the header {header} needs, is not "
                f"set. Set it."
            )
        return found

    expanded = re.sub(r"\$\{(\w+)\}", variable, value)
    if not (expanded.isascii() and expanded.isprintable()):
        raise SourceError(
            f"The value of the header {header} has characters that a header cannot hold. Correct "
            f"it."
        )
    return expanded


@dataclass(slots=True)
class References:
    """The parts of a document, and of the files beside it, by reference. `folder` is None for a
    document from the network.

    `left` says whether a reference led out of the document, even to nothing.
    """

    uri: str
    folder: Path | None
    left: bool = False
    _files: dict[str, Any] = field(default_factory=dict[str, Any])
    _found: dict[str, Any] = field(default_factory=dict[str, Any])

    @classmethod
    def of(cls, document: Any, path: Path | None) -> "References":
        uri = path.resolve().as_uri() if path else ""
        return cls(uri, path.resolve().parent if path else None, _files={uri: document})

    def key(self, ref: Any, base: str) -> str:
        """The absolute form of a reference that stands in the file `base`. Raises Broken if it is
        not text.
        """
        if not isinstance(ref, str):
            raise Broken(f"a $ref is {type(ref).__name__}, expected text")
        try:
            uri, fragment = urldefrag(ref)
            return f"{urljoin(base, uri) if uri else base}#{fragment}"
        except ValueError as error:
            raise Broken(f"a $ref is no reference: {error}") from None

    def lookup(self, key: str) -> Any:
        """What an absolute reference names. Raises Broken if there is nothing, or if it must not be
        followed.
        """
        if key not in self._found:
            try:
                self._found[key] = self._lookup(key)
            except (
                Broken
            ) as error:  # kept as well: a thousand operations may name the same broken file
                self._found[key] = error
        found = self._found[key]
        if isinstance(found, Broken):
            raise Broken(*found.args)
        return found

    def follow(self, part: Any, base: str) -> tuple[Any, str]:
        """The part itself, or what it names by `$ref`, over any number of steps; and the file in
        which that stands.
        """
        for _ in range(MAX_HOPS):
            if not (isinstance(part, dict) and "$ref" in part):
                return part, base
            key = self.key(part["$ref"], base)
            part, base = self.lookup(key), key.partition("#")[0]
        raise Broken(f"its references lead in a circle, or over more than {MAX_HOPS} steps")

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
            shown = (
                f"#{fragment}" if uri == self.uri else f"{Path(urlsplit(uri).path).name}#{fragment}"
            )
            raise Broken(f"it refers to {shown}, which does not exist") from None

    def _load(self, uri: str) -> Any:
        self.left = True
        parts = urlsplit(uri)
        if self.folder is None or parts.scheme != "file" or parts.netloc:
            raise Broken(
                f"it refers to {public_url(uri)}, and only references inside a local folder are "
                f"followed; bundle it in one file"
            )
        path = Path(url2pathname(parts.path)).resolve()
        if not path.is_relative_to(self.folder):
            raise Broken(
                f"it refers to {path.name} outside the document's own folder, where no reference "
                f"is followed"
            )
        try:
            return read_document(path)
        except SourceError as error:
            raise Broken(f"it refers to {path.name}, which cannot be read: {error}") from error
