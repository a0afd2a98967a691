"""The products: schemas of replies, and the values that replies yield."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from tasks.enrichment.products import REPLIES, schema_of, typical_output_tokens, value_of
from tasks.settings.enrichment import PRODUCTS, EnrichSettings


def value(product: Any, reply: dict[str, Any]) -> Any:
    return value_of(REPLIES[product].model_validate(reply))


def objects(schema: Any) -> list[dict[str, Any]]:
    if isinstance(schema, list):
        return [found for item in schema for found in objects(item)]
    if not isinstance(schema, dict):
        return []
    return [schema] * (schema.get("type") == "object") + [
        found for item in schema.values() for found in objects(item)
    ]


@pytest.mark.parametrize("product", PRODUCTS)
def test_schemas_are_as_strict_servers_want_them(product: Any) -> None:
    schema = schema_of(product)
    assert "$" not in json.dumps(schema)
    for one in objects(schema):
        assert one["additionalProperties"] is False
        assert one["required"] == list(one["properties"])


def test_a_schema_is_the_callers_own() -> None:
    schema_of("topics")["properties"].clear()
    assert schema_of("topics")["properties"]


@pytest.mark.parametrize("product", PRODUCTS)
def test_a_reply_with_another_field_is_refused(product: Any) -> None:
    with pytest.raises(ValidationError):
        REPLIES[product].model_validate({"another": "x"})


def test_a_description_joins_what_a_tool_does_and_when_to_use_it() -> None:
    reply = {
        "does": "Lists the  tides of a harbour",
        "use_when": "Use it to plan a trip!",
        "avoid": [
            {"when": "Rain is asked for.", "instead": "get_forecast"},
            {"when": "to book a berth", "instead": ""},
        ],
    }
    assert value("description", reply) == {
        "description": "Lists the tides of a harbour. Use it to plan a trip!",
        "avoid": "Not when rain is asked for: use get_forecast. Not to book a berth.",
    }


def test_a_description_may_have_nothing_to_avoid() -> None:
    reply = {
        "does": "潮汐を一覧表示します。",
        "use_when": "釣りに。",
        "avoid": [{"when": " ", "instead": ""}],
    }
    assert value("description", reply) == {
        "description": "潮汐を一覧表示します。 釣りに。",
        "avoid": "",
    }


def test_the_other_products_are_notes_lists_and_a_text() -> None:
    assert value("arguments", {"arguments": [{"name": "dt", "note": " the date "}]}) == {
        "dt": "the date"
    }
    assert value("questions", {"questions": [" when is high water? "]}) == ["when is high water?"]
    assert value("topics", {"topics": ["Tides"]}) == ["Tides"]
    verdict = {"number": 1, "needed": True, "direct": True, "reason": "It gives the id"}
    assert value("dependencies", {"candidates": [verdict]}) == [
        verdict | {"reason": "It gives the id."}
    ]
    assert value("agents", {"description": "Harbour services.\n"}) == "Harbour services."


def test_more_questions_take_more_tokens_and_never_more_than_allowed() -> None:
    few, many = (EnrichSettings(model="x/y", questions=n) for n in (5, 30))
    assert typical_output_tokens("questions", few) < typical_output_tokens("questions", many)
    short = EnrichSettings(model="x/y", questions=30, max_reply_tokens=100)
    assert typical_output_tokens("questions", short) == 100


def test_thinking_first_is_counted_in_the_mean_of_both_replies() -> None:
    settings = EnrichSettings(model="x/y", think=True)
    assert typical_output_tokens("topics", settings) > typical_output_tokens(
        "topics", EnrichSettings(model="x/y")
    )
