"""Inferred edges that are kept between builds are those that a look at all tools finds."""

from dataclasses import replace

from pegboard.records import Agent
from tasks.dependencies.infer import infer_agent_edges
from tasks.lake.files import Lake
from tasks.lake.snapshot_rows import agent_frame, store_snapshot, tool_frame
from tasks.steps import edges
from tasks.steps.edges import inferred_rows
from tests.tasks.dependencies.made_tools import infer_edges, make_board

COLUMNS = ("source", "target", "type", "parameter", "reason", "evidence")


def test_edges_are_inferred_again_only_for_agents_whose_tools_changed(tmp_path, monkeypatch):
    lake = Lake(str(tmp_path))
    agents_looked_at = []

    def counted(tools):
        agents_looked_at.append(tools[0].agent)
        return infer_agent_edges(tools)

    monkeypatch.setattr(edges, "infer_agent_edges", counted)
    monkeypatch.setattr(edges, "TOOLS_AT_ONCE", 50)
    board = [replace(tool, catalog="kit") for tool in make_board(480, 40)]
    first, second, *rest = board[:240]
    renamed = replace(first, name="list_draft_orders")
    counts = []
    for night, tools in enumerate(
        ([first, second, *rest], [*rest, board[300]], [renamed, second, *rest])
    ):
        tools = sorted(tools, key=lambda tool: tool.id)
        agents = tuple(Agent(name, "kit", name) for name in {tool.agent for tool in tools})
        frames = agent_frame(agents), tool_frame(agents, tools)
        store_snapshot(lake, "kit", f"{night:064x}", *frames, None)
        agents_looked_at.clear()

        rows = inferred_rows(lake, {"kit": f"{night:064x}"})

        expected = [tuple(getattr(edge, name) for name in COLUMNS) for edge in infer_edges(tools)]
        assert sorted(rows.select(COLUMNS).rows(), key=repr) == sorted(expected, key=repr) != []
        counts.append(len(agents_looked_at))

    assert max(counts[1:]) <= 3 < counts[0]
