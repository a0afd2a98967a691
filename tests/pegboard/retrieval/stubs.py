"""A context without a board and an LLM that follows a script, for the parts of strategies."""

import asyncio
import json
import re
from dataclasses import dataclass, field
from types import SimpleNamespace

from pegboard.graph.tool_graph import ToolGraph
from pegboard.llm import ChatReply
from pegboard.ranking import ScoredTool
from pegboard.records import Agent, Tool
from pegboard.retrieval.context import Context, RequestLog
from pegboard.retrieval.found import PartTrace, Trace
from pegboard.retrieval.llm.caller import LlmCaller
from pegboard.retrieval.requests import Candidates, Request
from pegboard.text.words import tokenize

DESCRIPTIONS = {
    "sea/list_tides": "High and low tide at a harbour.",
    "sea/find_berth": "Finds a free berth in a harbour.",
    "sea/book_berth": "Books a berth in a harbour.",
    "sky/get_forecast": "The weather and wind forecast of a place.",
    "bank/convert_currency": "Converts an amount of money from one currency to another.",
    "bank/list_rates": "Lists the exchange rates of today.",
    "post/send_email": "Sends an email to a person.",
    "post/track_parcel": "Tells where a parcel is by its number.",
    "post/list_tides": "Lists the tides of the mail room.",
}
TOOLS = {
    id: Tool(id, "kit", id.partition("/")[0], id.partition("/")[2], description)
    for id, description in DESCRIPTIONS.items()
}
AGENTS = {name: Agent(name, "kit", name) for name in ("sea", "sky", "bank", "post")}


def chat_reply(text, finish_reason="stop"):
    return ChatReply(
        text=text,
        finish_reason=finish_reason,
        model="stub",
        prompt_tokens=100,
        completion_tokens=10,
        cost_usd=0.001,
        seconds=0.01,
    )


class ScriptedCompleter:
    """Answers by a function of the request, or with the next of some replies; keeps the requests.

    A reply is a text, a value for JSON, a ChatReply, or an exception to raise.
    """

    name = "stub/scripted"

    def __init__(self, *replies, by=None):
        self.replies, self.by, self.requests = list(replies), by, []

    async def complete(self, request):
        self.requests.append(request)
        reply = self.by(request) if self.by else self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, ChatReply):
            return reply
        return chat_reply(reply if isinstance(reply, str) else json.dumps(reply))


@dataclass
class StubContext:
    """A `Context` over a few tools, searched by the words they share with a query."""

    request: Request = field(default_factory=lambda: Request("", 10))
    completer: ScriptedCompleter | None = None
    caller: LlmCaller | None = None
    catalog: dict = field(default_factory=lambda: dict(TOOLS))
    agents: dict = field(default_factory=lambda: AGENTS)
    probabilities: dict | None = None
    cosines: dict | None = None
    thresholds: dict | None = None
    graph: ToolGraph = field(default_factory=lambda: ToolGraph(()))
    manifest: dict = field(default_factory=dict)
    language: str = "english"
    searches: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(index="default"))
    refused: frozenset | None = None
    trace: PartTrace = field(default_factory=lambda: PartTrace("part", "test"))
    searched: list = field(default_factory=list)
    filtered: list = field(default_factory=list)
    log: RequestLog = field(init=False)

    def __post_init__(self):
        self.log = RequestLog(self.request, Trace("test"))

    @property
    def loaded(self):
        release = SimpleNamespace(manifest=self.manifest)
        return SimpleNamespace(
            agents=self.agents,
            graph=self.graph,
            release=release,
            language=lambda index: self.language,
        )

    async def search(self, queries, depth):
        self.searched += [query.text for query in queries]
        return [self._matches(query.text)[:depth] for query in queries]

    def _matches(self, text):
        words = set(tokenize(text))
        scores = {
            id: len(words & set(tokenize(f"{tool.name} {tool.description}")))
            for id, tool in self.catalog.items()
        }
        best = sorted(scores, key=lambda id: (-scores[id], id))
        return [ScoredTool(id, scores[id]) for id in best if scores[id]]

    async def tools(self, ids):
        return {id: self.catalog[id] for id in ids if id in self.catalog}

    async def passing(self, ids):
        self.filtered.append(list(ids))
        return set(ids) - (self.refused or set())

    ask = Context.ask


def context(text, *replies, by=None, llm=None, k=5, history=(), timeout=10.0, **fields):
    """A context whose LLM gives these replies; without replies there is no LLM."""
    completer = llm or (ScriptedCompleter(*replies, by=by) if replies or by else None)
    caller = LlmCaller(completer, timeout=timeout) if completer else None
    return StubContext(Request(text, k, tuple(history)), completer, caller, **fields)


def transformed(part, queries, context):
    return asyncio.run(part.transform(list(queries), context))


def refined(part, candidates, context):
    """The ids of a part's ranking, whose scores fall and which names no tool twice."""
    return [row.tool for row in scored(part, candidates, context)]


def scored(part, candidates, context):
    rows = asyncio.run(part.refine(candidates, context))
    scores = [row.score for row in rows]
    assert scores == sorted(scores, reverse=True)
    assert len({row.tool for row in rows}) == len(rows)
    return rows


def ranking(tools):
    return [ScoredTool(tool, (10 - place) / 10) for place, tool in enumerate(tools)]


def candidates(steps, texts=None):
    """Candidates of steps with these tools; the ranking has the first of each, and so on."""
    longest = max(map(len, steps.values()), default=0)
    turns = [own[place] for place in range(longest) for own in steps.values() if place < len(own)]
    return Candidates(
        {step: ranking(own) for step, own in steps.items()},
        ranking(dict.fromkeys(turns)),
        texts or {step: f"step {step}" for step in steps},
    )


def one_step(tools, text="anything"):
    return candidates({0: tools}, {0: text})


def prompt_text(context, number=0):
    """What the LLM was shown besides its instructions."""
    return context.completer.requests[number].messages[-1].content


def shown_names(request):
    """The names of the tools that a request to an LLM shows, in their order."""
    return re.findall(r'"name": "([^"]+)", "agent"', request.messages[-1].content)


def offered_names(request):
    """The names that a reply may hold, by its schema."""
    *_, schema = request.schema["properties"].values()
    return schema.get("items", {}).get("enum")
