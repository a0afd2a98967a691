"""Builds learn from use: from a gateway's log to a release that ranks the used tool higher, and
never by a golden query.
"""

import asyncio
import json

import pegboard
from pegboard.cli.main import main
from pegboard.opening import open_board
from pegboard.serve.access.clients import Client
from pegboard.serve.gateway import Gateway
from pegboard.serve.settings import GatewaySettings, ServeSettings
from tasks.settings.configuration import load_configuration

REQUEST = "the kettle is empty"
TOOLS = {
    "kitchen": [
        {"name": "refill_water", "description": "Fills a vessel with water from the tap."},
        {"name": "empty_bin", "description": "Takes the rubbish out of the kitchen."},
        {"name": "wash_kettle", "description": "Removes limescale."},
    ]
}
TOOL = "kit/kitchen/refill_water"


def use(uri, log, clients, query, tool):
    """Let each client ask for tools in a session of its own, and call one."""

    async def run():
        settings = GatewaySettings(serve=ServeSettings(log=log))
        gateway = Gateway(settings, open_board(uri))
        for number, client in enumerate(clients):
            session = f"session-{client}-{number}"
            who = Client(name=client, claims={"sub": client})
            answer = await gateway.finder.find(who, query, 3, session=session)
            assert tool in [hit.tool.id for hit in answer.result.hits]
            gateway.metrics.record_call(who, session, tool, "ok", 1.0, 10)
        await gateway.close()

    asyncio.run(run())


def rank(uri, tool):
    return [hit.tool.id for hit in pegboard.open(uri).find(REQUEST, 3)].index(tool) + 1


def configured(workshop, extra=""):
    return workshop.configure(f'[examples]\nqueries = "learned.jsonl"\n{extra}')


def test_a_tool_that_clients_called_ranks_higher_for_their_request_after_the_next_build(
    workshop, tmp_path
):
    workshop.servers(TOOLS)
    workshop.run(workshop.configure())
    initial_rank = rank(workshop.uri, TOOL)
    log = tmp_path / "requests.jsonl"
    use(workshop.uri, log, ["support", "sales"], REQUEST, TOOL)

    assert main(["examples", str(log), "-o", str(tmp_path / "learned.jsonl")]) == 0
    workshop.run(configured(workshop))

    assert initial_rank > 1
    assert rank(workshop.uri, TOOL) == 1
    assert pegboard.open(workshop.uri).tool(TOOL).examples == (REQUEST,)


def test_golden_queries_and_near_copies_of_them_are_never_learned(workshop, tmp_path):
    workshop.servers(TOOLS)
    lines = [
        {"query": text, "tools": [TOOL], "origin": "logs"}
        for text in (
            "Empty, the kettle is!",
            "please fill all of the big red kettles that stand in our kitchen",
            "more water",
        )
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (tmp_path / "learned.jsonl").write_text(text, "utf-8")
    golden = [
        {"query": "kettle is the empty", "tools": ["empty_bin"]},
        {"query": "fill all of the big red kettles that stand in our kitchen", "tools": [TOOL]},
        *({"query": f"{number} cups", "tools": [TOOL]} for number in range(30)),
    ]
    rows = "".join(json.dumps(row) + "\n" for row in golden)
    (tmp_path / "golden.jsonl").write_text(rows, "utf-8")

    workshop.run(configured(workshop, '[golden]\nqueries = "golden.jsonl"\n'))

    assert pegboard.open(workshop.uri).tool(TOOL).examples == ("more water",)


def test_a_destructive_tool_learns_nothing(workshop, tmp_path):
    [refill, *other_tools] = TOOLS["kitchen"]
    workshop.servers(
        {"kitchen": [{**refill, "annotations": {"destructiveHint": True}}, *other_tools]}
    )
    (tmp_path / "learned.jsonl").write_text(json.dumps({"query": REQUEST, "tools": [TOOL]}))

    workshop.run(configured(workshop))

    assert pegboard.open(workshop.uri).tool(TOOL).examples == ()


def test_examples_of_a_catalog_come_first_and_are_not_repeated(workshop, tmp_path):
    configuration = workshop.full()
    text = configuration.file.read_text("utf-8")
    configuration.file.write_text(f'{text}\n[examples]\nqueries = "learned.jsonl"\n', "utf-8")
    rows = [
        {"query": "Where can ten people meet", "tools": ["book_room"]},
        {"query": "a place for a talk", "tools": ["desk/book_room"]},
        {"query": "of a tool that is gone", "tools": ["desk/desk/gone"]},
    ]
    (tmp_path / "learned.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")

    workshop.run(load_configuration(configuration.file))

    examples = pegboard.open(workshop.uri).tool("desk/desk/book_room").examples
    assert examples == ("where can ten people meet?", "room", "a place for a talk")


def test_logged_requests_become_golden_queries_and_the_next_build_no_longer_learns_them(
    workshop, tmp_path, capsys
):
    workshop.servers(TOOLS)
    workshop.run(workshop.configure())
    log = tmp_path / "requests.jsonl"
    out = tmp_path / "golden.jsonl"
    use(workshop.uri, log, ["support", "sales", "sales"], REQUEST, TOOL)
    assert main(["examples", str(log), "-o", str(tmp_path / "learned.jsonl")]) == 0

    assert main(["golden", "suggest", str(log), "--share", "1", "--out", str(out)]) == 0

    assert "1 of 1 request that enough clients made" in (text := capsys.readouterr().out)
    assert "29 more are missing" in text
    rows = [{"query": f"{number} cups", "tools": [TOOL]} for number in range(29)]
    with out.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    workshop.run(configured(workshop, '[golden]\nqueries = "golden.jsonl"\n'))
    assert pegboard.open(workshop.uri).tool(TOOL).examples == ()
