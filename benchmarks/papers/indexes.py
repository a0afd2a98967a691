"""Indexes of one's own for a benchmark: an encoder, a composition of texts, LLM enrichment.

A file has the tables `[[indexes]]` and, if an LLM is to write, `[enrich]` of a pegboard.toml. Each
file gets boards of its own beside those of the benchmark, so that kept boards are never rebuilt
with another index.
"""

import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.papers.benchmark import Benchmark
from pegboard.errors import ConfigurationError

TABLES = ("indexes", "enrich")


@dataclass(frozen=True, slots=True)
class IndexFile:
    """The tables of one file.

    Attributes:
        name: of the boards' folder: the file's, without its ending.
    """

    name: str
    text: str

    @property
    def tables(self) -> Mapping[str, Any]:
        """The tables as values."""
        return tomllib.loads(self.text)

    @property
    def names(self) -> list[str]:
        """The names of its indexes."""
        return [str(index.get("name", "full")) for index in self.tables["indexes"]]

    def with_replies(
        self, folder: str | None, missing: str | None, incomplete: str | None = None
    ) -> "IndexFile":
        """The file with recorded replies in its table `[enrich]`, if it has one.

        Args:
            incomplete: what a build does that lacks replies: `stop` or `publish`.
        """
        if folder is None:
            return self
        lines = [f"replies = {json.dumps(str(Path(folder).absolute()))}"]
        lines += [f"missing_replies = {json.dumps(missing)}"] if missing else []
        lines += [f"incomplete = {json.dumps(incomplete)}"] if incomplete else []
        table = "\n".join(["[enrich]", *lines])
        return replace(self, text=re.sub(r"(?m)^\[enrich\]$", lambda _: table, self.text))

    def applied_to(self, benchmark: Benchmark) -> Benchmark:
        """The benchmark with these indexes on all its boards."""
        boards = (replace(board, indexes=self.text) for board in benchmark.boards)
        return replace(benchmark, boards=tuple(boards))


def read_index_files(paths: Sequence[str]) -> list[IndexFile]:
    """Read the files of --index. Raises ConfigurationError with the problems of all files.

    The pipeline checks the tables' own options when it builds.
    """
    files: list[IndexFile] = []
    problems: list[str] = []
    for path in map(Path, paths):
        try:
            file = IndexFile(path.stem, path.read_text("utf-8"))
            problems += [f"{path}: {problem}" for problem in _problems(file)]
        except (OSError, ValueError) as error:
            problems.append(f"{path}: {getattr(error, 'strerror', None) or error}")
        else:
            files.append(file)
    if not problems:
        problems += [f"two files are called {name}" for name in _repeated(f.name for f in files)]
        names = (name for file in files for name in file.names)
        problems += [
            f"two indexes are called {name}; rows name them, so each needs a name of its own"
            for name in _repeated(names)
        ]
    if problems:
        raise ConfigurationError.from_problems(
            "--index", problems, "Expected [[indexes]], and [enrich] if an LLM is to write."
        )
    return files


def _problems(file: IndexFile) -> Iterator[str]:
    tables = file.tables
    if other := sorted(tables.keys() - set(TABLES)):
        yield f"{', '.join(other)}: only the tables {' and '.join(TABLES)} can be chosen here"
    if not isinstance(tables.get("indexes"), list):
        yield "it has no [[indexes]]"


def _repeated(names: Iterator[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]
