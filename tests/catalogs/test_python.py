import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from catalogs.python.source import source
from catalogs.shared.listing import Listing, ListingBuilder
from pegboard.errors import SourceError

SPECIMENS = Path(__file__).parent / "specimens"


def listed(base: Path, target: str | list[str], **options: Any) -> Listing:
    builder = ListingBuilder("code", base)
    given = {"type": "python", "target": target, "search_path": ".", **options}
    source.read(builder, source.options.model_validate(given))
    return builder.build()


@pytest.fixture
def module(tmp_path: Path) -> Callable[[str], Listing]:
    def write(text: str, **options: Any) -> Listing:
        (tmp_path / "given_module.py").write_text(text)
        return listed(tmp_path, "given_module", **options)

    return write


def test_a_module_lists_its_public_functions_with_schemas_and_descriptions() -> None:
    listing = listed(SPECIMENS, "office_tools")

    assert [tool.name for tool in listing.tools] == [
        "book_room",
        "cancel",
        "convert",
        "count",
        "log",
        "search",
    ]
    first, middle, last = listing.tools[0], listing.tools[2], listing.tools[-1]
    assert first.description == "Book a room.\n\nThe room is held for a day."
    assert first.input_schema["required"] == ["room", "hours"]
    assert first.input_schema["properties"]["hours"] == {
        "type": "integer",
        "description": "For how long.",
        "minimum": 1,
    }
    assert first.input_schema["properties"]["room"] == {
        "$ref": "#/$defs/Room",
        "description": "Which one.",
    }
    assert first.input_schema["properties"]["color"] == {"$ref": "#/$defs/Color", "default": "red"}
    assert sorted(first.input_schema["$defs"]) == ["Color", "Room"]
    assert middle.input_schema["properties"]["amount"] == {
        "type": "number",
        "description": "How much.",
    }
    assert last.input_schema["properties"]["query"]["description"] == "Said by the signature."
    assert listing.rejected == ()
    (agent,) = listing.agents
    assert (agent.name, agent.description, agent.source) == (
        "code",
        "Tools of an office.",
        "office_tools",
    )


def test_the_three_docstring_styles_are_read() -> None:
    tools = {tool.name: tool for tool in listed(SPECIMENS, "office_tools").tools}

    google = tools["book_room"].input_schema["properties"]
    numpy = tools["convert"].input_schema["properties"]
    sphinx = tools["cancel"].input_schema["properties"]
    assert google["hours"]["description"] == "For how long."
    assert numpy["to"]["description"] == "The currency,\nby its code."
    assert sphinx["number"] == {"type": "integer", "description": "The number of the booking."}


def test_a_result_that_is_an_object_gives_an_output_schema() -> None:
    tools = {tool.name: tool for tool in listed(SPECIMENS, "office_tools").tools}

    assert tools["book_room"].output_schema is not None
    assert tools["book_room"].output_schema["$ref"] == "#/$defs/Room"
    assert tools["count"].output_schema == {
        "type": "object",
        "additionalProperties": {"type": "integer"},
    }
    assert tools["convert"].output_schema is None


def test_keyword_arguments_open_the_schema_and_others_close_it() -> None:
    tools = {tool.name: tool for tool in listed(SPECIMENS, "office_tools").tools}

    assert "additionalProperties" not in tools["log"].input_schema
    assert list(tools["log"].input_schema["properties"]) == ["message"]
    assert tools["cancel"].input_schema["additionalProperties"] is False


def test_single_functions_methods_and_partials_can_be_named() -> None:
    targets = [
        f"office_tools:{name}"
        for name in ("Desk.find", "Desk.make", "front.find_all", "short", "convert")
    ]

    tools = {tool.name: tool for tool in listed(SPECIMENS, targets, agent="desk").tools}

    assert {name: list(tool.input_schema["properties"]) for name, tool in tools.items()} == {
        "find": ["name"],
        "make": ["size"],
        "find_all": ["name"],
        "short": ["amount", "to"],
        "convert": ["amount", "to"],
    }
    assert tools["short"].input_schema["required"] == ["amount"]
    assert tools["find"].id == "code/desk/find"


def test_parameters_that_a_framework_injects_are_left_out_and_told(
    module: Callable[..., Listing],
) -> None:
    listing = module(
        "import sqlite3\nclass Context: ...\n"
        "def ask(ctx: Context, query: str, db: sqlite3.Connection = None): ...\n"
        "def write(db: sqlite3.Connection, query: str): ...\n"
        "def call(back: 'Unknown'): ...\n"
    )

    (tool,) = listing.tools
    assert list(tool.input_schema["properties"]) == ["query"]
    assert tool.annotations == {"injected": ["ctx", "db"]}
    assert [row.where for row in listing.rejected] == ["given_module:write", "given_module:call"]
    assert (
        "its parameter 'db' has no JSON Schema: <class 'sqlite3.Connection'>"
        in listing.rejected[0].why
    )
    assert "name 'Unknown' is not defined" in listing.rejected[1].why


def test_names_that_only_a_type_checker_imports_spoil_nothing_else(
    module: Callable[..., Listing],
) -> None:
    listing = module(
        "from __future__ import annotations\nfrom typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from nowhere import Thing\n"
        "def make(size: int) -> Thing: ...\n"
        "def use(thing: Thing | None = None, size: float = float('nan')): ...\n"
    )

    make, use = listing.tools
    assert make.input_schema["properties"] == {"size": {"type": "integer"}}
    assert make.output_schema is None
    assert use.input_schema["properties"] == {"size": {"type": "number"}}


def test_all_of_a_module_is_what_its_own_list_says(module: Callable[..., Listing]) -> None:
    listing = module(
        "from os.path import join\n__all__ = ['_b', 'join', 'CONSTANT', 'gone']\nCONSTANT = 1\n"
        "def a(): ...\ndef _b(): ...\n"
    )

    assert [tool.name for tool in listing.tools] == ["_b", "join"]
    assert [row.where for row in listing.rejected] == ["given_module:gone"]


def test_names_that_pydantic_reserves_are_fine_as_parameters(
    module: Callable[..., Listing],
) -> None:
    (tool,) = module(
        "def f(schema: str, model_config: int, _private: bool, copy: list = []): ..."
    ).tools

    assert tool.input_schema["properties"] == {
        "schema": {"type": "string"},
        "model_config": {"type": "integer"},
        "_private": {"type": "boolean"},
        "copy": {"type": "array", "items": {}, "default": []},
    }


def test_a_module_that_changed_is_read_anew_and_leaves_nothing_behind(tmp_path: Path) -> None:
    path = list(sys.path)
    (tmp_path / "changing.py").write_text("def one(): ...\n")
    first = listed(tmp_path, "changing")
    (tmp_path / "changing.py").write_text("def one(): ...\ndef two(): ...\n")
    second = listed(tmp_path, "changing")

    assert [len(first.tools), len(second.tools)] == [1, 2]
    assert "changing" not in sys.modules
    assert sys.path == path


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("import nowhere_at_all", "ModuleNotFoundError: No module named 'nowhere_at_all'"),
        ("def f(:", "SyntaxError"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("1 / 0", "ZeroDivisionError"),
    ],
)
def test_a_module_that_cannot_be_imported_fails_with_the_cause(
    module: Callable[..., Listing], text: str, why: str
) -> None:
    with pytest.raises(SourceError, match="given_module cannot be imported") as caught:
        module(text)
    assert why in str(caught.value)
    assert caught.value.__cause__ is not None
    assert "given_module" not in sys.modules


def test_a_function_or_folder_that_is_not_there_fails(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"has no function 'nothing'. It has: .*book_room"):
        listed(SPECIMENS, "office_tools:nothing")
    with pytest.raises(SourceError, match="has no folder"):
        listed(tmp_path, "office_tools", search_path="nowhere")


def test_one_name_in_two_targets_is_listed_once() -> None:
    listing = listed(SPECIMENS, ["office_tools", "office_tools:cancel"])

    assert len(listing.tools) == 6
    assert "the same tool" in listing.rejected[0].why


def test_a_function_without_a_known_signature_is_rejected(module: Callable[..., Listing]) -> None:
    listing = module("__all__ = ['dict_update']\ndict_update = dict.update\n")

    assert listing.tools == ()
    assert "signature" in listing.rejected[0].why
