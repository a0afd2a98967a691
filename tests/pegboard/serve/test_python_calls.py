"""Calls to Python functions, only where the configuration allows them."""

import asyncio
import json
import re
import sys
import types
from pathlib import Path

import pytest

from catalogs.shared.kinds import source_kind
from catalogs.shared.listing import ListingBuilder
from pegboard.board import Board
from pegboard.records import Tool, tool_id
from pegboard.serve.calls.python import PythonCalls
from pegboard.serve.calls.threads import Threads
from pegboard.serve.gateway import Gateway
from pegboard.serve.settings import CallSettings, GatewaySettings, ServeSettings

MODULE = r"""
import asyncio
import os
import subprocess
import sys
import threading
import time
from os import system
from subprocess import run
from helpers_of_{name} import helped

remove = os.remove
STARTED, GO_ON = threading.Semaphore(0), threading.Event()

class Helper:
    def method(self): return "method"
    def __call__(self): return "called"

class Context: ...

class Silent(Exception):
    def __str__(self): raise ValueError

helper = Helper()

def fine(): return "fine"
def _private(): return "private"
def inject(context: Context): return "injected"
def leave(): sys.exit(3)
def interrupt(): raise KeyboardInterrupt
def stop(): raise StopIteration
def fall_silent(): raise Silent
def halve(): return "a\ud800b"
def halve_in_an_object(): return {"half\udc00": ["\ud800"], "deep": {"text": "\ud83d!"}}
def count_wrongly(): return {"none": float("nan"), "all": [float("inf"), -float("inf"), 1.5]}
def fail_halfway(): raise ValueError("\ud800")
def nest():
    value = {}
    for _ in range(300):
        value = {"a": [value]}
    return value
def circle():
    values = []
    values.append(values)
    return values
async def leave_later(): sys.exit(3)
async def close_later(): raise GeneratorExit
async def cancel_itself(): raise asyncio.CancelledError
async def leave_in_a_task():
    asyncio.create_task(leave_later())
    await asyncio.sleep(60)
RUNNING = []
async def count():
    RUNNING.append(1)
    await asyncio.sleep(0.01)
    most = len(RUNNING)
    RUNNING.pop()
    return str(most)
def hang():
    STARTED.release()
    GO_ON.wait()
    return "went on"
async def block():
    STARTED.release()
    GO_ON.wait()
async def wait():
    STARTED.release()
    try:
        await asyncio.sleep(600)
    finally:
        GO_ON.set()
"""
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


@pytest.fixture
def office(tmp_path, monkeypatch):
    """A function: the result of a block with a gateway to functions of a module, its name filled
    in, and a way to call one as a release names it.
    """
    monkeypatch.setattr(sys, "path", list(sys.path))
    name = "of_" + re.sub(r"\W", "_", tmp_path.name)
    helpers = "def helped(): return 'helped'\n"
    (tmp_path / f"helpers_of_{name}.py").write_text(helpers)

    def opened(block, text=MODULE, target="{name}", agent=None, **limits):
        (tmp_path / f"{name}.py").write_text(text.replace("{name}", name))
        table = {
            "type": "python",
            "target": target.replace("{name}", name),
            "search_path": str(tmp_path),
            **({"agent": agent} if agent else {}),
        }
        serve = ServeSettings.model_validate({"python": ["kit"], "calls": limits})

        async def run():
            settings = GatewaySettings(serve=serve, catalogs={"kit": table})
            gateway = Gateway.open(settings, Board.from_tools([]))

            async def call(function, schema=None, /, agent="kit/kit", **arguments):
                identity, schema = tool_id(agent, function), schema or {}
                tool = Tool(identity, "kit", agent, function, input_schema=schema)
                return await gateway.caller.call(gateway.client({}), tool, arguments)

            try:
                return await block(call, table)
            finally:
                await gateway.close()

        return asyncio.run(run())

    return opened


def text_of(result):
    return result.content[0].text


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
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
def test_no_result_is_what_stands_for_values_to_come(office, function, arguments, expected):
    async def block(call, table):
        return await call(function, **arguments)

    result = office(block, DEFERRED)

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


def test_a_task_that_exits_ends_its_event_loop_and_the_next_call_gets_a_new_one(office):
    async def block(call, table):
        ended = asyncio.create_task(call("leave_in_a_task"))
        while text_of(await call("cancel_itself")) != "CancelledError: ":
            pass
        return await ended, await call("cancel_itself")

    ended, after = office(block, timeout=3)

    assert "did not answer" in text_of(ended)
    assert text_of(after) == "CancelledError: "


def test_a_coroutine_that_its_event_loop_left_behind_ends_quietly(tmp_path):
    @types.coroutine
    def waiting():
        yield

    calls = PythonCalls({}, (), tmp_path, CallSettings())
    left_behind = calls._await(waiting)
    left_behind.send(None)

    left_behind.close()  # as the garbage collector does, where no loop runs


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


def test_no_more_coroutines_run_at_once_than_are_allowed(office):
    async def block(call, table):
        return await asyncio.gather(*(call("count") for _ in range(12)))

    results = office(block, concurrency=3)

    assert max(int(text_of(result)) for result in results) == 3


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


def test_a_thread_that_cannot_start_leaves_its_place(monkeypatch):
    async def run():
        threads = Threads(1)
        with monkeypatch.context() as patch:
            patch.setattr("threading.Thread.start", lambda self: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                await threads.run(int)
        return await threads.run(int)

    assert asyncio.run(run()) == 0
