"""Google ADK: a real runner with a scripted model; sessions share nothing."""

import asyncio

import pytest

from pegboard.integrations.board_search import BoardSearch
from tests.pegboard.integrations.boards import TOOLS, Shelf

pytest.importorskip("google.adk", reason="google-adk is not installed")

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import InMemoryRunner
from google.adk.tools import FunctionTool
from google.genai import types

from pegboard.integrations.google_adk import BoardToolset

# Deprecations inside the framework and what it uses are its own.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


class Scripted(BaseLlm):
    """Plays a script, and remembers the tools that it was given in each step."""

    script: list
    shown: list

    async def generate_content_async(self, llm_request, stream=False):
        self.shown.append(list(llm_request.tools_dict))
        yield LlmResponse(content=types.Content(role="model", parts=self.script.pop(0)))


def play(*script):
    return Scripted(model="scripted", script=list(script), shown=[])


def call(name, **arguments):
    return types.Part.from_function_call(name=name, args=arguments)


DONE = [types.Part.from_text(text="Done.")]


def held():
    def make(each):
        def run() -> str:
            return f"called {each.name}"

        run.__name__, run.__doc__ = each.name, each.description
        return FunctionTool(run)

    return [make(each) for each in TOOLS if each.id != "kit/desk/search"]


def converse(model, *sessions):
    """The results of all tools, session by session; one message for each time it is named."""
    agent = LlmAgent(
        name="agent", model=model, tools=[BoardToolset(BoardSearch(Shelf().board, k=1), held())]
    )
    runner = InMemoryRunner(agent=agent, app_name="app")

    async def run():
        results = []
        for session in sessions:
            if not await runner.session_service.get_session(
                app_name="app", user_id="u", session_id=session
            ):
                await runner.session_service.create_session(
                    app_name="app", user_id="u", session_id=session
                )
            message = types.Content(role="user", parts=[types.Part.from_text(text="Go.")])
            async for event in runner.run_async(
                user_id="u", session_id=session, new_message=message
            ):
                results += [each.response["result"] for each in event.get_function_responses()]
        return results

    return asyncio.run(run())


def test_an_agent_sees_the_search_then_what_it_found_in_the_same_turn():
    model = play(
        [call("search_tools", query="order_lunch")],
        [call("order_lunch")],
        [call("search_tools", query="book_room")],
        [call("book_room")],
        DONE,
    )

    assert converse(model, "one") == [
        "Found, and ready to be called: order_lunch.",
        "called order_lunch",
        "Found, and ready to be called: book_room.",
        "called book_room",
    ]
    assert model.shown == [
        ["search_tools"],
        *[["search_tools", "order_lunch"]] * 2,
        *[["search_tools", "order_lunch", "book_room"]] * 2,
    ]


def test_a_session_keeps_what_it_found_and_others_do_not_see_it():
    model = play([call("search_tools", query="order_lunch")], DONE, DONE, DONE)
    converse(model, "one", "one", "other")

    assert model.shown[2:] == [["search_tools", "order_lunch"], ["search_tools"]]


def test_two_searches_of_one_reply_are_both_kept():
    searches = [call("search_tools", query=name) for name in ("order_lunch", "book_room")]
    model = play(searches, DONE)
    converse(model, "one")

    assert sorted(model.shown[1]) == ["book_room", "order_lunch", "search_tools"]
