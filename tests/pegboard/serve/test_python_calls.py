"""Calls to Python functions, only where the configuration allows them."""

import asyncio
import json
import sys
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

from pydantic import AfterValidator, BaseModel, Field

class Colour(Enum):
    RED = "red"

@dataclass
class Size:
    width: int
    height: int = 2

class Order(BaseModel):
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
def limited(limit: int = Field(5, le=9)): return limit
def picky(value: Annotated[int, AfterValidator(refuse)]): return "called"
async def paint_later(colour: Colour): return colour
def numbers(): yield 1
def later_painted(colour: Colour): return paint_later(colour)
def positional(first, /): return first
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
                tool = await (await gateway.views.of(client)).tool(name)
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
        ("fall_silent", "Silent"),
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
    "function", ["halve", "halve_in_an_object", "count_wrongly", "fail_halfway", "circle"]
)
def test_every_result_fits_into_a_message(office, function):
    async def block(call, table):
        return await call(function)

    message = office(block).model_dump(by_alias=True, exclude_none=True)

    json.dumps(message, ensure_ascii=False, allow_nan=False).encode()


@pytest.mark.parametrize(
    ("function", "arguments", "expected"),
    [
        ("paint", {"colour": "red"}, "RED"),
        ("paint", {"colour": "red", "brush": "red"}, "RED"),
        ("paint_later", {"colour": "red"}, "red"),
        ("later_painted", {"colour": "red"}, "red"),
        ("numbers", {}, "[1]"),
        ("area", {"size": {"width": 3}}, "6"),
        ("place", {"order": {"due": "2026-01-02", "sizes": [{"width": 1}]}}, "2027"),
        ("later", {"day": "2026-01-31"}, "2026-02-01"),
        ("later", {"day": "2026-01-31", "by": "P2D"}, "2026-02-02"),
        ("suffix", {"path": "a/b.txt"}, ".txt"),
        ("unique", {"values": [7]}, "7"),
        ("price", {"amount": "1.5"}, '{"width":3,"height":2}'),
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
        order = {"due": "soon", "sizes": [{}]}
        return [
            text_of(await call("place", order=order)),
            text_of(await call("picky", value=1)),
            text_of(await call("positional", first=1)),
        ]

    several, picky, positional = office(block, TYPED)

    assert "order.due" in several
    assert "order.sizes.0.width" in several
    assert "it was not called" in picky
    assert "Value error, not today" in picky
    assert "cannot be called: ValueError: Functions with positional-only" in positional


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


@pytest.mark.parametrize("function", ["hang", "block"])
def test_functions_that_hang_hold_up_no_other_work_of_the_gateway(office, function):
    """Neither the event loop nor its executor, which searches use."""

    async def block(call, table):
        await call("fine")
        module = sys.modules[table["target"]]
        hanging = [asyncio.create_task(call(function)) for _ in range(40)]
        for _ in range(16 if function == "hang" else 1):
            await asyncio.to_thread(module.STARTED.acquire)
        assert await asyncio.to_thread(lambda: "answered") == "answered"
        done = [task.done() for task in hanging]
        module.GO_ON.set()
        await asyncio.gather(*hanging)
        return done

    assert not any(office(block, concurrency=16))


def test_threads_that_never_end_are_counted_and_said(office):
    async def block(call, table):
        await call("fine")
        module = sys.modules[table["target"]]
        for _ in range(2):
            given_up = asyncio.create_task(call("hang"))
            await asyncio.to_thread(module.STARTED.acquire)
            given_up.cancel()
            await asyncio.wait([given_up])
        full = await call("fine")
        module.GO_ON.set()
        while text_of(free := await call("fine")) != "fine":
            await asyncio.sleep(0.01)
        return full, free

    full, free = office(block, concurrency=2)

    assert "all threads of 'kit' are occupied" in text_of(full)
    assert text_of(free) == "fine"


def test_a_coroutine_whose_call_is_given_up_is_cancelled(office):
    async def block(call, table):
        await call("fine")
        module = sys.modules[table["target"]]
        task = asyncio.create_task(call("wait"))
        await asyncio.to_thread(module.STARTED.acquire)
        task.cancel()
        await asyncio.to_thread(module.GO_ON.wait)
        await asyncio.wait([task])
        return task.cancelled()

    assert office(block)
