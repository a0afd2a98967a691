"""Shared by the tests of source kinds: `listed` reads a source as a build does."""

import json
import sys

import pytest

from catalogs.shared.kinds import source_kind
from catalogs.shared.listing import ListingBuilder


@pytest.fixture
def listed(tmp_path):
    """A function that lists a source of a kind as the catalog `kit`, with base `tmp_path`."""

    def listing_of(kind, base=tmp_path, **options):
        builder = ListingBuilder("kit", base)
        path = list(sys.path)
        source = source_kind(kind)
        try:
            source.read(builder, source.options.model_validate({"type": kind, **options}))
        finally:  # a build ends the process that imported a module
            sys.path[:] = path
            for name in [name for name in sys.modules if name.startswith("given_")]:
                del sys.modules[name]
        return builder.build()

    return listing_of


@pytest.fixture
def listed_document(listed, tmp_path):
    """A function that lists an OpenAPI document, which is a value or text."""

    def listing_of(document):
        text = document if isinstance(document, str) else json.dumps(document)
        (tmp_path / "api.json").write_text(text)
        return listed("openapi", path="api.json")

    return listing_of


@pytest.fixture
def servers(listed):
    """A function that lists servers by name, or what the options name."""

    def listing_of(entries=None, **options):
        options |= {} if entries is None else {"servers": entries}
        return listed("mcp", **{"timeout": 600, **options})

    return listing_of


def places(value, path=()):
    """Yield every value inside a value, with its place."""
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield (*path, key), item
            yield from places(item, (*path, key))
