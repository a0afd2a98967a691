"""What papers report on the benchmarks, as data, and how what is measured here differs from what
they measured.

Figures are of the whole benchmarks; measures under the names of `pegboard.evaluation.measures`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

TOOLSHED = "Lumer and others, Toolshed, 2024, table I"
GRAPH = "Lumer and others, Graph RAG-Tool Fusion, 2025, table 3"
AGENTS = "Lumer and others, Tool-to-Agent Retrieval, 2025, tables 1 and 2"
STRATEGIES = "Kamiński and others, Too Many Tools, Too Much Confusion, 2026"


@dataclass(frozen=True, slots=True)
class Published:
    """The figures of one system on one task."""

    benchmark: str
    task: str
    system: str
    values: Mapping[str, float]
    source: str

    def rows(self) -> list[dict[str, Any]]:
        """One row for each measure, as JSON values."""
        named = {"task": self.task, "system": self.system, "source": self.source}
        return [
            {**named, "measure": measure, "value": value} for measure, value in self.values.items()
        ]


def _recalls(*values: float | None, at: tuple[int, ...] = (1, 5, 10)) -> dict[str, float]:
    return {f"Recall@{k}": value for k, value in zip(at, values, strict=True) if value is not None}


def _linked(
    maps: tuple[float, ...], recalls: tuple[float, ...], gains: tuple[float, ...]
) -> dict[str, float]:
    kinds = {"mAP": maps, "Recall": recalls, "nDCG": gains}
    return {
        f"{kind}@{k}": value
        for kind, own in kinds.items()
        for k, value in zip((10, 20, 30), own, strict=True)
    }


def _agents(
    system: str, recalls: tuple[float, ...], maps: tuple[float, ...], gains: tuple[float, ...]
) -> Published:
    kinds = {"Recall": recalls, "mAP": maps, "nDCG": gains}
    ks = (1, 3, 5) if len(recalls) == 3 else (5,)
    values = {
        f"{kind}@{k}": value
        for kind, own in kinds.items()
        for k, value in zip(ks, own, strict=True)
    }
    return Published("livemcpbench", "step-agent", system, values, AGENTS)


PUBLISHED: tuple[Published, ...] = (
    Published("seal-tools", "all", "BM25", _recalls(None, 0.410, 0.550), TOOLSHED),
    Published("seal-tools", "all", "Seal-Tools' DPR", _recalls(None, 0.480, 0.680), TOOLSHED),
    Published(
        "seal-tools",
        "all",
        "Toolshed (GPT-4o, text-embedding-3-large)",
        _recalls(None, 0.876, 0.965),
        TOOLSHED,
    ),
    Published("metatool", "single", "BM25", _recalls(0.272, 0.462, None), TOOLSHED),
    Published("metatool", "single", "Re-Invoke", _recalls(0.672, 0.871, None), TOOLSHED),
    Published(
        "metatool",
        "single",
        "Toolshed (GPT-4o, text-embedding-3-large)",
        _recalls(0.726, 0.928, None),
        TOOLSHED,
    ),
    Published("metatool", "multi", "BM25", _recalls(0.093, 0.335, None), TOOLSHED),
    Published("metatool", "multi", "Re-Invoke", _recalls(0.333, 0.801, None), TOOLSHED),
    Published(
        "metatool",
        "multi",
        "Toolshed (GPT-4o, text-embedding-3-large)",
        _recalls(0.400, 0.894, None),
        TOOLSHED,
    ),
    Published(
        "toolsandbox",
        "all",
        "BM25",
        _linked((0.215, 0.217, 0.217), (0.301, 0.307, 0.307), (0.303, 0.306, 0.306)),
        GRAPH,
    ),
    Published(
        "toolsandbox",
        "all",
        "naive RAG (ada-002)",
        _linked((0.440, 0.488, 0.505), (0.663, 0.850, 0.962), (0.606, 0.682, 0.720)),
        GRAPH,
    ),
    Published(
        "toolsandbox",
        "all",
        "hybrid RAG (ada-002)",
        _linked((0.431, 0.478, 0.497), (0.665, 0.854, 0.968), (0.592, 0.669, 0.708)),
        GRAPH,
    ),
    Published(
        "toolsandbox",
        "all",
        "Graph RAG-Tool Fusion",
        _linked((0.521, 0.571, 0.571), (0.598, 0.833, 0.833), (0.601, 0.692, 0.692)),
        GRAPH,
    ),
    Published(
        "toolsandbox",
        "all",
        "Graph RAG-Tool Fusion, reranked by GPT-4o",
        _linked((0.661, 0.697, 0.697), (0.704, 0.833, 0.833), (0.740, 0.795, 0.795)),
        GRAPH,
    ),
    Published(
        "toollinkos",
        "all",
        "BM25",
        _linked((0.185, 0.191, 0.194), (0.253, 0.293, 0.316), (0.311, 0.329, 0.338)),
        GRAPH,
    ),
    Published(
        "toollinkos",
        "all",
        "naive RAG (ada-002)",
        _linked((0.210, 0.216, 0.217), (0.257, 0.216, 0.302), (0.350, 0.365, 0.370)),
        GRAPH,
    ),
    Published(
        "toollinkos",
        "all",
        "hybrid RAG (ada-002)",
        _linked((0.202, 0.208, 0.209), (0.265, 0.298, 0.314), (0.337, 0.353, 0.359)),
        GRAPH,
    ),
    Published(
        "toollinkos",
        "all",
        "Graph RAG-Tool Fusion",
        _linked((0.856, 0.873, 0.873), (0.943, 0.976, 0.976), (0.891, 0.908, 0.908)),
        GRAPH,
    ),
    Published(
        "toollinkos",
        "all",
        "Graph RAG-Tool Fusion, reranked by GPT-4o",
        _linked((0.927, 0.938, 0.938), (0.958, 0.976, 0.976), (0.944, 0.954, 0.954)),
        GRAPH,
    ),
    _agents("BM25", (0.20, 0.20, 0.20), (0.12, 0.12, 0.12), (0.14, 0.14, 0.14)),
    _agents("Q.Retrieval", (0.31, 0.47, 0.56), (0.31, 0.31, 0.24), (0.31, 0.35, 0.32)),
    _agents("MCPZero", (0.44, 0.66, 0.70), (0.45, 0.39, 0.31), (0.45, 0.46, 0.41)),
    _agents("ScaleMCP", (0.49, 0.68, 0.74), (0.49, 0.40, 0.29), (0.49, 0.48, 0.40)),
    _agents("Tool-to-Agent", (0.61, 0.77, 0.83), (0.61, 0.49, 0.34), (0.61, 0.56, 0.46)),
    _agents("Tool-to-Agent (text-embedding-3-large)", (0.87,), (0.38,), (0.50,)),
    _agents("Tool-to-Agent (all-MiniLM-L6-v2)", (0.80,), (0.33,), (0.45,)),
    Published(
        "livemcpbench",
        "direct-tool",
        "callbus (Qwen3-Embedding-8B)",
        {"Recall@5": 0.508},
        "callbus's documentation",
    ),
    Published(
        "livemcpbench",
        "direct-tool",
        "callbus, with learned heads",
        {"Recall@5": 0.535},
        "callbus's documentation",
    ),
    Published(
        "ultratool", "all", "RAG only, end to end", {"Recall": 0.340, "F1": 0.362}, STRATEGIES
    ),
    Published(
        "ultratool",
        "all",
        "RAG, context decomposition, end to end",
        {"Recall": 0.494, "F1": 0.329},
        STRATEGIES,
    ),
    Published(
        "ultratool",
        "all",
        "RPS, augmented descriptions, end to end",
        {"Recall": 0.392, "F1": 0.353},
        STRATEGIES,
    ),
    Published("toolret", "all", "RAG only, end to end", {"Recall": 0.300, "F1": 0.242}, STRATEGIES),
    Published(
        "toolret",
        "all",
        "RAG, context decomposition, end to end",
        {"Recall": 0.347, "F1": 0.227},
        STRATEGIES,
    ),
    Published(
        "toolret",
        "all",
        "RPS, augmented descriptions, end to end",
        {"Recall": 0.343, "F1": 0.214},
        STRATEGIES,
    ),
)
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
    "`strategy-steps` asks the steps of the benchmark's own strategy, which no system has in "
    "advance: it bounds what decomposition can give.",
    "toolret": "The paper's figures are of ToolRet-Web, 37,292 tools, of the sets that an LLM "
    "selects. Queries without their instructions, but "
    "for the task `instructed`.",
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
}
"""The measures that tables show; the rows as JSON have more."""


def published_for(benchmark: str, task: str) -> list[Published]:
    """What papers report on a task."""
    return [one for one in PUBLISHED if (one.benchmark, one.task) == (benchmark, task)]
