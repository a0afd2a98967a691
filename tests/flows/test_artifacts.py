"""What a flow run shows of a build, and which steps it retries, as plain functions."""

import json
from functools import partial

import pytest
from prefect.states import Completed, Failed

from flows.cli.printing import run_lines
from flows.prefect.artifacts import change_rows, cost_rows, measure_rows, source_rows
from flows.prefect.progress import STEPS
from flows.prefect.runner import RETRY_SECONDS, step_task, store_failed
from flows.reindex import reindex
from pegboard.errors import PublishError, SourceError, StoreError
from tasks.lake.files import DamagedFile
from tasks.runtime import progress
from tasks.steps.prune import prune_board
from tasks.steps.snapshot import take_snapshot
from tests.openai_server import LITELLM_WARNINGS
from tests.scripted_llm import scripted_llm

pytestmark = LITELLM_WARNINGS

GATE = '[gate]\nqueries = "golden.jsonl"\nrules = ["Recall@1 >= 0.5"]\n'


def test_the_tables_of_a_build_name_its_sources_changes_and_measures(workshop):
    workshop.write("golden.jsonl", '{"query": "open an issue", "tools": ["create_issue"]}\n')
    catalogs = "".join(
        f'[catalogs.{name}]\ntype = "mcp-dump"\npath = "{name}.json"\n' for name in ("kit", "extra")
    )
    configuration = workshop.configure(GATE, catalogs)
    workshop.servers({"git": [workshop.tool("create_issue", "Opens an issue.")]}, "kit.json")
    workshop.servers({"mail": [workshop.tool("send_mail")]}, "extra.json")
    first = reindex(configuration)
    tools = [workshop.tool("create_issue", "Open an issue."), workshop.tool("merge_branch")]
    workshop.servers({"git": tools}, "kit.json")
    (workshop.folder / "extra.json").unlink()

    second = reindex(configuration)

    assert change_rows(first) == cost_rows(first) == []
    assert change_rows(second) == [
        {"change": "changed", "tool": "kit/git/create_issue", "fields": "description"},
        {"change": "new", "tool": "kit/git/merge_branch", "fields": ""},
    ]
    kit, extra = source_rows(second)
    assert (kit["state"], kit["tools"], kit["problem"]) == ("listed", 2, "")
    assert (extra["state"], extra["tools"], extra["kept"]) == ("failed", 1, "*")
    assert "extra.json" in extra["problem"]
    assert [row["passed"] for row in measure_rows(second)] == [True, True]


def test_the_cost_of_a_build_is_a_row_for_each_product_and_adds_up(workshop):
    with scripted_llm() as llm:
        workshop.servers({"git": [workshop.tool(f"tool_{n}", f"Does {n}.") for n in range(4)]})
        configuration = workshop.configure(
            f'[enrich]\nmodel = "openai/scripted"\napi_base = "{llm.url}"\n'
            'products = ["questions", "topics"]\nincomplete = "publish"\n'
            "[enrich.price]\ninput = 1.0\noutput = 2.0\n"
        )
        counted = []
        with progress.observed(lambda step, total, done: counted.append((step, total, done))):
            outcome = reindex(configuration)

    actual = outcome["enrichment"]["actual"]
    rows = cost_rows(outcome)
    assert [row["product"] for row in rows] == ["questions", "topics"]
    assert sum(row["calls"] for row in rows) == actual["replies"] > 0
    tokens = actual["prompt_tokens"] + actual["completion_tokens"]
    assert sum(row["tokens"] for row in rows) == tokens
    assert sum(row["usd"] for row in rows) == pytest.approx(actual["cost_usd"])
    assert run_lines(outcome)
    json.dumps(rows)
    for step in STEPS:
        total = sum(row[1] for row in counted if row[0] == step)
        done = sum(row[2] for row in counted if row[0] == step)
        assert 0 < done <= total


@pytest.mark.parametrize(
    ("error", "retried"),
    [
        (StoreError("the bucket is busy"), True),
        (DamagedFile("a file is damaged"), False),
        (SourceError("the server is down"), False),
        (PublishError("the rows are gone"), False),
        (ValueError("a bug"), False),
    ],
)
def test_only_a_step_whose_store_failed_is_called_again(error, retried):
    assert store_failed(None, None, Failed(data=error)) is retried
    assert store_failed(None, None, Completed(data=1)) is False


def test_a_task_has_the_name_of_its_step_and_the_inputs_of_its_edges_as_parameters():
    source = step_task(partial(take_snapshot, None, "acme", fresh=True), {})
    prune = step_task(partial(prune_board, "board", None), {"outcome": "published"})

    assert (source.name, source.task_run_name) == ("take snapshot", "snapshot acme")
    assert (prune.name, prune.task_run_name) == ("prune board", "prune board")
    assert source.retries == prune.retries == len(RETRY_SECONDS)
