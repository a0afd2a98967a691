"""What models write instead of the arguments of the gateway's own tools."""

import pytest

from tests.pegboard.serve.office import text_of


@pytest.mark.parametrize("era", ["legacy"])
def test_arguments_in_other_places_and_under_other_names_are_understood(call, desk_uri, desk):
    forms = [
        {"name": "echo", "arguments": {"text": "x"}},
        {"name": "echo", "text": "x"},
        {"name": "echo", "arguments": {}, "text": "x"},
        {"name": "echo", "arguments": "", "text": "x"},
        {"name": "echo", "arguments": '{"text": "x"}'},
        {"name": "echo", "parameters": {"text": "x"}},
        {"name": "echo", "args": '{"text": "x"}'},
        {"tool": "echo", "arguments": {"text": "x"}},
        {"tool_name": "echo", "text": "x"},
        {"name": "count_starts", "arguments": ""},
        {"name": "count_starts", "arguments": None},
    ]

    results = call(desk_uri, *(("call_tool", form) for form in forms), catalogs=desk)

    assert [text_of(result) for result in results] == ["x"] * 9 + ["1"] * 2


@pytest.mark.parametrize("era", ["legacy"])
@pytest.mark.parametrize(
    ("tool", "arguments", "parts"),
    [
        ("call_tool", {"arguments": {"text": "x"}}, ["name", '{"name": ', '"arguments": {...}}']),
        ("call_tool", {"name": "a", "arguments": {"b": "c"}, "d": 1}, ["inside arguments"]),
        ("call_tool", {"name": "echo", "arguments": "text: x"}, ["inside arguments"]),
        ("call_tool", {"name": ""}, ["Unknown tool: ''", "search_tools"]),
        ("search_tools", {"q": "echo"}, ["query", '{"query": ']),
        ("search_agents", {}, ['{"query": ']),
        ("get_tool", {"names": ["echo"]}, ['{"name": ']),
    ],
)  # fmt: skip
def test_what_is_not_understood_is_answered_with_the_form(
    call, desk_uri, desk, tool, arguments, parts
):
    (result,) = call(desk_uri, (tool, arguments), catalogs=desk)

    assert result.is_error
    assert [part in text_of(result) for part in parts] == [True] * len(parts), text_of(result)


@pytest.mark.parametrize("era", ["legacy"])
def test_empty_texts_are_no_values(call, desk_uri, desk):
    found, definition = call(
        desk_uri,
        ("search_tools", {"query": "echo", "k": "", "agent": ""}),
        ("get_tool", {"tool": "echo"}),
        catalogs=desk,
    )

    assert '"name":"echo"' in text_of(found)
    assert '"name":"echo"' in text_of(definition)
