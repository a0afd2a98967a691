"""Views: a release as one client sees it, with only its tools, under the names by which it calls
them.

A client's view has a board of its own without any other tool, so that no rank, score, count, agent
or dependency reveals a tool that the client may not see."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pegboard.async_board import AsyncBoard
from pegboard.board import Board
from pegboard.hits import Hit
from pegboard.naming import CallNames
from pegboard.records import READ_KINDS, Agent, Tool, agent_id, tool_id
from pegboard.serve.access.clients import Client, permits
from pegboard.serve.errors import CallProblem
from pegboard.serve.settings import Rule
from pegboard.tokens import definition_tokens

RESERVED = ("search_tools", "call_tool", "search_agents", "get_tool")
"""Names of the gateway's own tools, which no tool of the board takes."""

CallProblemOf = Callable[[Tool, str], str]
"""Returns why the gateway cannot call a tool of an agent of that kind; "" if it can."""


@dataclass(frozen=True, slots=True)
class Entry(Tool):
    """A tool as views hold it, without its schemas and texts, which the board has.

    Attributes:
        kind: the kind of its agent.
        text: the id, name and description in lower case, by which lists are filtered.
        tokens: the estimated tokens of its definition in a prompt.
        problem: why the gateway cannot call it; "" if it can.
    """

    kind: str = ""
    text: str = ""
    tokens: float = 0.0
    problem: str = ""

    @property
    def is_read(self) -> bool:
        """Whether it is a skill, a prompt or a resource, which is read instead of called."""
        return self.kind in READ_KINDS


@dataclass(frozen=True, slots=True)
class ViewKey:
    """What determines a view of a release. Clients with equal rules share a view.

    Attributes:
        allow: the client's `allow` rules.
        deny: the client's `deny` rules.
        callable_only: whether tools that the gateway cannot call are left out.
    """

    allow: tuple[Rule, ...] | None
    deny: tuple[Rule, ...]
    callable_only: bool

    @classmethod
    def of(cls, client: Client, callable_only: bool) -> "ViewKey":
        """Return the key of a client's view."""
        return cls(client.allow, client.deny, callable_only)

    def permits(self, tool: Tool) -> bool:
        """Whether the rules permit a tool."""
        return permits(self.allow, self.deny, tool)


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """A release as one client sees it.

    Attributes:
        key: the rules of the client.
        release: the id of the release.
        board: has the visible tools and no others, and stays at this release.
        entries: the visible tools by id.
        agents: names of the agents with visible tools, those with the most tools first.
        names: the names by which the client calls tools, assigned among the visible ones alone.
        tokens: the estimated tokens of the definitions of all visible tools.
    """

    key: ViewKey
    release: str
    board: AsyncBoard
    entries: Mapping[str, Entry]
    agents: tuple[str, ...]
    names: CallNames
    tokens: float

    def call_name(self, identity: str) -> str:
        """Return the name by which a visible tool is called, from its id."""
        return self.names.names[identity]

    async def tool(self, identity: str) -> Tool | None:
        """Return the visible tool with that id; None if the client may see no such tool."""
        tool = await self.board.tool(identity) if identity in self.entries else None
        # The rules decide again over the row that was read.
        return tool if tool is not None and self.key.permits(tool) else None

    async def tool_named(
        self, name: str, sent_names: Mapping[str, str] | None = None
    ) -> Tool | None:
        """Return the visible tool with that call name or id; None if there is none.

        Args:
            sent_names: ids by the names that the client was sent. A name that means another tool
                now means none.
        """
        identity = self.names.ids.get(name, name)
        if (sent_names or {}).get(name, identity) != identity:
            return None
        return await self.tool(identity)


def check_callable(tool: Tool, kind: str) -> None:
    """Raise CallProblem for what is never called, whatever the configuration.

    Args:
        kind: the kind of the tool's agent.
    """
    if kind in READ_KINDS:
        raise CallProblem(
            "refused",
            f"{tool.id} is a {kind}, which is not called. Read it with get_tool, and follow it.",
        )
    # Rules decide by the id: it must be the id of the tool that is called.
    has_agents_id = tool.id == tool_id(tool.agent, tool.name)
    if not has_agents_id or not tool.agent.startswith(agent_id(tool.catalog, "")):
        raise CallProblem("refused", f"{tool.id} is not the id of its catalog, agent and name.")


def read_entries(board: Board, call_problem: CallProblemOf) -> dict[str, Entry]:
    """Return all tools of a board's release by id."""
    agents = {agent.id: agent for agent in board.list_agents()}
    return {tool.id: _entry(tool, agents[tool.agent], call_problem) for tool in board.list_tools()}


def make_view(board: Board, all_entries: Mapping[str, Entry], key: ViewKey) -> View:
    """Return the view of a release that a client's rules give.

    Args:
        board: of the whole release.
        all_entries: all tools of the release by id.
    """
    # A gateway that can call nothing offers all tools to searches.
    offers_all = not key.callable_only or all(entry.problem for entry in all_entries.values())
    entries = {
        identity: entry
        for identity, entry in all_entries.items()
        if key.permits(entry) and (offers_all or not entry.problem or entry.is_read)
    }
    visible = board if len(entries) == len(all_entries) else board.restricted(entries)
    agents = {agent.id: agent.name for agent in visible.list_agents()}
    named = [(entry.id, entry.name, agents[entry.agent]) for entry in entries.values()]
    tool_counts = Counter(entry.agent for entry in entries.values())
    largest_first = sorted(tool_counts, key=lambda agent: (-tool_counts[agent], agent))
    return View(
        key,
        visible.release.id,
        AsyncBoard(visible),
        entries,
        tuple(agents[agent] for agent in largest_first),
        CallNames(named, RESERVED),
        sum(entry.tokens for entry in entries.values()),
    )


def _entry(tool: Tool, agent: Agent, call_problem: CallProblemOf) -> Entry:
    return Entry(
        tool.id,
        tool.catalog,
        tool.agent,
        tool.name,
        tags=tool.tags,
        kind=agent.kind,
        text=f"{tool.id} {tool.name} {tool.description}".casefold(),
        tokens=definition_tokens(Hit(tool, agent, 0.0, {})),
        problem=call_problem(tool, agent.kind),
    )
