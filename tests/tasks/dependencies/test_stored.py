"""Inferred edges that are kept between builds are those that a look at all tools finds."""

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from pegboard.records import Agent, Tool
from tasks import edges
from tasks.dependencies.infer import infer_agent_edges
from tasks.edges import inferred_rows
from tasks.lake.files import Lake
from tasks.lake.snapshot_rows import agent_frame, store_snapshot, tool_frame
from tests.tasks.dependencies.made_tools import infer_edges, make_board


class Nights:
    """Builds of a board whose tools change; `agents` counts those looked at in each."""

    def __init__(self, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
        self._lake, self._number = lake, 0
        self.agents = list[int]()

        def counted(tools):
            self.agents[-1] += 1
            return infer_agent_edges(tools)

        monkeypatch.setattr(edges, "infer_agent_edges", counted)

    def infer(self, tools: Sequence[Tool]):
        """The pairs of tools that this build has edges between."""
        tools = sorted((replace(tool, catalog="kit") for tool in tools), key=lambda tool: tool.id)
        self._number += 1
        self.agents.append(0)
        agents = tuple(Agent(name, "kit", name) for name in {tool.agent for tool in tools})
        frames = agent_frame(agents), tool_frame(agents, tools)
        store_snapshot(self._lake, "kit", f"{self._number:064x}", *frames, None)
        rows = inferred_rows(self._lake, {"kit": f"{self._number:064x}"})
        names = ("source", "target", "type", "parameter", "reason", "evidence")
        expected = [tuple(getattr(edge, name) for name in names) for edge in infer_edges(tools)]
        assert sorted(rows.select(names).rows(), key=repr) == sorted(expected, key=repr)
        return rows.select("source", "target").sort("source", "target").rows()


@pytest.fixture
def nights(tmp_path, monkeypatch):
    return Nights(Lake(str(tmp_path)), monkeypatch)


@pytest.mark.parametrize("seed", range(2))
def test_what_is_kept_is_what_a_look_at_all_tools_finds(nights, seed, monkeypatch):
    monkeypatch.setattr(edges, "TOOLS_AT_ONCE", 50)
    dice, size = random.Random(seed), 240
    spares = make_board(2 * size, 40)
    tools = spares[:size]

    found = [nights.infer(tools)]
    for _ in range(4):
        for _ in range(3):
            kind, place = dice.choice(("new", "gone", "other")), dice.randrange(len(tools))
            if kind == "gone":
                del tools[place]
            elif kind == "new":
                tools.append(spares[size + len(found) * 20 + dice.randrange(20)])
            else:
                tools[place] = replace(tools[place], name="list_draft_orders")
        tools = list({tool.id: tool for tool in tools}.values())
        found.append(nights.infer(tools))

    assert all(found)
    assert len({repr(pairs) for pairs in found}) > 1
    assert max(nights.agents[1:]) <= 3 < nights.agents[0]
