"""What the performance benchmarks share: timing in turns, and printing."""

import argparse
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from benchmarks.machine import machine, machine_line
from pegboard.formatting import table_lines

REQUESTS = Path(__file__).parents[1] / "real" / "requests"
_requests = count()
PACKAGES = ("pegboard", "lancedb", "pyarrow", "numpy")


def parser_of(document: str | None) -> argparse.ArgumentParser:
    """A parser with --json, whose help is a module's docstring."""
    parser = argparse.ArgumentParser(
        description=document, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def requests(number: int) -> Iterator[str]:
    """Requests in words, made of those of the real catalogs; none comes twice in a process."""
    files = sorted(REQUESTS.glob("*.jsonl"))
    lines = [line for file in files for line in file.read_text("utf-8").splitlines()]
    texts = [json.loads(line)["query"] for line in lines if line.strip()]
    for step in count(number * 7):
        yield f"{texts[step % len(texts)]} {next(_requests)}"


def seconds_of(work: Callable[[], Any]) -> float:
    """How long a call takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def print_rows(name: str, rows: Sequence[Mapping[str, Any]], *, as_json: bool) -> None:
    """Print measurements of equal keys as a table below the machine, or as one JSON object."""
    if as_json:
        print(json.dumps({"machine": machine(*PACKAGES), name: list(rows)}, indent=2))
        return
    print(machine_line(*PACKAGES))
    lines = table_lines([*rows[0]], [[_text(value) for value in row.values()] for row in rows])
    print("\n".join(lines))


def _text(value: Any) -> str:
    return (
        f"{value:,.3f}"
        if isinstance(value, float)
        else f"{value:,}"
        if isinstance(value, int)
        else str(value)
    )
