"""Calls to Python functions, only where the configuration allows them."""

import asyncio
import gc
import json
from pathlib import Path

import pytest

from catalogs.shared.kinds import source_kind
from catalogs.shared.listing import ListingBuilder
from pegboard.records import Tool
from tests.pegboard.serve.office import MODULE, text_of

TYPED = """
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

class Colour(Enum):
    RED = "red"

@dataclass
class Size:
    width: int
    height: int = 2

class Order(BaseModel):
    model_config = ConfigDict(strict=True)
    due: date
    sizes: tuple[Size, ...]

def refuse(value):
    raise ValueError("not today")

def paint(colour: Colour, *, brush: Colour | None = None): return colour.name
def area(size: Size): return size.width * size.height
def place(order: Order): return order.due.year + order.sizes[0].width
def later(day: "date", by: timedelta = timedelta(1)): return day + by
def suffix(path: Path): return path.suffix
def unique(values: set[int]): return values.pop()
def price(amount: Decimal): return Size(int(amount * 2))
def ordered(first, second=2, third=3, /, *others, last=4, **more):
    return [first, second, third, others, last, more]
def limited(limit: int = Field(5, le=9)): return limit
def picky(value: Annotated[int, AfterValidator(refuse)]): return "called"
async def paint_later(colour: Colour): return colour
"""
DEFERRED = """
import functools

def plain(function):
    @functools.wraps(function)
    def called(*args, **kwargs): return function(*args, **kwargs)
    return called

@plain
async def wrapped(name: str): return {"name": name}
@plain
async def failing(): raise ValueError("no")
def later(): return wrapped("later")
async def twice(): return wrapped("twice")
def numbers(): yield 1
async def ticks(): yield 1
def mapped(): return map(str, [1])
def inside(): return {"values": (number for number in [1])}
def listed(): return [1]
"""
UPSTREAM = Path(__file__).parent / "upstream"


@pytest.fixture
def call(desk_uri, gateway_of):
    """A function: the result of one call of a function."""

    def called(name, arguments=None, **serve):
        table = {
            "type": "python",
            "target": "office_functions",
            "search_path": str(UPSTREAM),
        }

        async def run():
            async with gateway_of(desk_uri, {"office": table}, **serve) as gateway:
                client = gateway.client({})
                tool = await (await gateway.catalogue.view(client)).tool(name)
                return await gateway.caller.call(client, tool, arguments or {})

        return asyncio.run(run())

    return called


def test_functions_and_coroutines_are_called(call):
    added = call("add_numbers", {"first": 2}, python=["office"])
    greeting = call("greet", {"name": "Ana"}, python=["office"])

    assert added.structured_content == {"sum": 3}
    assert greeting.content[0].text == "Hello, Ana!"


def test_an_exception_is_an_error_of_the_tool(call):
    result = call("spill_ink", python=["office"])

    assert (result.is_error, result.content[0].text) == (True, "ValueError: the ink is gone")


def test_no_function_runs_that_the_configuration_does_not_allow(call):
    result = call("add_numbers", {"first": 2})

    assert result.is_error
    assert "[serve] python" in result.content[0].text


@pytest.mark.parametrize(
    ("ending", "target"),
    [
        ("", "{name}"),
        ("__all__ = ['fine', 'helped', 'Helper']", "{name}"),
        ("", "{name}:fine"),
        ("", "{name}:helper"),
    ],
)
def test_only_functions_run_that_the_source_lists(office, tmp_path, ending, target):
    names = ["fine", "helped", "helper", "Helper", "_private", "remove", "run", "system"]
    names += ["method", "Helper.method", "helper.method", "__import__", "__dict__.get", "os.system"]

    async def block(call, table):
        builder = ListingBuilder("kit", tmp_path)
        source = source_kind("python")
        source.read(builder, source.options.model_validate(table))
        listed = {tool.name for tool in builder.build().tools}
        texts = {name: text_of(await call(name)) for name in names}
        return listed, texts

    listed, texts = office(block, MODULE + ending, target)

    refused = {name for name, text in texts.items() if "is not in the modules" in text}
    assert set(names) - refused == listed & set(names) != set()


def test_arguments_of_a_framework_are_refused_whatever_the_release_says(office):
    async def block(call, table):
        return await call("inject", context="mine")

    assert "takes arguments from its framework" in text_of(office(block))


def test_a_release_that_contradicts_itself_about_a_tool_calls_nothing(office, desk_uri, gateway_of):
    """Rules decide by the id; what is called is said by catalog, agent and name."""
    tools = [
        Tool("kit/kit/allowed", "kit", "kit/kit", "fine"),
        Tool("shop/kit/fine", "kit", "shop/kit", "fine"),
        Tool("shop/shop/fine", "kit", "shop/shop", "fine"),
    ]

    async def run():
        table = {"type": "python", "target": "office_functions", "search_path": str(UPSTREAM)}
        async with gateway_of(desk_uri, {"kit": table}, python=["kit"]) as gateway:
            client = gateway.client({})
            return [text_of(await gateway.caller.call(client, tool, {})) for tool in tools]

    assert all("contradicts itself" in text for text in asyncio.run(run()))


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        ("leave", "SystemExit: 3"),
        ("interrupt", "KeyboardInterrupt: "),
        ("stop", "StopIteration: "),
        ("fall_silent", "Silent"),
        ("circle", "ValueError: Circular reference detected"),
        ("leave_later", "SystemExit: 3"),
        ("close_later", "GeneratorExit: "),
        ("cancel_itself", "CancelledError: "),
    ],
)
def test_whatever_a_function_raises_ends_its_call_alone(office, function, expected):
    async def block(call, table):
        return await call(function), await call("fine")

    failed, after = office(block)

    assert (failed.is_error, text_of(failed), text_of(after)) == (True, expected, "fine")


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        ("halve", None),
        ("halve_in_an_object", {"half?": ["?"], "deep": {"text": "?!"}}),
        ("count_wrongly", {"none": None, "all": [None, None, 1.5]}),
        ("fail_halfway", None),
    ],
)
def test_every_result_fits_into_a_message(office, function, expected):
    async def block(call, table):
        return await call(function)

    result = office(block)

    message = result.model_dump(by_alias=True, exclude_none=True)
    json.dumps(message, ensure_ascii=False, allow_nan=False).encode()
    assert result.structured_content == expected


def test_a_result_that_is_nested_deeply_is_answered(office):
    async def block(call, table):
        return await call("nest")

    assert text_of(office(block)).startswith('{"a": [{"a"')


@pytest.mark.parametrize(
    ("function", "arguments", "expected"),
    [
        ("paint", {"colour": "red"}, "RED"),
        ("paint", {"colour": "red", "brush": "red"}, "RED"),
        ("paint_later", {"colour": "red"}, '"red"'),
        ("area", {"size": {"width": 3}}, "6"),
        ("place", {"order": {"due": "2026-01-02", "sizes": [{"width": 1}]}}, "2027"),
        ("later", {"day": "2026-01-31"}, '"2026-02-01"'),
        ("later", {"day": "2026-01-31", "by": "P2D"}, '"2026-02-02"'),
        ("suffix", {"path": "a/b.txt"}, ".txt"),
        ("unique", {"values": [7]}, "7"),
        ("price", {"amount": "1.5"}, '{"width": 3, "height": 2}'),
        ("ordered", {"first": 1}, "[1, 2, 3, [], 4, {}]"),
        ("ordered", {"first": 1, "third": 5, "more": 6}, '[1, 2, 5, [], 4, {"more": 6}]'),
        ("limited", {}, "5"),
    ],
)
def test_functions_are_called_with_values_of_their_types(
    office, tmp_path, function, arguments, expected
):
    async def block(call, table):
        builder = ListingBuilder("kit", tmp_path)
        source = source_kind("python")
        source.read(builder, source.options.model_validate(table))
        schemas = {tool.name: tool.input_schema for tool in builder.build().tools}
        return await call(function, schemas[function], **arguments)

    assert text_of(office(block, TYPED)) == expected


def test_arguments_that_a_type_refuses_are_named_and_nothing_is_called(office):
    async def block(call, table):
        return await call("place", order={"due": "soon", "sizes": [{}]}), await call(
            "picky", value=1
        )

    several, one = office(block, TYPED)

    assert several.is_error
    assert "order.due: " in text_of(several)
    assert "order.sizes.0.width: " in text_of(several)
    assert text_of(one).endswith("it was not called:\n- value: Value error, not today")


@pytest.mark.parametrize(
    ("function", "arguments", "expected"),
    [
        ("wrapped", {"name": "x"}, '{"name": "x"}'),
        ("failing", {}, "ValueError: no"),
        ("later", {}, '{"name": "later"}'),
        ("twice", {}, "The result is of type coroutine"),
        ("numbers", {}, "The result is of type generator"),
        ("ticks", {}, "The result is of type async_generator"),
        ("mapped", {}, "The result is of type map"),
        ("inside", {}, "The result is of type generator"),
        ("listed", {}, "[1]"),
    ],
)
def test_no_result_is_what_stands_for_values_to_come(office, function, arguments, expected):
    async def block(call, table):
        return await call(function, **arguments)

    result = office(block, DEFERRED)
    gc.collect()  # a coroutine that was left behind would warn here

    assert text_of(result).startswith(expected)
    assert result.is_error == (function not in ("wrapped", "later", "listed"))


@pytest.mark.parametrize("agent", [None, "other", " a/b "])
def test_functions_are_called_only_under_the_agent_of_the_configuration(office, tmp_path, agent):
    """Else a release chooses the id by which rules decide."""

    async def block(call, table):
        builder = ListingBuilder("kit", tmp_path)
        source = source_kind("python")
        source.read(builder, source.options.model_validate(table))
        listed = {tool.agent for tool in builder.build().tools}
        agents = ["kit/kit", "kit/other", "kit/a%2Fb", "kit/third"]
        texts = {name: text_of(await call("fine", agent=name)) for name in agents}
        return listed, texts

    listed, texts = office(block, agent=agent)

    assert {name for name, text in texts.items() if text == "fine"} == listed
    assert sum("was not called: pegboard.toml has" in text for text in texts.values()) == 3


@pytest.mark.parametrize("error", ["SystemExit(3)", "KeyboardInterrupt", "ValueError('/srv/x')"])
def test_a_module_that_cannot_be_imported_ends_its_call_alone(office, caplog, error):
    async def block(call, table):
        return await call("fine")

    result = office(block, f"raise {error}")

    assert text_of(result) == "The function kit/kit/fine is not in the modules of 'kit'."
    assert error.partition("(")[0] in caplog.text
