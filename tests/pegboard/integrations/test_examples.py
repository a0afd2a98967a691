"""The examples run without a key, and the blocks of the how-to page run as they are written."""

import contextlib
import importlib
import importlib.util
import os
import re
import runpy
from pathlib import Path

import pytest

import pegboard

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples" / "agents"
PAGE = ROOT / "docs" / "how-to" / "use-with-an-agent-framework.md"
PACKAGES = {
    "openai_responses": "openai",
    "openai_agents": "agents",
    "anthropic_messages": "anthropic",
    "pydantic_ai_agent": "pydantic_ai",
    "fastmcp_server": "fastmcp",
    "langchain_agent": "langchain",
    "llama_index_agent": "llama_index",
    "haystack_agent": "haystack",
    "google_adk_agent": "google.adk",
    "litellm_hook": "litellm",
}
"""What each example needs."""
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
CLIENTS = {
    "openai": ("OpenAI", "openai_responses"),
    "anthropic": ("Anthropic", "anthropic_messages"),
}
"""The client that a block makes, and the example that has a scripted one."""
NEEDED = re.compile(
    r"^from (agents|pydantic_ai|fastmcp|langchain|llama_index|haystack|google)\b"
    r"|pegboard\.integrations\.(fastmcp|litellm|anthropic|openai)\b",
    re.MULTILINE,
)
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def is_missing(package):
    with contextlib.suppress(ModuleNotFoundError):
        return importlib.util.find_spec(package) is None
    return True


def without_keys(monkeypatch):
    """Let the modules beside the examples be imported, in an environment without keys."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    for name in [*os.environ]:
        if name.endswith("_API_KEY"):
            monkeypatch.delenv(name)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PACKAGES)
def test_an_example_finds_and_calls_a_tool_without_a_key(name, monkeypatch, capsys):
    if is_missing(PACKAGES[name]):
        pytest.skip(f"{PACKAGES[name]} is not installed")
    without_keys(monkeypatch)

    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")

    expected = (
        "sent: a_tool_of_the_application book_room"
        if name == "litellm_hook"
        else ("Room 4 is booked on Monday for 4.")
    )
    assert expected in capsys.readouterr().out


def test_every_example_is_run():
    assert {path.stem for path in EXAMPLES.glob("*.py")} - {"office"} == set(PACKAGES)


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_a_block_of_the_page_runs_as_it_is_written(block, monkeypatch):
    for packages in NEEDED.findall(block):
        package = next(filter(None, packages))
        needed = {"google": "google.adk"}.get(package, package)
        if is_missing(needed):
            pytest.skip(f"{needed} is not installed")
    without_keys(monkeypatch)
    office = importlib.import_module("office")
    monkeypatch.setattr(pegboard, "open", lambda _: office.open_board())
    for package, (client, example) in CLIENTS.items():
        if f"import {package}\n" in block:
            scripted = importlib.import_module(example).client()
            monkeypatch.setattr(f"{package}.{client}", lambda scripted=scripted: scripted)
    names = {} if block == BLOCKS[0] else stand_ins(block, office)

    exec(compile(block, str(PAGE), "exec"), names)


def stand_ins(block, office):
    """What a block takes from the page's first block and from the reader's program."""
    from pegboard.integrations.board_search import BoardSearch

    names = {"search": BoardSearch(office.open_board())}
    if "function_tools" in block:
        from agents import function_tool

        names["function_tools"] = [function_tool(each) for each in office.FUNCTIONS]
    elif "langchain_tools" in block:
        from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
        from langchain_core.tools import StructuredTool

        names["model"] = GenericFakeChatModel(messages=iter(()))
        names["langchain_tools"] = [StructuredTool.from_function(each) for each in office.FUNCTIONS]
    elif "llama_index_tools" in block:
        from llama_index.core.llms.mock import MockFunctionCallingLLM
        from llama_index.core.tools import FunctionTool

        names["llm"] = MockFunctionCallingLLM()
        names["llama_index_tools"] = [FunctionTool.from_defaults(each) for each in office.FUNCTIONS]
    elif "haystack_tools" in block:
        from haystack.tools import create_tool_from_function

        names["generator"] = importlib.import_module("haystack_agent").Script()
        names["haystack_tools"] = [create_tool_from_function(each) for each in office.FUNCTIONS]
    elif "adk_tools" in block:
        from google.adk.tools import FunctionTool

        names["model"] = "gemini-2.5-flash"
        names["adk_tools"] = [FunctionTool(each) for each in office.FUNCTIONS]
    elif "server.add_transform" in block:
        from fastmcp import FastMCP

        names["server"] = FastMCP("office")
    elif "pydantic_ai" in block:
        from pydantic_ai.models.test import TestModel

        names |= {"model": TestModel(), "functions": office.FUNCTIONS}
    return names
