"""Shared by the tests of source kinds: `listed` reads a source as a build does."""

import json
import sys
from pathlib import Path

import pytest

from catalogs.shared.kinds import source_kind
from catalogs.shared.listing import ListingBuilder
from catalogs.shared.reading import list_source
from catalogs.shared.retries import Retries


@pytest.fixture
def listed(tmp_path):
    """A function that lists a source of a kind as the catalog `kit`, with base `tmp_path`.

    Requests are made once, unless `waits` is a list: then they are retried, and the waits are
    appended to it instead of spent. `reports` gets what would be logged.
    """

    def listing_of(kind, base=tmp_path, waits=None, reports=None, **options):
        builder = ListingBuilder("kit", base)
        path = list(sys.path)
        modules = set(sys.modules)
        source = source_kind(kind)
        try:
            model = source.options.model_validate({"type": kind, **options})
            builder.retries = Retries(
                attempts=1 if waits is None else model.attempts,
                max_wait=model.max_wait,
                report=[].append if reports is None else reports.append,
                sleep=[].append if waits is None else waits.append,
            )
            return list_source(source, builder, model)
        finally:  # a build ends the process that imported a module
            sys.path[:] = path
            given = (base, tmp_path)
            for name, module in list(sys.modules.items()):
                file = getattr(module, "__file__", None) or ""
                if name not in modules and any(Path(file).is_relative_to(top) for top in given):
                    del sys.modules[name]

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
