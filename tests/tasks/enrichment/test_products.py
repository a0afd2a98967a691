"""The products: schemas of replies, and the values that replies yield."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from tasks.enrichment.products import REPLIES, schema_of
from tasks.settings.enrichment import PRODUCTS


def objects(schema: Any) -> list[dict[str, Any]]:
    if isinstance(schema, list):
        return [item for value in schema for item in objects(value)]
    if not isinstance(schema, dict):
        return []
    top_level = [schema] if schema.get("type") == "object" else []
    return top_level + [item for value in schema.values() for item in objects(value)]


@pytest.mark.parametrize("product", PRODUCTS)
def test_schemas_are_strict(product: Any) -> None:
    schema = schema_of(product)
    assert "$" not in json.dumps(schema)
    for item in objects(schema):
        assert item["additionalProperties"] is False
        assert item["required"] == list(item["properties"])
    with pytest.raises(ValidationError):
        REPLIES[product].model_validate({"another": "x"})
