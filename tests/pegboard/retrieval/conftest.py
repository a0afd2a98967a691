"""A context without a board, for parts that ask an LLM: a few tools that are searched by the words
they share with a query.
"""

import asyncio
import json
import re
from dataclasses import dataclass, field

import pytest

from pegboard.errors import CompletionError
from pegboard.llm import ChatReply
from pegboard.records import Agent, Tool
from pegboard.retrieval.llm.caller import LlmCaller
from pegboard.retrieval.parts import Candidates, Request, ScoredTool
from pegboard.retrieval.results import PartTrace
from pegboard.search.text import tokenize

SAID = {
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
AGENTS = {
    f"kit/{name}": Agent(f"kit/{name}", "kit", name) for name in ("sea", "sky", "bank", "post")
}
TOOLS = {
    f"kit/{path}": Tool(
        f"kit/{path}", "kit", f"kit/{path.partition('/')[0]}", path.partition("/")[2], said
    )
    for path, said in SAID.items()
}


class Scripted:
    """A completer: answers by a function of the request, or with the next of some replies;
    remembers what it was asked.
    """

    name = "stub/scripted"

    def __init__(self, *replies, by=None, finish="stop"):
        self.replies, self.by, self.finish, self.asked = list(replies), by, finish, []

    async def complete(self, request):
        self.asked.append(request)
        reply = self.by(request) if self.by else self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        text = reply if isinstance(reply, str) else json.dumps(reply)
        return ChatReply(
            text=text,
            finish_reason=self.finish,
            model=self.name,
            prompt_tokens=100,
            completion_tokens=10,
            cost_usd=0.001,
            seconds=0.01,
        )


@dataclass
class Working:
    """A `Context`."""

    request: Request
    caller: LlmCaller | None = None
    own: dict = field(default_factory=lambda: dict(TOOLS))
    likely: dict | None = None
    trace: PartTrace = field(default_factory=lambda: PartTrace("part", "test"))
    added: dict = field(default_factory=dict)
    searched: list = field(default_factory=list)
    agents: dict = field(default_factory=lambda: AGENTS)
    cosines: dict | None = None
    thresholds: dict | None = None

    @property
    def has_llm(self):
        return self.caller is not None

    @property
    def probabilities(self):
        return self.likely

    async def search(self, queries, depth):
        self.searched += [query.text for query in queries]
        return [self.found(query.text)[:depth] for query in queries]

    def found(self, text):
        words = set(tokenize(text))
        scores = {
            id: len(words & set(tokenize(f"{one.name} {one.description}")))
            for id, one in self.own.items()
        }
        return [
            ScoredTool(id, scores[id])
            for id in sorted(scores, key=lambda id: (-scores[id], id))
            if scores[id]
        ]

    async def tools(self, ids):
        return {id: self.own[id] for id in ids if id in self.own}

    async def passing(self, ids):
        return set(ids) & self.own.keys()

    async def ask(self, requests):
        answers = await self.caller.ask(requests)
        for answer in answers:
            self.trace.llm_calls += 1
            self.trace.prompt_tokens += answer.prompt_tokens
            self.trace.completion_tokens += answer.completion_tokens
            if answer.cost_usd is not None:
                self.trace.cost_usd = (self.trace.cost_usd or 0.0) + answer.cost_usd
            if answer.text is None:
                self.trace.fallback_reason = answer.why
        return [answer.text for answer in answers]


class Desk:
    """Makes contexts, and runs parts in them."""

    error = CompletionError
    tools = TOOLS
    Scripted = Scripted

    def __init__(self):
        self.callers = []

    def caller(self, completer, **options):
        self.callers.append(LlmCaller(completer, **options))
        return self.callers[-1]

    def context(
        self,
        text,
        *replies,
        k=5,
        by=None,
        llm=None,
        history=(),
        timeout=10.0,
        tools=None,
        **options,
    ):
        """A context whose LLM gives these replies; `completer` of it is what was asked. Without
        replies there is no LLM.
        """
        completer = llm or (Scripted(*replies, by=by) if replies or by else None)
        caller = self.caller(completer, timeout=timeout) if completer else None
        context = Working(Request(text, k, tuple(history)), caller, dict(tools or TOOLS), **options)
        context.completer = completer
        return context

    @staticmethod
    def transform(part, queries, context):
        return asyncio.run(part.transform(queries, context))

    @staticmethod
    def refine(part, candidates, context):
        return [one.tool.removeprefix("kit/") for one in Desk.scored(part, candidates, context)]

    @staticmethod
    def scored(part, candidates, context):
        ranking = asyncio.run(part.refine(candidates, context))
        scores = [one.score for one in ranking]
        assert scores == sorted(scores, reverse=True)
        assert len({one.tool for one in ranking}) == len(ranking)
        return ranking

    @staticmethod
    def candidates(steps, texts=None, ranking=None):
        """Candidates of steps with these tools, such as {1: ["sea/list_tides"]}; the ranking is the
        first of each, and so on.
        """
        whole = {step: [f"kit/{one}" for one in own] for step, own in steps.items()}
        longest = max(map(len, whole.values()), default=0)
        turns = [
            own[place] for place in range(longest) for own in whole.values() if place < len(own)
        ]
        order = [f"kit/{one}" for one in ranking] if ranking else list(dict.fromkeys(turns))
        return Candidates(
            {step: rank(own) for step, own in whole.items()},
            rank(order),
            texts or {step: f"step {step}" for step in steps},
        )


def rank(tools):
    return [ScoredTool(tool, 1 - place / 100) for place, tool in enumerate(tools)]


@pytest.fixture
def desk():
    desk = Desk()
    yield desk
    for caller in desk.callers:
        caller.close()


@pytest.fixture(scope="session")
def shown():
    """The names of the tools that a request to an LLM shows, in their order."""

    def names(request):
        return re.findall(r'"name": "([^"]+)", "agent"', request.messages[-1].content)

    return names
