"""The options of every kind of source are checked before it is read."""

import pytest
from pydantic import ValidationError

from catalogs.shared.kinds import source_kind


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("mcp", {}),
        ("mcp", {"path": "x", "servers": {}}),
        ("mcp", {"servers": {}, "timeout": 0}),
        ("openapi", {}),
        ("openapi", {"path": "a", "url": "https://b"}),
        ("openapi", {"url": "ftp://b"}),
        ("openapi", {"url": "http://["}),
        ("records", {"path": "x", "columns": {"nam": "x"}}),
        ("records", {"path": "x", "agent_kind": "robot"}),
    ],
)
def test_invalid_options_are_rejected(kind, options):
    with pytest.raises(ValidationError):
        source_kind(kind).options.model_validate({"type": kind, **options})
