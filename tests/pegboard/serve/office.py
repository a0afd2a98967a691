"""Python functions of all kinds, and a gateway that calls them."""

import asyncio
import re
import sys

import pytest

from pegboard.board import Board
from pegboard.records import Tool, tool_id
from pegboard.serve.gateway import Gateway
from pegboard.serve.settings import GatewaySettings, ServeSettings

MODULE = r"""
import asyncio
import os
import sys
import time
from dataclasses import dataclass
from datetime import date
from enum import Enum
from os import system
from subprocess import run
from typing import Annotated

from helpers_of_{name} import helped
from pydantic import AfterValidator, Field

remove = os.remove

class Helper:
    def method(self): return "method"
    def __call__(self): return "called"

class Silent(Exception):
    def __str__(self): raise ValueError

class Colour(Enum):
    RED = "red"

@dataclass
class Order:
    due: date
    colours: tuple[Colour, ...]

helper = Helper()

def fine():
    print("This is no message.")
    return "fine"
def _private(): return "private"
def leave(): sys.exit(3)
def interrupt(): raise KeyboardInterrupt
def fall_silent(): raise Silent
def halve(): return "a\ud800b"
def halve_in_an_object(): return {"half\udc00": ["\ud800"], "deep": {"text": "\ud83d!"}}
def count_wrongly(): return {"none": float("nan"), "all": [float("inf"), -float("inf"), 1.5]}
def fail_halfway(): raise ValueError("\ud800")
def circle():
    values = []
    values.append(values)
    return values
async def leave_later(): sys.exit(3)
async def close_later(): raise GeneratorExit
def process(): return str(os.getpid())
def key(): return os.environ["OFFICE_API_KEY"]
def hang(): time.sleep(600)
async def block(path):
    open(path, "w").close()
    time.sleep(600)
def place(order: Order, limit: int = Field(5, le=9)):
    return {"year": order.due.year, "colour": order.colours[0].name, "limit": limit}
async def paint(colour: Colour): return colour
def numbers(): yield 1
def positional(first, /): return first
"""


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
            gateway = Gateway(settings, Board.from_tools([]))

            async def call(function, schema=None, /, agent="kit/kit", **arguments):
                identity = tool_id(agent, function)
                schema = schema or {}
                tool = Tool(identity, "kit", agent, function, input_schema=schema)
                return await gateway.caller.call(
                    gateway.access.clients.of_headers({}), tool, arguments
                )

            try:
                return await block(call, table)
            finally:
                await gateway.close()

        return asyncio.run(run())

    return opened


async def called(gateway, name, arguments):
    """The result of a call without MCP, by a client without credentials."""
    client = gateway.access.clients.of_headers({})
    view = await gateway.access.view(client)
    tool = await view.tool_named(name)
    return await gateway.caller.call(client, tool, arguments)


def text_of(result):
    return result.content[0].text
