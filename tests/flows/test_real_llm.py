"""`pegboard build` with a real LLM of 135M parameters: what it writes is published."""

import json
import subprocess
import sys

import pytest

import pegboard
from tasks.enrichment.ledger import LakeLedger

TOOLS = {
    f"{verb}_{thing}": f"{verb.title()}s a {thing} for a customer."
    for verb in ("open", "list", "merge", "book", "cancel")
    for thing in ("repository", "forecast", "lunch", "flight")
}
ENRICH = """
[enrich]
model = "hosted_vllm/smollm2"
api_base = "{}"
products = ["questions"]
incomplete = "publish"  # most replies of so small a model are rejected
questions = 3
concurrency = 1
max_reply_tokens = 100
timeout = 300
price = {{ input = 0.1, output = 0.4 }}
"""


@pytest.mark.slow
@pytest.mark.timeout(1_200)
def test_a_real_model_writes_about_twenty_tools(workshop, local_llm, alone):
    workshop.servers({"office": [workshop.tool(name, text) for name, text in TOOLS.items()]})
    workshop.configure(ENRICH.format(local_llm))

    done = subprocess.run(
        [sys.executable, "-m", "pegboard", "build", "--json", "--quiet"],
        cwd=workshop.folder,
        env=alone,
        capture_output=True,
        text=True,
        timeout=1_100,
    )

    assert done.returncode == 0, done.stderr
    run = json.loads(done.stdout)
    used = run["enrichment"]["actual"]
    rejected = used["rejected"].get("questions", {})
    assert used["calls"] == {"answered": used["replies"]}
    assert 20 <= used["replies"] <= 40  # one for each tool, and repairs
    assert used["prompt_tokens"] > 20 * 400
    cost = (used["prompt_tokens"] * 0.1 + used["completion_tokens"] * 0.4) / 1e6
    assert used["cost_usd"] == pytest.approx(cost, rel=1e-3)
    assert sum(used["accepted"].values()) + sum(rejected.values()) == 20

    entries = list(LakeLedger(workshop.lake).load().all())
    assert len(entries) == used["replies"]
    assert all(entry.seconds > 0 and entry.completion_tokens > 0 for entry in entries)
    hits = pegboard.open(workshop.uri).search("lunch", k=20)
    published = [hit.tool.enrichment.questions for hit in hits if hit.tool.enrichment]
    assert len(published) == used["accepted"]["questions"]
