"""A gate as a person meets it: `pegboard build` with golden queries, before and after a catalog was
sabotaged.
"""

import json

from tests.tasks.gate.conftest import THINGS, TOOLS, VERBS

GATE = (
    '[gate]\nqueries = "golden.jsonl"\nrules = ["Recall@5 >= 0.99", "Recall@5 no worse than '
    'live"]\n'
)


def sell(workshop, tools):
    workshop.servers({"shop": [workshop.tool(name, text) for name, text in tools.items()]})


def test_a_sabotaged_catalog_is_held_with_exit_code_8_and_live_stays(command, workshop):
    queries = [
        {"query": f"please {verb} my {thing}", "tools": [f"tool_{verb[0]}{thing[0]}"]}
        for verb in VERBS
        for thing in THINGS
    ]
    workshop.write("golden.jsonl", "\n".join(map(json.dumps, queries)))
    workshop.configure(GATE)
    sell(workshop, TOOLS)

    code, out, _ = command("build", "--quiet")
    live = workshop.store.channel().release
    assert code == 0
    assert (
        "Golden queries: Recall@5 1.000 [1.000, 1.000] over 20 by strategy clauses in index full; "
        "1 rule holds, 1 skipped, as no release is live." in out
    )

    sell(workshop, {**TOOLS, "tool_od": TOOLS["tool_cb"], "tool_cb": TOOLS["tool_od"]})
    code, out, err = command("build", "--json")
    run = json.loads(out)
    assert code == 8
    assert "gate: 40 of 40\n" in err  # what live finds is remembered, and counts
    assert err.endswith(
        f"pegboard build: release {run['release']} is held by its gate; 'live' stays at release "
        f"{live}.\n"
    )
    assert (run["outcome"], run["gate"]["passed"], run["plan"]["live"]) == ("held", False, live)
    assert set(run["gate"]["changes"]["changed"]) == {"kit/shop/tool_cb", "kit/shop/tool_od"}
    assert workshop.store.channel().release == live

    strict = 'no worse than live by more than 0.01 with 95 % confidence"'
    workshop.configure(GATE.replace('no worse than live"', strict))
    held = command("build", "--quiet")[1]
    assert "; 0.01 is allowed. Differences like these need about " in held

    workshop.configure(GATE.replace("Recall@5 >= 0.99", "Recal@5 >= 0.99"))
    code, _, err = command("build")
    assert code == 2
    assert "There is no measure 'Recal@5'" in err
