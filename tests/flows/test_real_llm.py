"""`pegboard build` with a real LLM: a model of 135M parameters on loopback. It writes a lot of
nonsense, and the filter says so.
"""

import json
import os
import subprocess
import sys

import polars as pl
import pytest

import pegboard
from tasks.enrichment.ledger import LakeLedger

TOOLS = {
    "create_issue": "Opens an issue in a repository.",
    "list_commits": "Lists the commits of a branch.",
    "merge_branch": "Merges a branch into another.",
    "get_forecast": "The weather forecast of a city for the next days.",
    "get_tides": "High and low tide at a harbour.",
    "order_lunch": "Orders lunch for the office.",
    "book_room": "Books a meeting room.",
    "call_taxi": "Calls a taxi to an address.",
    "convert_currency": "Converts an amount of money from one currency to another.",
    "list_exchange_rates": "Lists the exchange rates of today.",
    "send_email": "Sends an email to a person.",
    "search_flights": "Finds flights between two cities on a day.",
    "cancel_booking": "Cancels a booking of a hotel or a flight.",
    "play_song": "Plays a song by its title.",
    "translate_text": "Translates a text into another language.",
    "find_recipe": "Finds a recipe for given ingredients.",
    "set_alarm": "Sets an alarm at a time of day.",
    "track_parcel": "Tells where a parcel is by its number.",
    "resize_image": "Changes the size of an image.",
    "water_plants": "Waters the plants of a garden bed.",
}


@pytest.mark.slow
@pytest.mark.timeout(1_200)
def test_a_real_model_writes_about_twenty_tools_and_the_filter_drops_its_nonsense(
    workshop, local_llm
):
    workshop.servers({"office": [workshop.tool(name, said) for name, said in TOOLS.items()]})
    workshop.configure(
        f'[enrich]\nmodel = "hosted_vllm/smollm2"\napi_base = "{local_llm}"\nproducts = '
        f'["questions"]\nquestions = 3\n'
        "concurrency = 1\nmax_reply_tokens = 100\ntimeout = 300\nprice = {input = 0.1, output = "
        "0.4}\n"
    )
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PREFECT_", "PEGBOARD_"))
    }
    done = subprocess.run(
        [sys.executable, "-m", "pegboard", "build", "--json", "--quiet"],
        cwd=workshop.folder,
        env={**kept, "HOME": str(workshop.folder / "home")},
        capture_output=True,
        text=True,
        timeout=1_100,
    )
    assert done.returncode == 0, done.stderr
    run = json.loads(done.stdout)

    used, asked = run["enrichment"]["actual"], run["filter"]["questions"]
    assert used["calls"] == {"hosted_vllm/smollm2": {"answered": used["replies"]}}
    assert 20 <= used["replies"] <= 40  # one for each tool, and repairs
    assert used["prompt_tokens"] > 20 * 400
    assert used["cost_usd"] == pytest.approx(
        (used["prompt_tokens"] * 0.1 + used["completion_tokens"] * 0.4) / 1e6, rel=1e-3
    )
    assert (
        sum(used["accepted"].values()) + sum(used["rejected"].get("questions", {}).values()) == 20
    )

    assert 0 < asked["kept"] < asked["written"]
    dropped = workshop.lake.read(run["filter"]["path"]).filter(~pl.col("kept"))
    assert dropped.height == asked["dropped"]
    assert set(dropped.get_column("winner").to_list()) - {""} <= {
        f"kit/office/{name}" for name in TOOLS
    }

    entries = list(LakeLedger(workshop.lake).load().all())
    assert len(entries) == used["replies"]
    assert all(entry.seconds > 0 and entry.completion_tokens > 0 for entry in entries)

    board = pegboard.open(workshop.uri)
    published = [
        hit.tool.enrichment.questions for hit in board.search("tide", k=20) if hit.tool.enrichment
    ]
    assert sum(len(questions) for questions in published) == asked["kept"]
