"""What papers report on the benchmarks, and how their set-ups differ from ours.

Figures are of the whole benchmarks, in `published.tsv`; measures under the names of
`pegboard.evaluation.measures`.
"""

import csv
from pathlib import Path
from typing import Any


def _published() -> list[dict[str, Any]]:
    with Path(__file__).with_name("published.tsv").open(encoding="utf-8", newline="") as file:
        systems = list(csv.DictReader(file, delimiter="\t"))
    return [
        {
            **{name: system[name] for name in ("benchmark", "task", "system", "source")},
            "measure": measure,
            "value": float(value),
        }
        for system in systems
        for measure, _, value in (cell.partition("=") for cell in system["measures"].split())
    ]


PUBLISHED: list[dict[str, Any]] = _published()
"""One row for each figure: {benchmark, task, system, source, measure, value}."""
SETUPS: dict[str, str] = {
    "seal-tools": "Toolshed asks GPT-4o to decompose, expand and rerank, and writes questions for "
    "every tool; here nothing is written and no "
    "LLM is asked. BM25 is higher than the paper's, since names are cut into words "
    "(`getHealthWorkforce`) and arguments are indexed.",
    "metatool": "Toolshed and Re-Invoke write questions for the tools; here the catalog's own "
    "example queries, where there are some, are "
    "example requests of the plugins. Two tools: their catalog has no example queries, and recall "
    "at 1 cannot exceed .5.",
    "toollinkos": "The paper embeds name and description by ada-002 (the index `brief` has those; "
    "`full` has the arguments, too), searches "
    "by Azure's hybrid search and follows declared dependencies. It gives no formula for mAP: "
    "here it is trec_eval's, divided by the number of "
    "needed tools. `dependencies-inferred` sees no declared dependency.",
    "toolsandbox": "As for toollinkos. The paper's 33 tools are few, and a tool has 1.6 "
    "dependencies in the mean.",
    "livemcpbench": "The paper asks all steps of 95 questions, and does not say how a step gets "
    "its agents; here `step-agent` asks those "
    "steps that have a tool of their own. Its mAP at 5 is below its recall at 1, so its steps "
    "have several right agents, and ours one.",
    "ultratool": "The paper's figures are of 2,032 tools and of the sets that its LLM selects, "
    "not of the first k. "
    "`given-steps` asks the steps of the benchmark's own plan, which no system has in "
    "advance: it bounds what decomposition can give. With an LLM, `given-steps-selected` also "
    "selects for each step.",
    "toolret": "The paper's figures are of ToolRet-Web, 37,292 tools, of the sets that an LLM "
    "selects. Queries without their instructions, but "
    "for the task `instructed`.",
    "bfcl": "No figure of a paper: its authors measure models that are handed the right functions. "
    "Here the functions of all its tasks are one catalog.",
    "acebench-en": "No figure of a paper: its authors measure models that are handed a few APIs. "
    "Here the APIs of all its tasks are one catalog, and a request is all that the user says in a "
    "dialogue.",
    "real": "No figure of a paper. `mean` weighs every catalog alike, whatever its number of "
    "requests, and so do the means over requests of one kind; their intervals are bootstrapped "
    "within each catalog.",
}
"""For each benchmark what differs from the set-up of the papers."""
DECIDED_BY: dict[str, str] = {
    "toollinkos": "mAP@10",
    "toolsandbox": "mAP@10",
    "toolret": "nDCG@10",
}
"""The measure by which strategies are compared; Recall@5 elsewhere."""
SHOWN: dict[str, tuple[str, ...]] = {
    "seal-tools": ("Recall@1", "Recall@5", "Recall@10"),
    "metatool": ("Recall@1", "Recall@5", "Recall@10"),
    "toollinkos": ("mAP@10", "Recall@10", "nDCG@10"),
    "toolsandbox": ("mAP@10", "Recall@10", "nDCG@10"),
    "livemcpbench": ("Recall@1", "Recall@3", "Recall@5", "nDCG@5"),
    "ultratool": ("Recall@5", "Recall@10", "F1@5"),
    "toolret": ("nDCG@10", "Recall@10", "Complete@10"),
    "bfcl": ("Recall@1", "Recall@5", "Recall@10"),
    "acebench-en": ("Recall@1", "Recall@5", "Recall@10"),
    "real": ("Recall@1", "Recall@3", "Recall@5", "Recall@10"),
}
"""The measures that tables show; the rows as JSON have more."""
