"""`python -m benchmarks peers`: Pegboard's default beside other libraries, in one table."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.documents import missing_places, write_result
from benchmarks.peers.measuring import MEASURES, PEERS, PEGBOARD, measure_set, rows_of
from benchmarks.peers.process import Peers
from benchmarks.peers.sets import TASKS, needed_part, request_sets
from pegboard.cli.main import run_command
from pegboard.errors import ConfigurationError, PegboardError
from pegboard.formatting import difference_text, interval_text, markdown_table, table_lines

EPILOG = """\
The peers and their versions are in benchmarks/peers/requirements.txt; install them into an
environment of their own, with Python 3.12 or later, and name it in --python. What is missing there
or fails is a row that says so. Every peer gets the same tools and requests; those that search by
vectors get those of Pegboard's encoder, over the texts that they compose.

examples:
  python -m benchmarks peers --data benchmarks --real real --python PEERS --board boards
  python -m benchmarks peers ultratool bfcl --data benchmarks --python PEERS --peer ratel_hybrid"""
PAGE = "peers"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    return run_command("python -m benchmarks peers", _parser().parse_args(arguments))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks peers",
        description="Measure Recall@5 and Recall@1 of Pegboard's default strategy and of other "
        "libraries on the same tools and requests, with 95 % bootstrap intervals and paired "
        "differences.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME", choices=[*TASKS, []], help="only these benchmarks")
    add("--data", required=True, metavar="DIR", type=Path, help="holds the benchmarks' folders")
    add("--real", metavar="DIR", type=Path, help="holds the real catalogs, if --data does not")
    add("--python", required=True, metavar="PATH", type=Path, help="the peers' environment")
    add("--peer", action="append", choices=[*PEERS], help="only this one; may be repeated")
    add("--limit", type=int, metavar="N", help="ask at most N queries of each set, drawn at random")
    add("--seed", type=int, default=0, metavar="N", help="of that draw (default: 0)")
    add("--board", metavar="DIR", help="keep boards, vectors and answers here")
    add("--json", metavar="OUT", type=Path, help="write the rows to a file")
    add("--write", metavar="DIR", type=Path, help="put the tables into DIR/results/peers.md")
    add("--quiet", action="store_true", help="show no progress")
    parser.set_defaults(run=_measure)
    return parser


def _measure(options: argparse.Namespace) -> int:
    from benchmarks.run import working_folder
    from tasks.runtime import progress

    if options.write and (problem := missing_places(options.write, [PAGE])):
        raise ConfigurationError(problem)
    names = options.names or [*TASKS]
    with working_folder(options.board) as folder, progress.showing(not options.quiet):
        rows, problems = _rows(names, folder, options)
    for line in problems:
        print(f"python -m benchmarks peers: {line}", file=sys.stderr)
    if options.json:
        text = json.dumps({"rows": rows, "problems": problems}, ensure_ascii=False, indent=1)
        options.json.write_text(text + "\n", "utf-8")
    if options.write:
        write_result(options.write, PAGE, _markdown(rows))
    for title, header, lines in _tables(rows):
        print("\n".join([title, *table_lines(header, lines, "  ")]) + "\n")
    return 0


def _rows(
    names: Sequence[str], folder: Path, options: argparse.Namespace
) -> tuple[list[dict[str, Any]], list[str]]:
    """The rows of the benchmarks that can be read, and why the others cannot."""
    from benchmarks.papers.loading import load_benchmark
    from benchmarks.run import open_boards
    from pegboard.encoders import DEFAULT_ENCODER, load_encoder
    from tasks.lake.files import Lake
    from tasks.lake.query_vectors import CachedQueryEncoder

    encoder = CachedQueryEncoder(load_encoder(DEFAULT_ENCODER), Lake(str(folder / "vectors")))
    python = options.python / "bin" / "python" if options.python.is_dir() else options.python
    peers = Peers(python, folder / "answers", encoder.encode)
    results, problems = [], []
    for name in names:
        data = options.real if name == "real" and options.real else options.data
        try:
            benchmark = load_benchmark(name, data, options.limit, options.seed)
        except PegboardError as error:
            problems.append(f"{name} is left out: {error}")
            continue
        sets = list(request_sets(benchmark))
        boards = open_boards(needed_part(benchmark, sets), folder / name, encoder)
        for requests in sets:
            results += measure_set(requests, boards, peers, options.peer or [*PEERS])
    if not results:
        raise ConfigurationError("\n".join(problems))
    return rows_of(results), problems


def _tables(
    rows: Sequence[dict[str, Any]],
) -> list[tuple[str, list[str], list[tuple[str, ...]]]]:
    """Title, header and lines of each table: both measures, then how far Pegboard is ahead."""
    sets = list(dict.fromkeys(row["set"] for row in rows))
    asked = {row["system"] for row in rows}
    systems = [system for system in (PEGBOARD, *PEERS.values()) if system in asked]
    cells = {(row["system"], row["set"], row.get("measure")): row for row in rows}
    sizes = [max(row.get("n", 0) for row in rows if row["set"] == label) for label in sets]
    header = ["system", *(f"{label} ({n})" for label, n in zip(sets, sizes, strict=True))]
    versions = {row["system"]: row["version"] for row in rows if row.get("version")}
    tables: list[tuple[str, list[str], list[tuple[str, ...]]]] = []
    for measure in map(str, MEASURES):
        lines = [
            (
                f"{system} {versions.get(system, '')}".strip(),
                *(_cell(cells, system, label, measure) for label in sets),
            )
            for system in systems
        ]
        tables.append((measure, header, lines))
    ahead = [
        (system, *(_ahead(cells.get((system, label, str(MEASURES[0])))) for label in sets))
        for system in systems
        if system != PEGBOARD
    ]
    tables.append((f"{MEASURES[0]}: Pegboard above each, p", header, ahead))
    return tables


def _cell(cells: dict[Any, dict[str, Any]], system: str, label: str, measure: str) -> str:
    if row := cells.get((system, label, measure)):
        return interval_text(row)
    failed = cells.get((system, label, None))
    return f"- ({failed['problem']:.60})" if failed else ""


def _ahead(row: dict[str, Any] | None) -> str:
    if row is None:
        return ""
    p = row["ahead"]["p_holm"]
    return f"{difference_text(row['ahead'])}, {'<.001' if p < 0.001 else f'{p:.3f}'}"


def _markdown(rows: Sequence[dict[str, Any]]) -> str:
    parts = [
        "\n".join([f"**{title}**", "", *markdown_table(header, lines)])
        for title, header, lines in _tables(rows)
    ]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    sys.exit(main())
