"""The headline of docs/results.md: a few figures of each page of results, read from its tables."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from benchmarks.papers.published import PUBLISHED
from pegboard.formatting import markdown_table

HEADLINE = "headline"
"""Name of the marks between which the headline stands."""
UNKNOWN = "-"
"""Stands for a figure that no page has."""
TITLE = re.compile(r"\*\*(.+)\*\*")
VALUE = re.compile(r"-?\d+\.\d+")


@dataclass(frozen=True, slots=True)
class PageTable:
    """A table of a page.

    Attributes:
        title: the bold line above it, up to its colon; empty without one.
        header: the names of its columns.
        rows: the cells of its lines.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Results:
    """The tables between the marks of the pages in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @cached_property
    def tables(self) -> dict[str, list[PageTable]]:
        """The tables of each page, by its name."""
        pages = sorted(self._folder.glob("*.md"))
        return {page.stem: list(_tables(page.read_text("utf-8"))) for page in pages}

    def table(self, page: str, title: str = "") -> PageTable | None:
        """Return the table with that title; None if the page has none."""
        matching = (table for table in self.tables.get(page, []) if table.title == title)
        return next(matching, None)

    def figures(self, page: str, title: str, row: Sequence[str], columns: Sequence[str]) -> str:
        """Return a row's figures as `.963 / .980`; `-` for each that the page lacks.

        Args:
            row: the first cells of the row.
            columns: names of columns; of two columns with one name the first is read.
        """
        table = self.table(page, title)
        cells = _cells(table, row) if table else {}
        return " / ".join(short_figure(cells.get(column, "")) for column in columns)


def short_figure(cell: str) -> str:
    """The first figure of a cell without its leading zero: `.963` of `0.963 [0.954, 0.973]`."""
    value = VALUE.search(cell)
    if value is None:
        return UNKNOWN
    return re.sub(r"^(-?)0\.", r"\1.", value[0])


def headline(folder: Path) -> str:
    """Return the headline tables of the pages in a folder, as Markdown."""
    results = Results(folder)
    tables = {
        "Beside what papers report": (["", "published", "here"], _papers(results)),
        "Eight real catalogs, mean": (["", "Recall@1 / Recall@5"], _real(results)),
        "Beside other libraries, Recall@5": (
            ["", "Pegboard", "best of the others"],
            _peers(results),
        ),
        "Requests that no tool fits": (
            ["", "AUROC", "unrelated requests accepted, where 95 % of the others are"],
            _abstention(results),
        ),
    }
    parts = (
        "\n".join([f"**{title}**", "", *markdown_table(header, rows)])
        for title, (header, rows) in tables.items()
    )
    return "\n\n".join(parts) + "\n"


def _papers(results: Results) -> list[tuple[str, str, str]]:
    at_5, at_5_and_10, at_1_and_5 = (
        ["Recall@5"],
        ["Recall@5", "Recall@10"],
        ["Recall@1", "Recall@5"],
    )
    toolshed = "Toolshed (GPT-4o, text-embedding-3-large)"

    def seal(strategy: str) -> str:
        return results.figures("seal-tools", "seal-tools, all", [strategy], at_5_and_10)

    def multi(strategy: str) -> str:
        return results.figures("metatool", "metatool, multi", [strategy], at_5)

    def linked(strategy: str, index: str) -> str:
        return results.figures("toollinkos", "toollinkos, all", [strategy, index], ["mAP@10"])

    def agents(strategy: str) -> str:
        return results.figures("livemcpbench", "livemcpbench, step-agent", [strategy], at_5)

    def ultra(strategy: str) -> str:
        return results.figures("ultratool", "ultratool, all", [strategy], at_5)

    one_tool = results.figures("metatool", "metatool, single", ["clauses"], at_1_and_5)
    return [
        (
            "[Seal-Tools](results/seal-tools.md), Recall@5 / Recall@10",
            f"Toolshed {_published('seal-tools', 'all', toolshed, at_5_and_10)} (GPT-4o, "
            f"text-embedding-3-large); BM25 {_published('seal-tools', 'all', 'BM25', at_5_and_10)}",
            f"`clauses` {seal('clauses')}; one search {seal('hybrid')}; BM25 {seal('BM25')}",
        ),
        (
            "[ToolE](results/metatool.md) (MetaTool), one tool, Recall@1 / Recall@5",
            f"Toolshed {_published('metatool', 'single', toolshed, at_1_and_5)}; "
            f"Re-Invoke {_published('metatool', 'single', 'Re-Invoke', at_1_and_5)}",
            f"`clauses` {one_tool}",
        ),
        (
            "[ToolE](results/metatool.md) (MetaTool), two tools, Recall@5",
            f"Toolshed {_published('metatool', 'multi', toolshed, at_5)}; "
            f"Re-Invoke {_published('metatool', 'multi', 'Re-Invoke', at_5)}",
            f"`clauses` {multi('clauses')}; one search by vectors {multi('vector')}",
        ),
        (
            "[ToolLinkOS](results/toollinkos.md), mAP@10",
            f"Graph RAG-Tool Fusion {_toollinkos('Graph RAG-Tool Fusion')}, with an LLM reranker "
            f"{_toollinkos('Graph RAG-Tool Fusion, reranked by GPT-4o')}; "
            f"naive {_toollinkos('naive RAG (ada-002)')}",
            f"declared dependencies {linked('dependencies-declared', 'full')} (name and "
            f"description only, by vectors, {linked('dependencies-declared-vector', 'brief')}); "
            f"inferred {linked('dependencies-inferred', 'full')}; none {linked('hybrid', 'full')}",
        ),
        (
            "[UltraTool](results/ultratool.md)",
            "Retrieval-Plan-Select, 2,032 tools, recall of what its LLM selects: end to end "
            f"{_ultratool('RPS end to end (context decomposition, augmented tools)')}; RAG with "
            "context decomposition "
            f"{_ultratool('RAG, context decomposition, vanilla tools')}; "
            f"RAG only {_ultratool('RAG only')}",
            f"Recall@5 of fewer tools: one search {ultra('hybrid')}, `clauses` {ultra('clauses')}, "
            f"the benchmark's own steps {ultra('given-steps')}",
        ),
        (
            "[LiveMCPBench](results/livemcpbench.md), agents for a step, Recall@5",
            f"Tool-to-Agent {_published('livemcpbench', 'step-agent', 'Tool-to-Agent', at_5)}; "
            "with all-MiniLM-L6-v2 "
            f"{_published('livemcpbench', 'step-agent', 'Tool-to-Agent (all-MiniLM-L6-v2)', at_5)}",
            f"by vectors: tools and agents {agents('both-vector')}, agents alone "
            f"{agents('agents-vector')}",
        ),
    ]


def _toollinkos(system: str) -> str:
    return _published("toollinkos", "all", system, ["mAP@10"])


def _ultratool(system: str) -> str:
    return _published("ultratool", "all", system, ["Recall"])


def _published(benchmark: str, task: str, system: str, measures: Sequence[str]) -> str:
    values = {
        row["measure"]: f"{row['value']:.3f}"
        for row in PUBLISHED
        if (row["benchmark"], row["task"], row["system"]) == (benchmark, task, system)
    }
    return " / ".join(short_figure(values[measure]) for measure in measures)


def _real(results: Results) -> list[tuple[str, str]]:
    columns = ["Recall@1", "Recall@5"]
    rows = {
        "the default strategy": ["default"],
        "one search": ["hybrid"],
        "by vectors": ["vector"],
        "by words (BM25)": ["BM25"],
    }
    lines = [
        (name, results.figures("real", "real, mean", row, columns)) for name, row in rows.items()
    ]
    left_out = results.figures("ranker", "", ["mean of real catalogs"], ["left out: R@1", "R@5"])
    return [
        *lines,
        (
            "the default strategy with a [ranker](results/ranker.md) fitted without the catalog",
            left_out,
        ),
    ]


def _peers(results: Results) -> list[tuple[str, str, str]]:
    table = results.table("peers", "Recall@5")
    if table is None:
        return []
    own, *others = table.rows
    lines: list[tuple[str, str, str]] = []
    for place, requests in enumerate(table.header[1:], 1):
        best = max(others, key=lambda row: short_figure(row[place]))
        name = best[0].rpartition(" ")[0]
        lines.append((requests, short_figure(own[place]), f"{name} {short_figure(best[place])}"))
    return lines


def _abstention(results: Results) -> list[tuple[str, str, str]]:
    table = results.table("abstention")
    if table is None:
        return []
    return [
        (f"{boards}, by the {decider}", short_figure(auroc), short_figure(accepted))
        for boards, decider, auroc, accepted, *_ in table.rows
    ]


def _cells(table: PageTable, row: Sequence[str]) -> Mapping[str, str]:
    """The cells of a row by column, of columns with one name the first; empty without the row."""
    line = next((line for line in table.rows if [*line[: len(row)]] == [*row]), ())
    named = zip(table.header, line, strict=False)
    return dict(reversed([*named]))


def _tables(text: str) -> Iterator[PageTable]:
    """The tables of a page that stand between the marks of a program."""
    title = ""
    lines: list[tuple[str, ...]] = []
    for line in [*_written_lines(text), ""]:
        if line.startswith("|"):
            lines.append(tuple(cell.strip() for cell in line.strip("|\n ").split(" | ")))
            continue
        if lines:
            header, _, *rows = lines
            yield PageTable(title.partition(":")[0], header, tuple(rows))
            title, lines = "", []
        if bold := TITLE.fullmatch(line):
            title = bold[1]


def _written_lines(text: str) -> list[str]:
    blocks = re.findall(r"<!-- bench ([\w-]+) -->\n(.*?)<!-- /bench \1 -->", text, re.DOTALL)
    return [line for _, block in blocks for line in block.splitlines()]
