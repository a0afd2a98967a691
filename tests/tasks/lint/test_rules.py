"""The rules of `pegboard lint`: each flaw is found where it is, and a good tool has none."""

import ast
import re
from dataclasses import replace
from pathlib import Path

import pytest

from pegboard.errors import PegboardError
from pegboard.evaluation.golden import GoldenQuery
from pegboard.records import Tool
from tasks.lint import findings as findings_module
from tasks.lint.catalog_file import Catalog
from tasks.lint.check import lint
from tasks.lint.findings import SEVERITIES, Finding, rules

CITY = {"type": "string", "description": "The city, such as Oslo."}
ON = {"type": "boolean", "default": True}
FORECAST = Tool(
    id="w/w/forecast",
    catalog="w",
    agent="w/w",
    name="forecast",
    description="Returns the weather of the coming days in a city.",
    input_schema={"type": "object", "properties": {"city": CITY}, "required": ["city"]},
)
TICKET = Tool(
    id="w/w/create_ticket",
    catalog="w",
    agent="w/w",
    name="create_ticket",
    description="Opens a support ticket for a customer.",
)


def with_properties(**properties):
    return {"type": "object", "properties": {"city": CITY, **properties}}


def found(encoder, *tools, queries=(), ignored=()):
    """The findings of a catalog of these tools beside the one for tickets."""
    catalog = Catalog("w", "", (*tools, TICKET), {"w/w": "w"}, ())
    return lint([catalog], list(queries), encoder, ignored)


def test_good_tools_have_no_findings(encoder):
    query = GoldenQuery("the weather in Oslo", ("forecast",))

    assert found(encoder, FORECAST, queries=[query]) == []


FLAWS = {
    "no-purpose": ({"description": ""}, "has no description", "forecast"),
    "unexplained-argument": (
        {"input_schema": with_properties(data={"type": "string"})},
        r"data \(1 of 2 parameters\)",
        "Describe each",
    ),
    "contradiction": (
        {"description": "Returns the weather. The `unit` parameter is celsius or kelvin."},
        '"unit", which the schema lacks',
        "city",
    ),
    "name-length": ({"name": "forecast_" + "of_days_" * 16}, "137 characters", "forecast_of_days"),
    "name-characters": ({"name": "weather/forecast"}, "1 of 2 names have '/'", "weather_forecast"),
    "schema-alternatives": (
        {"input_schema": {"type": "object", "oneOf": [{"required": ["city"]}]}},
        "refuse oneOf",
        "one object",
    ),
    "schema-mended": (
        {"input_schema": with_properties(unit={"$ref": "#/definitions/Unit"})},
        "'#/definitions/Unit' leads nowhere",
        "2020-12",
    ),
    "property-names": (
        {"input_schema": with_properties(**{"filter[day]": CITY})},
        r"filter\[day\] as filter_day",
        "letters, digits",
    ),
    "mcp-header": (
        {"input_schema": with_properties(region={**CITY, "x-mcp-header": "my region"})},
        "not an RFC 9110 token",
        "drop",
    ),
    "many-tokens": (
        {"input_schema": with_properties(spec={**CITY, "enum": [f"v{n}" * 9 for n in range(600)]})},
        r"tokens in each request that offers it: spec [\d,]+, city",
        "Leave out",
    ),
}


@pytest.mark.parametrize(("rule", "flaw"), FLAWS.items(), ids=list(FLAWS))
def test_a_flaw_is_found_with_its_reason_and_a_suggestion(encoder, rule, flaw):
    changes, reason, suggestion = flaw

    findings = [
        finding for finding in found(encoder, replace(FORECAST, **changes)) if finding.rule == rule
    ]

    assert [finding.tool for finding in findings] == ["w/w/forecast"]
    assert re.search(reason, findings[0].reason)
    assert suggestion in findings[0].suggestion


CONTRADICTIONS = [
    ({"type": "integer", "default": 20, "description": "Days. Default: 10."}, "10, the schema 20"),
    ({"type": "boolean", "default": True, "description": "Defaults to `false`."}, "false, the sch"),
    ({"enum": ["a", "b"], "default": "c"}, '"c" is none of its values'),
]


@pytest.mark.parametrize(("schema", "reason"), CONTRADICTIONS)
def test_a_parameter_that_contradicts_its_schema_is_named(encoder, schema, reason):
    nested = {"type": "object", "properties": {"days": schema}}

    [finding] = found(encoder, replace(FORECAST, input_schema=with_properties(span=nested)))

    assert (finding.rule, finding.parameter) == ("contradiction", "span.days")
    assert reason in finding.reason


@pytest.mark.parametrize(
    "changes",
    [
        {"description": "Returns the weather. The parameter `unit` is no longer there."},
        {"description": "Returns the weather. Use the list endpoint and its `unit` parameter."},
        {"input_schema": with_properties(b={"type": "string"})},
        {"input_schema": with_properties(days={"default": 20, "description": "Default: 20."})},
        {
            "input_schema": with_properties(
                on={**ON, "description": "For teams the default is false."}
            )
        },
        {"input_schema": with_properties(mode={"default": "x", "description": "Default: the x."})},
        {"input_schema": with_properties(body={"type": "object", "properties": {}})},
    ],
)
def test_text_that_only_resembles_a_flaw_has_no_finding(encoder, changes):
    assert found(encoder, replace(FORECAST, **changes)) == []


def test_a_request_that_does_not_find_its_tool_suggests_its_words(encoder):
    others = [
        replace(TICKET, id=f"w/w/{name}", name=name, description=f"Tells whether {name} is wet.")
        for name in ("umbrella", "raincoat", "boots", "street", "garden", "roof")
    ]
    query = GoldenQuery("is it wet, do I need an umbrella?", ("forecast",))
    two = GoldenQuery("is it wet, and open a ticket", ("forecast", "create_ticket"))

    [finding] = found(encoder, FORECAST, *others, queries=[query, two], ignored=["twins"])

    assert (finding.rule, finding.severity) == ("not-found", "error")
    assert "1 of 1 request for it" in finding.reason
    assert "first: w/w/umbrella" in finding.reason
    assert "umbrella" in finding.suggestion


def test_the_first_sentence_of_a_tool_that_finds_its_twin_names_the_words_that_part_them(encoder):
    twin = replace(
        FORECAST,
        id="w/w/hourly_forecast",
        name="weather_city",
        input_schema=with_properties(hour={"type": "integer", "description": "Hour of the day."}),
    )

    findings = found(encoder, FORECAST, twin)

    assert [finding.rule for finding in findings] == ["twins"]
    assert findings[0].tool == FORECAST.id
    assert f"finds {twin.id} first word for word, and itself at rank 2" in findings[0].reason
    assert findings[0].suggestion == "Say in the first sentence what only it has: forecast."


def test_a_first_sentence_with_a_word_that_the_other_tool_lacks_has_no_twin(encoder):
    words = "Returns the weather of the coming days in a city"
    near = replace(FORECAST, id="w/w/weather", name="weather_city_days", description=f"{words}.")
    tool = replace(FORECAST, description=f"{words}, for sailors.")

    assert found(encoder, tool, near) == []


def test_sentences_that_many_tools_share_are_one_finding_and_no_purpose(encoder):
    shared = f"Needs a token {'with the scope that the guide lists ' * 6}to work."
    tools = [
        replace(FORECAST, id=f"w/w/t{n}", name=f"t{n}", description=f"Returns the {n}. {shared}")
        for n in range(130)
    ]
    bare = replace(FORECAST, id="w/w/bare", name="bare", description=shared)

    findings = found(encoder, *tools, bare, ignored=["twins"])

    assert [(finding.rule, finding.tool) for finding in findings] == [
        ("no-purpose", "w/w/bare"),
        ("boilerplate", "w"),
    ]
    assert '131 times "Needs a token' in findings[1].reason


def reported_rules():
    """The first argument of each `Finding(...)` in the modules of the rules."""
    for module in Path(findings_module.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(module.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "Finding":
                yield ast.literal_eval(node.args[0])


def test_every_rule_that_is_reported_has_an_entry_and_a_line_in_the_how_to():
    page = Path(__file__).parents[3] / "docs" / "how-to" / "lint.md"
    lines = re.findall(r"^\| `([\w-]+)` \| (\w+) \|", page.read_text("utf-8"), re.MULTILINE)

    assert {*reported_rules()} == {*rules()}
    assert sorted(lines) == sorted((rule.id, rule.severity) for rule in rules().values())


def test_a_rule_without_an_entry_is_named_with_the_file_that_lacks_it():
    expected = "'too-long' has no entry in tasks/lint/rules.json. Add its severity, summary and"

    with pytest.raises(PegboardError, match=expected):
        Finding("too-long", "w/w/forecast", "its description has 9,000 characters")


def test_every_rule_says_what_it_finds_and_what_that_costs():
    for rule in rules().values():
        assert rule.severity in SEVERITIES
        assert rule.summary.endswith(".")
        assert rule.effect
