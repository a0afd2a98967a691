"""Python modules as sources: signatures and docstrings become schemas and descriptions."""

from pathlib import Path

import pytest

from pegboard.errors import SourceError

SPECIMENS = Path(__file__).parent / "specimens"


@pytest.fixture
def module(listed, tmp_path):
    """A function that writes a module and lists its functions."""

    def listing_of(text):
        types = "import os\nSource = str | os.PathLike[str] | type\n"
        (tmp_path / "given_types.py").write_text(types)
        (tmp_path / "given_module.py").write_text(text)
        return listed("python", target="given_module", search_path=".")

    return listing_of


@pytest.fixture
def office(listed):
    """A function that lists targets in the module `office_tools`, by default the whole module."""

    def listing_of(target="office_tools", **options):
        return listed("python", SPECIMENS, target=target, search_path=".", **options)

    return listing_of


def test_a_module_lists_its_public_functions_with_schemas_and_descriptions(office):
    listing = office()

    tools = {tool.name: tool for tool in listing.tools}
    assert list(tools) == ["book_room", "cancel", "convert", "count", "log", "search"]
    book = tools["book_room"]
    properties = book.input_schema["properties"]
    assert book.description == "Book a room.\n\nThe room is held for a day."
    assert book.input_schema["required"] == ["hours", "room"]
    assert properties["room"] == {"$ref": "#/$defs/Room", "description": "Which one."}
    assert properties["color"] == {"$ref": "#/$defs/Color", "default": "red"}
    assert sorted(book.input_schema["$defs"]) == ["Color", "Room"]
    query = tools["search"].input_schema["properties"]["query"]
    assert query["description"] == "Said by the signature."
    assert listing.rejected == ()
    assert [(agent.name, agent.description, agent.source) for agent in listing.agents] == [
        ("kit", "Tools of an office.", "office_tools")
    ]


def test_docstrings_output_schemas_and_keyword_arguments_are_read(office):
    tools = {tool.name: tool for tool in office().tools}

    def argument(tool, name):
        return tools[tool].input_schema["properties"][name]

    described = "For how long."  # the docstring styles of Google, numpy and Sphinx
    assert argument("book_room", "hours") == {
        "type": "integer",
        "description": described,
        "minimum": 1,
    }
    assert argument("convert", "amount") == {"type": "number", "description": "How much."}
    assert argument("convert", "to")["description"] == "The currency,\nby its code."
    assert argument("cancel", "number")["description"] == "The number of the booking."
    assert tools["book_room"].output_schema["$ref"] == "#/$defs/Room"
    assert tools["count"].output_schema == {
        "type": "object",
        "additionalProperties": {"type": "integer"},
    }
    assert tools["convert"].output_schema is None
    assert "additionalProperties" not in tools["log"].input_schema
    assert list(tools["log"].input_schema["properties"]) == ["message"]
    assert tools["cancel"].input_schema["additionalProperties"] is False


def test_single_functions_methods_and_partials_can_be_named(office):
    names = ("Desk.make", "front.find_all", "short", "convert")

    listing = office([f"office_tools:{name}" for name in names], agent="desk")

    assert {tool.id: list(tool.input_schema["properties"]) for tool in listing.tools} == {
        "kit/desk/make": ["size"],
        "kit/desk/find_all": ["name"],
        "kit/desk/short": ["amount", "to"],
        "kit/desk/convert": ["amount", "to"],
    }
    short = next(tool for tool in listing.tools if tool.name == "short")
    assert short.input_schema["required"] == ["amount"]


def test_parameters_that_a_framework_injects_are_left_out_and_noted(module):
    listing = module(
        "import sqlite3\nclass Context: ...\n"
        "def ask(ctx: Context, query: str, db: sqlite3.Connection = None): ...\n"
        "def call(ctx: 'RunContext[int]', query: str): ...\n"
    )

    ask, call = listing.tools
    assert (
        list(ask.input_schema["properties"]) == list(call.input_schema["properties"]) == ["query"]
    )
    assert (ask.annotations, call.annotations) == (
        {"injected": ["ctx", "db"]},
        {"injected": ["ctx"]},
    )


def test_arguments_without_names_are_left_out_and_noted(module):
    listing = module("def add(*items: int): ...\ndef say(text: str): ...\n")

    assert [list(tool.input_schema["properties"]) for tool in listing.tools] == [[], ["text"]]
    (notice,) = listing.notices
    assert (notice.kind, notice.where) == ("cut", "given_module:add")
    assert notice.why.startswith("*items: int is left out")


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        ("sqlite3.Connection", {"x-type": "sqlite3.Connection"}),
        ("'Unknown'", {"x-type": "Unknown"}),
        ("'no type at all'", {"x-type": "no type at all"}),
        ("5", {"x-type": "5"}),
        ("'Unknown | int'", {"type": "integer"}),
        ("int | IO[bytes]", {"type": "integer"}),
        ("'IO[bytes] | None'", {"x-type": "IO[bytes] | None"}),
        ("Annotated[int | IO[bytes], 'size']", {"type": "integer"}),
        ("list[str | IO[bytes]]", {"type": "array", "items": {"type": "string"}}),
        ("'list[IO[bytes]]'", {"x-type": "list[IO[bytes]]"}),
        ("dict[str, int | IO[bytes]]", {"additionalProperties": {"type": "integer"}}),
        ("'Fraction | str'", {"type": "string"}),
        ("'Source'", {"anyOf": [{"type": "string"}, {"format": "path"}]}),
    ],
)
def test_a_type_is_reduced_to_what_json_can_represent_or_named(module, hint, schema):
    listing = module(
        "import sqlite3\nfrom typing import IO, TYPE_CHECKING, Annotated\n"
        "if TYPE_CHECKING:\n    from given_types import Source\n    from nowhere import Fraction\n"
        f"def take(value: {hint}, size: int): ...\n"
    )

    (tool,) = listing.tools
    value = tool.input_schema["properties"]["value"]
    if "anyOf" in schema:
        assert [part["type"] for part in value["anyOf"]] == ["string", "string"]
    elif "x-type" in schema:
        assert value["x-type"].startswith(schema["x-type"])
    else:
        assert schema.items() <= value.items()
    assert tool.annotations == ({"loose": ["value"]} if "x-type" in schema else {})
    assert sorted(tool.input_schema["required"]) == ["size", "value"]


@pytest.mark.parametrize(
    ("text", "rejected"),
    [
        ("__all__ = ['fine', 7, None]", 2),
        ("__all__ = ['fine', 'gone']\ndef __getattr__(name): raise ValueError(name)", 1),
        ("__all__ = ['fine', 'gone']\ndef __getattr__(name): raise BaseException", 1),
        ("class Odd:\n  def __getattr__(self, name): raise BaseException\nodd = Odd()", 0),
        ("class Odd:\n  __class__ = property(lambda self: 1 / 0)\nodd = Odd()", 1),
    ],
)
def test_only_the_hostile_member_of_a_module_is_rejected(module, text, rejected):
    listing = module(f"def fine(): ...\n{text}\n")

    assert [tool.name for tool in listing.tools] == ["fine"]
    assert len(listing.rejected) == rejected


HOSTILE_ALL = "class A:\n  def __iter__(self): 1 / 0\n__all__ = A()"


@pytest.mark.parametrize("text", ["__all__ = 5", HOSTILE_ALL])
def test_a_module_whose_all_cannot_be_read_fails(module, text):
    with pytest.raises(SourceError, match="given_module has an __all__ that cannot be read"):
        module(f"def fine(): ...\n{text}\n")


def test_all_determines_the_public_functions_of_a_module(module):
    listing = module(
        "from os.path import join\n__all__ = ['_b', 'join', 'CONSTANT', 'gone', 'update']\n"
        "CONSTANT = 1\ndef a(): ...\ndef _b(): ...\nupdate = dict.update\n"
    )

    assert [tool.name for tool in listing.tools] == ["_b", "join"]
    gone, update = listing.rejected
    assert (gone.where, update.where) == ("given_module:gone", "given_module:update")
    assert "signature" in update.why


def test_a_package_lists_functions_imported_from_its_submodules(listed, tmp_path):
    (tmp_path / "office_kit" / "mail").mkdir(parents=True)
    (tmp_path / "office_kit" / "mail" / "__init__.py").write_text("def send(to: str): ...\n")
    (tmp_path / "office_kit" / "__init__.py").write_text(
        "from os.path import join\nfrom office_kit.mail import send\n"
    )

    listing = listed("python", target="office_kit", search_path=".")

    assert [tool.name for tool in listing.tools] == ["send"]
    assert listing.rejected == ()


@pytest.mark.parametrize("text", ["from os.path import join\n", "class Desk: ...\n", ""])
def test_a_module_that_defines_no_functions_fails_with_the_next_step(module, text):
    with pytest.raises(
        SourceError, match=r"given_module defines no public functions\. .* __all__, or"
    ):
        module(text)


def test_names_that_pydantic_reserves_may_be_parameters(module):
    (tool,) = module(
        "def f(schema: str, model_config: int, _private: bool, copy: list = []): ..."
    ).tools

    assert tool.input_schema["properties"] == {
        "schema": {"type": "string"},
        "model_config": {"type": "integer"},
        "_private": {"type": "boolean"},
        "copy": {"type": "array", "items": {}, "default": []},
    }


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("import nowhere_at_all", "ModuleNotFoundError: No module named 'nowhere_at_all'"),
        ("def f(:", "SyntaxError"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("1 / 0", "ZeroDivisionError"),
    ],
)
def test_a_module_that_cannot_be_imported_fails_with_the_cause(module, text, why):
    with pytest.raises(SourceError, match="given_module cannot be imported") as caught:
        module(text)
    assert why in str(caught.value)
    assert caught.value.__cause__ is not None


def test_a_missing_function_or_folder_fails(listed, office):
    with pytest.raises(SourceError, match=r"has no function 'nothing'. It has: .*book_room"):
        office("office_tools:nothing")
    with pytest.raises(SourceError, match="folders that do not exist"):
        listed("python", target="office_tools", search_path="nowhere")


def test_a_function_named_by_two_targets_is_listed_once(office):
    listing = office(["office_tools", "office_tools:cancel"])

    assert len(listing.tools) == 6
    assert "the same tool" in listing.rejected[0].why


DOCSTRINGS = {
    "one field": """Do it.

    :param size: How much.
    """,
    "one field behind the summary": """Do it.
    :param size: How much.""",
    "one field with its type": """Do it.

    :param int size: How much.
    """,
    "a field and a result": """Do it.

    :param size: How much.
    :returns: The size.""",
    "Epydoc": """Do it.

    @param size: How much.
    @return: The size.
    """,
    "Google with a dash": """Do it.

    Arguments:
      - size: How much.
    """,
    "Google with a code name": """Do it.

    Args:
        `size` (int): How much.""",
}
WITHOUT_SUMMARY = {
    "a field": """:param size: How much.""",
    "Google in the first line": """Args:
        size: How much.
    """,
    "Google in the second line": """
    Args:
        size: How much.
    """,
    "Google and a result": """Args:
        size (int): How much.

    Returns:
        The size.
    """,
    "Google, other arguments": """Keyword Args:

        size: How much.
    """,
    "numpy": """Parameters
    ----------
    size : int
        How much.
    """,
}


@pytest.mark.parametrize("text", DOCSTRINGS.values(), ids=DOCSTRINGS)
def test_a_docstring_describes_its_parameter_in_every_style(module, text):
    (tool,) = module(f'def do(size: int):\n    """{text}"""\n').tools

    assert tool.description == "Do it."
    assert tool.input_schema["properties"]["size"]["description"] == "How much."


@pytest.mark.parametrize("text", WITHOUT_SUMMARY.values(), ids=WITHOUT_SUMMARY)
def test_a_docstring_without_a_summary_describes_its_parameter(module, text):
    (tool,) = module(f'def do(size: int):\n    """{text}"""\n').tools

    assert tool.description == ""
    assert tool.input_schema["properties"]["size"]["description"] == "How much."


@pytest.mark.parametrize(
    "field", [":returns: The size.", "@return: The size.", ":raises OSError: x"]
)
def test_a_result_alone_stays_in_the_description(module, field):
    (tool,) = module(f'def do(size: int):\n    """Do it.\n\n    {field}"""\n').tools

    assert tool.description == f"Do it.\n\n{field}"


def test_items_of_a_heading_keep_their_further_lines_and_other_texts_stay(module):
    args, steps = module(
        'def args(a: str, b: str):\n    """Args:\n        a: One\n            line more.\n'
        '        b: Two.\n    """\n'
        'def steps():\n    """\n    Do it:\n        first\n        then\n    """\n'
    ).tools

    described = {
        key: value["description"] for key, value in args.input_schema["properties"].items()
    }
    assert described == {"a": "One\nline more.", "b": "Two."}
    assert steps.description == "Do it:\nfirst\nthen"


TYPED_DICTS = """
from __future__ import annotations
import sqlite3
from typing import TYPE_CHECKING, NotRequired, Optional, Required, TypedDict
if TYPE_CHECKING:
    from decimal import Decimal
class Point(TypedDict):
    x: int
class Options(TypedDict, total=False):
    '''How it is done.'''
    urgent: Required[bool]
    price: Decimal
    at: Point
    points: list[Point]
    connection: sqlite3.Connection
class Base(TypedDict):
    name: str
class Node(Base):
    note: NotRequired[str]
    children: list[Node]
class Hidden(TypedDict):
    connection: sqlite3.Connection
"""


@pytest.mark.parametrize("hint", ["Options | None", "Optional[Options]", "Options"])
def test_an_optional_typed_dict_keeps_its_keys(module, hint):
    (tool,) = module(f"{TYPED_DICTS}\ndef do(options: {hint} = None): ...\n").tools

    options = tool.input_schema["$defs"]["Options"]
    assert tool.annotations == {}
    assert sorted(options["properties"]) == ["at", "points", "price", "urgent"]
    assert options["required"] == ["urgent"]
    assert options["description"] == "How it is done."
    assert options["properties"]["at"] == {"$ref": "#/$defs/Point"}
    assert tool.input_schema["$defs"]["Point"]["required"] == ["x"]


def test_a_required_typed_dict_keeps_inherited_keys_and_may_contain_itself(module):
    (tool,) = module(f"{TYPED_DICTS}\ndef do(nodes: list[Node]): ...\n").tools

    node = tool.input_schema["$defs"]["Node"]
    assert sorted(node["properties"]) == ["children", "name", "note"]
    assert sorted(node["required"]) == ["children", "name"]
    assert node["properties"]["children"]["items"]["type"] == "object"


def test_a_typed_dict_that_requires_what_json_cannot_represent_is_named(module):
    (tool,) = module(f"{TYPED_DICTS}\ndef do(hidden: Hidden): ...\n").tools

    assert tool.annotations == {"loose": ["hidden"]}
