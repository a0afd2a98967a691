"""Calls to Python functions, only where the configuration allows them."""

import asyncio
import json
import sys

import pytest

from catalogs.shared.kinds import source_kind
from catalogs.shared.listing import ListingBuilder
from pegboard.records import Tool
from pegboard.serve.calls.caller import Caller
from pegboard.serve.observer import Observer
from pegboard.serve.settings import GatewaySettings
from tests.pegboard.serve.office import MODULE, text_of

TYPED = """
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Annotated

from fastmcp import Context
from pydantic import AfterValidator, Field

class Colour(Enum):
    RED = "red"

@dataclass
class Order:
    due: date
    colours: tuple[Colour, ...]

def refuse(value):
    raise ValueError("not today")

def place(order: Order, limit: int = Field(5, le=9)):
    return {"year": order.due.year, "colour": order.colours[0].name, "limit": limit}
async def paint(colour: Colour): return colour
def paint_later(colour: Colour): return paint(colour)
def numbers(): yield 1
def picky(value: Annotated[int, AfterValidator(refuse)]): return "called"
def positional(first, /): return first
def inject(context: Context): return "injected"
"""


def test_no_function_runs_that_the_configuration_does_not_allow():
    table = {"type": "python", "target": "office_functions"}
    caller = Caller(GatewaySettings(catalogs={"kit": table}), Observer())

    why = caller.can_call(Tool("kit/kit/fine", "kit", "kit/kit", "fine"))

    assert "[serve] python" in why


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


@pytest.mark.parametrize(
    ("identity", "agent"),
    [
        ("kit/kit/allowed", "kit/kit"),
        ("shop/kit/fine", "shop/kit"),
        ("shop/shop/fine", "shop/shop"),
    ],
)
def test_a_release_that_contradicts_itself_about_a_tool_calls_nothing(identity, agent):
    """Rules decide by the id; what is called is said by catalog, agent and name."""
    caller = Caller(GatewaySettings(), Observer())

    assert "contradicts itself" in caller.can_call(Tool(identity, "kit", agent, "fine"))


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
        ("place", {"order": {"due": "2026-01-02", "colours": ["red"]}},
         '{"year":2026,"colour":"RED","limit":5}'),
        ("paint", {"colour": "red"}, "red"),
        ("paint_later", {"colour": "red"}, "red"),
        ("numbers", {}, "[1]"),
        ("place", {"order": {"due": "soon", "colours": []}}, "order.due\n"),
        ("picky", {"value": 1}, "it was not called: "),
        ("positional", {"first": 1}, "cannot be called: ValueError: Functions with positional"),
        ("inject", {"context": "mine"}, "takes arguments from its framework"),
    ],
)  # fmt: skip
def test_functions_are_called_with_values_of_their_types(office, function, arguments, expected):
    async def block(call, table):
        return await call(function, **arguments)

    assert expected in text_of(office(block, TYPED))


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
