"""Whether a source can say anything else than it did: a fingerprint of the files that it is made
of, and of the code that reads them.

Files are known by their content, not by their dates: a checkout gives every file a new date. A
source that asks a server, or runs code, has no fingerprint and is listed in every run.
"""

import hashlib
import inspect
import sys
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path

import catalogs
from catalogs.shared.kinds import source_kind
from pegboard import canonical, records
from pegboard.canonical import digest
from pegboard.errors import SourceError
from tasks.settings.configuration import Configuration

READERS = ("jsonschema-rs", "openapi-spec-validator", "polars", "pydantic", "pyyaml", "referencing")
"""Other people's packages that decide what is in a listing, and what is rejected."""


def fingerprint_of(configuration: Configuration, catalog: str) -> str | None:
    """A digest over all that decides the listing of a catalog, or None where that cannot be known
    beforehand.
    """
    options = configuration.options(catalog)
    kind = source_kind(options.type)
    if kind.inputs is None:
        return None
    try:
        files = kind.inputs(configuration.base, options)
        code = _code(inspect.getsourcefile(kind.read))
        if files is None or code is None:
            return None
        said = [[file.name, hashlib.sha256(file.read_bytes()).hexdigest()] for file in files]
    except (SourceError, OSError):
        return None  # the listing says it, in its own words
    return digest(code, catalog, options.model_dump(mode="json"), said)


@cache
def _code(reader: str | None) -> str | None:
    """A digest over the code that lists sources; None where it is not there as files."""
    folders = [Path(folder) for folder in catalogs.__path__]
    own: Sequence[Path] = sorted(file for folder in folders for file in folder.glob("*.py"))
    others = [Path(file) for file in (canonical.__file__, records.__file__, reader) if file]
    if not own or reader is None:
        return None
    texts = [hashlib.sha256(file.read_bytes()).hexdigest() for file in (*own, *others)]
    return digest(texts, [[name, version(name)] for name in READERS], sys.version)
