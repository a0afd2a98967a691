"""`pegboard costs`: what the LLM cost, by model, product and run."""

import asyncio
import json

from tasks.enrichment.ledger import LakeLedger, StoredReply


def store(workshop, run, *, close, **fields):
    ledger = LakeLedger(workshop.lake, run)
    common = {"step": "reply", "subject": "s", "prompt": "1:p", "model": "m", "run": run}
    common |= {"prompt_tokens": 1000, "completion_tokens": 20}
    asyncio.run(ledger.add(StoredReply(**common, **fields)))
    if close:
        ledger.close()


def test_costs_are_summed_by_model_product_and_run(command, workshop):
    workshop.configure()
    assert command("costs")[1].startswith("No LLM reply was paid for on ")
    bought = {"answered_by": "openai/a", "product": "topics", "value": "[]", "cost_usd": 0.25}
    store(workshop, "monday", close=True, key="a", at="2026-11-23T02:00", **bought)
    rejected = {"answered_by": "ollama/b", "product": "questions"}
    # The run is under way, or was killed: its journal counts.
    store(workshop, "tuesday", close=False, key="b", at="2026-11-24T02:00", **rejected)

    sums = json.loads(command("costs", "--json")[1])
    lines = command("costs")[1].splitlines()

    names = ("replies", "accepted", "prompt_tokens", "completion_tokens", "cost_usd", "unpriced")
    assert [sums["total"][name] for name in names] == [2, 1, 2000, 40, 0.25, 1]
    assert [(row["answered_by"], row["cost_usd"]) for row in sums["models"]] == [
        ("openai/a", 0.25),
        ("ollama/b", 0.0),
    ]
    assert [row["product"] for row in sums["products"]] == ["topics", "questions"]
    assert [row["run"] for row in sums["runs"]] == ["monday", "tuesday"]
    assert " ".join(lines[1].split()) == "openai/a 2026-11-23 02:00 1 1 1,000 20 0.2500"
    assert lines[-1].endswith("0.2500 and 1 reply of unknown price")
