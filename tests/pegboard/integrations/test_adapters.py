"""What every adapter promises whose framework runs the loop, against the frameworks themselves.

Each framework's row says how to hold the tools, how to write the steps of a script, and how to play
conversations of such steps with a scripted model."""

import asyncio
import importlib
import json
from types import SimpleNamespace

import pytest

from pegboard.integrations.board_search import BoardSearch
from pegboard.integrations.own_tools import OwnTools
from tests.pegboard.integrations.boards import TOOLS, Shelf

# Deprecations inside the frameworks and what they use are their own.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
HELD = [each for each in TOOLS if each.id != "kit/desk/search"]
DONE = "Done."


class OpenAiAgents:
    """OpenAI Agents SDK: one `AgentTools` for each conversation."""

    package = "agents"
    keeps = True

    def play(self, own, *conversations):
        return [self._converse(own, script) for script in conversations]

    def _converse(self, own, script):
        import agents
        from openai.types import responses

        from pegboard.integrations.openai_agents import AgentTools

        agents.set_tracing_disabled(True)
        steps = list(script)
        shown = []

        class Scripted(agents.Model):
            async def get_response(self, *arguments, **named):
                tools = named.get("tools", arguments[3] if len(arguments) > 3 else [])
                shown.append([each.name for each in tools])
                step = steps.pop(0)
                output = [said()] if step == DONE else [called(*each) for each in step]
                return agents.ModelResponse(output=output, usage=agents.Usage(), response_id=None)

            def stream_response(self, *arguments, **named):
                raise NotImplementedError

        def said():
            text = {"type": "output_text", "text": DONE, "annotations": []}
            return responses.ResponseOutputMessage(
                id="1", type="message", role="assistant", status="completed", content=[text]
            )

        def called(name, arguments):
            return responses.ResponseFunctionToolCall(
                type="function_call",
                call_id=f"{name} {arguments}",
                name=name,
                arguments=json.dumps(arguments),
            )

        def hold(each):
            async def run(context, arguments):
                return f"called {each.name}"

            schema = {"type": "object", "properties": {}, "additionalProperties": False}
            return agents.FunctionTool(each.name, each.description, schema, run)

        tools = AgentTools(own, [hold(each) for each in HELD])
        agent = agents.Agent(name="agent", model=Scripted(), tools=tools.tools)
        items = []
        for _ in range(script.count(DONE)):
            items += asyncio.run(agents.Runner.run(agent, "Go.")).new_items
        return shown, [each.output for each in items if each.type == "tool_call_output_item"]


class LangChain:
    """LangChain: one middleware, and a thread of a checkpointer for each conversation."""

    package = "langchain"
    keeps = True
    asynchronous = False

    def play(self, own, *conversations):
        from langchain.agents import create_agent
        from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
        from langchain_core.messages import AIMessage, ToolMessage
        from langchain_core.tools import StructuredTool
        from langgraph.checkpoint.memory import InMemorySaver

        from pegboard.integrations.langchain import BoardToolsMiddleware

        shown = []

        class Scripted(GenericFakeChatModel):
            def bind_tools(self, tools, **_):
                shown.append([getattr(each, "name", None) or each.__name__ for each in tools])
                return self

        def message(step):
            calls = [] if step == DONE else step
            return AIMessage(
                "" if calls else DONE,
                tool_calls=[
                    {"name": name, "args": args, "id": f"{name} {args}", "type": "tool_call"}
                    for name, args in calls
                ],
            )

        def hold(each):
            return StructuredTool.from_function(
                lambda: f"called {each.name}", name=each.name, description=each.description
            )

        model = Scripted(
            messages=iter(message(step) for script in conversations for step in script)
        )
        middleware = BoardToolsMiddleware(own, [hold(each) for each in HELD])
        agent = create_agent(model, middleware=[middleware], checkpointer=InMemorySaver())
        played = []
        for number, script in enumerate(conversations):
            shown.clear()
            thread = {"configurable": {"thread_id": f"thread {number}"}}
            for _ in range(script.count(DONE)):
                request = {"messages": [("user", "Go.")]}, thread
                ask = agent.ainvoke if self.asynchronous else agent.invoke
                result = asyncio.run(ask(*request)) if self.asynchronous else ask(*request)
            said = [each.content for each in result["messages"] if isinstance(each, ToolMessage)]
            played.append((list(shown), said))
        return played


class AsyncLangChain(LangChain):
    asynchronous = True


class Haystack:
    """Haystack: one toolset, of which each run of the agent has its own."""

    package = "haystack"
    keeps = False

    def play(self, own, *conversations):
        from haystack import component
        from haystack.components.agents import Agent
        from haystack.dataclasses import ChatMessage, ToolCall
        from haystack.tools import Tool

        from pegboard.integrations.haystack import BoardToolset

        steps = [step for script in conversations for step in script]
        shown = []

        @component
        class Scripted:
            @component.output_types(replies=list[ChatMessage])
            def run(self, messages: list[ChatMessage], tools=None):
                shown.append([each.name for each in tools or ()])
                step = steps.pop(0)
                if step == DONE:
                    return {"replies": [ChatMessage.from_assistant(DONE)]}
                calls = [ToolCall(name, args, id=f"{name} {args}") for name, args in step]
                return {"replies": [ChatMessage.from_assistant(tool_calls=calls)]}

        def hold(each):
            return Tool(
                name=each.name,
                description=each.description,
                parameters={"type": "object", "properties": {}},
                function=lambda: f"called {each.name}",
            )

        toolset = BoardToolset(own, [hold(each) for each in HELD])
        agent = Agent(chat_generator=Scripted(), tools=toolset)
        played = []
        for _ in conversations:
            shown.clear()
            messages = agent.run(messages=[ChatMessage.from_user("Go.")])["messages"]
            results = [each.tool_call_result for each in messages if each.tool_call_result]
            played.append((list(shown), [each.result for each in results]))
        return played


class GoogleAdk:
    """Google ADK: one toolset, and a session for each conversation."""

    package = "google.adk"
    keeps = True

    def play(self, own, *conversations):
        from google.adk.agents import LlmAgent
        from google.adk.models import BaseLlm, LlmResponse
        from google.adk.runners import InMemoryRunner
        from google.adk.tools import FunctionTool
        from google.genai import types

        from pegboard.integrations.google_adk import BoardToolset

        steps = [step for script in conversations for step in script]
        shown = []

        class Scripted(BaseLlm):
            async def generate_content_async(self, llm_request, stream=False):
                shown.append(list(llm_request.tools_dict))
                step = steps.pop(0)
                call = types.Part.from_function_call
                parts = (
                    [types.Part.from_text(text=DONE)]
                    if step == DONE
                    else [call(name=name, args=args) for name, args in step]
                )
                yield LlmResponse(content=types.Content(role="model", parts=parts))

        def hold(each):
            def run() -> str:
                return f"called {each.name}"

            run.__name__, run.__doc__ = each.name, each.description
            return FunctionTool(run)

        toolset = BoardToolset(own, [hold(each) for each in HELD])
        agent = LlmAgent(name="agent", model=Scripted(model="scripted"), tools=[toolset])
        runner = InMemoryRunner(agent=agent, app_name="app")
        message = types.Content(role="user", parts=[types.Part.from_text(text="Go.")])

        async def run(session, turns):
            named = {"user_id": "u", "session_id": session}
            await runner.session_service.create_session(app_name="app", **named)
            return [
                each.response["result"]
                for _ in range(turns)
                async for event in runner.run_async(**named, new_message=message)
                for each in event.get_function_responses()
            ]

        async def run_all():
            played = []
            for number, script in enumerate(conversations):
                shown.clear()
                results = await run(str(number), script.count(DONE))
                played.append((list(shown), results))
            return played

        return asyncio.run(run_all())


class PydanticAi:
    """Pydantic AI: one capability for all agents; the framework orders the tools it shows."""

    package = "pydantic_ai"
    keeps = False

    def play(self, own, *conversations):
        return [self._converse(own, script) for script in conversations]

    def _converse(self, own, script):
        from pydantic_ai import Agent
        from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
        from pydantic_ai.models.function import FunctionModel

        from pegboard.integrations.pydantic_ai import tool_search

        steps = list(script)
        shown = []

        def answer(messages, info):
            names = [each.name for each in info.function_tools]
            known = shown[-1] if shown else ["search_tools"]
            shown.append([*known, *(name for name in names if name not in known)])
            assert set(shown[-1]) == set(names)
            step = steps.pop(0)
            if step == DONE:
                return ModelResponse(parts=[TextPart(DONE)])
            asked = [
                (name, {"queries": [args["query"]]} if name == "search_tools" else args)
                for name, args in step
            ]
            return ModelResponse(parts=[ToolCallPart(*each) for each in asked])

        agent = Agent(FunctionModel(answer), tools=self.tools(), capabilities=[tool_search(own)])
        result = asyncio.run(agent.run("Go."))
        parts = [part for each in result.all_messages() for part in each.parts]
        returns = [part for part in parts if part.part_kind == "tool-return"]
        return shown, [told(part) for part in returns]

    def tools(self):
        from pydantic_ai import Tool

        def hold(each):
            def run(**_):
                return f"called {each.name}"

            schema = {"type": "object", "properties": {}}
            made = Tool.from_schema(run, each.name, each.description, schema)
            made.defer_loading = True
            return made

        return [hold(each) for each in HELD]


def told(part):
    """What a search told a model of Pydantic AI, in the words of the other adapters."""
    if isinstance(part.content, str):
        return part.content
    found = [each["name"] for each in part.content["discovered_tools"]]
    return f"Found, and ready to be called: {', '.join(found)}."


FRAMEWORKS = [OpenAiAgents, LangChain, AsyncLangChain, Haystack, GoogleAdk, PydanticAi]


@pytest.fixture(params=FRAMEWORKS, ids=lambda framework: framework.__name__)
def play(request):
    """Plays conversations, and returns of each the tools shown in each step, and the results."""
    try:
        importlib.import_module(request.param.package)
    except ModuleNotFoundError:
        pytest.skip(f"{request.param.package} is not installed")
    own = OwnTools(BoardSearch(Shelf().board, k=1))
    return SimpleNamespace(
        on=lambda *conversations: request.param().play(own, *conversations),
        keeps=request.param.keeps,
    )


def search(query):
    return ("search_tools", {"query": query})


LUNCH = [search("order_lunch")]
ROOM = [search("book_room")]


def test_an_agent_sees_the_search_then_what_it_found_in_order_of_discovery(play):
    script = [LUNCH, [("order_lunch", {})], ROOM, [("book_room", {})], DONE]

    [(shown, results)] = play.on(script)

    assert results == [
        "Found, and ready to be called: order_lunch.",
        "called order_lunch",
        "Found, and ready to be called: book_room.",
        "called book_room",
    ]
    assert shown == [
        ["search_tools"],
        *[["search_tools", "order_lunch"]] * 2,
        *[["search_tools", "order_lunch", "book_room"]] * 2,
    ]


def test_conversations_share_nothing(play):
    first, second = play.on([LUNCH, DONE], [ROOM, DONE])

    assert first[0] == [["search_tools"], ["search_tools", "order_lunch"]]
    assert second[0] == [["search_tools"], ["search_tools", "book_room"]]


def test_searches_of_one_reply_are_all_kept_and_each_tool_once(play):
    [(shown, _)] = play.on([[*LUNCH, search(" order_lunch"), *ROOM], DONE])

    assert sorted(shown[1]) == ["book_room", "order_lunch", "search_tools"]


def test_a_search_that_finds_nothing_says_why_and_the_conversation_goes_on(play):
    [(shown, [said])] = play.on([[search(" ")], DONE])

    assert shown == [["search_tools"]] * 2
    assert "query" in said


def test_what_a_conversation_found_is_shown_in_its_next_turn(play):
    if not play.keeps:
        pytest.skip("each run of the framework's agent begins anew")
    [(shown, _), _] = play.on([LUNCH, DONE, DONE], [DONE])

    assert shown[2] == ["search_tools", "order_lunch"]


def test_langchain_shows_the_agents_own_tools_and_refuses_what_was_not_found():
    agents = pytest.importorskip("langchain.agents", reason="langchain is not installed")
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage, ToolMessage
    from langchain_core.tools import StructuredTool

    from pegboard.integrations.langchain import BoardToolsMiddleware

    class Scripted(GenericFakeChatModel):
        def bind_tools(self, tools, **_):
            assert [each.name for each in tools] == ["search_tools", "own_tool"]
            return self

    def tool(name):
        return StructuredTool.from_function(lambda: name, name=name, description="A tool.")

    names = ("order_lunch", "nonsense", "own_tool")
    calls = [{"name": each, "args": {}, "id": each, "type": "tool_call"} for each in names]
    model = Scripted(messages=iter([AIMessage("", tool_calls=calls), AIMessage(DONE)]))
    middleware = BoardToolsMiddleware(Shelf().board, [tool("order_lunch")])
    agent = agents.create_agent(model, tools=[tool("own_tool")], middleware=[middleware])

    messages = agent.invoke({"messages": [("user", "Lunch.")]})["messages"]

    *refused, own = [each.content for each in messages if isinstance(each, ToolMessage)]
    assert ["Search for it first" in text for text in refused] == [True, True]
    assert own == "own_tool"


def test_the_agents_sdk_shows_tools_of_mcp_servers_once_they_were_found():
    pytest.importorskip("agents", reason="openai-agents is not installed")
    from agents.tool_context import ToolContext

    from pegboard.integrations.openai_agents import AgentTools

    tools = AgentTools(BoardSearch(Shelf().board, k=1))
    shown = tools.mcp_filter()

    def listing():
        return [each.name for each in TOOLS[:6] if shown(None, each)]

    before = listing()
    query = json.dumps({"query": "order_lunch"})
    context = ToolContext(None, tool_name="search_tools", tool_call_id="1", tool_arguments=query)
    asyncio.run(tools.tools[0].on_invoke_tool(context, query))

    assert (before, listing()) == ([], ["order_lunch"])


def test_haystack_takes_toolsets_and_a_run_finds_only_the_tools_selected_for_it():
    tools = pytest.importorskip("haystack.tools", reason="haystack-ai is not installed")
    from pegboard.integrations.haystack import BoardToolset

    held = [
        tools.Tool(each.name, each.description, {"type": "object", "properties": {}}, lambda: "")
        for each in HELD
    ]
    toolset = BoardToolset(BoardSearch(Shelf().board, k=1), [tools.Toolset(held[:3]), *held[3:]])
    run = toolset.spawn({"order_lunch"})
    [search_tool] = run
    search_tool.invoke(query="book a meeting room in the office")

    assert [each.name for each in toolset.get_selectable_tools()] == [each.name for each in held]
    assert "book_room" not in run
    assert [each.name for each in toolset] == ["search_tools"]
    for refused in (lambda: toolset.add(held[0]), toolset.to_dict):
        with pytest.raises(NotImplementedError):
            refused()
