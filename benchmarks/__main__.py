"""`python -m benchmarks`: what Pegboard finds on the public benchmarks, in their own file formats,
beside what papers report.
"""

import argparse
import gc
import json
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.papers import NAMES
from flows.cli.options import add_prefect_option
from flows.prefect.server import use_prefect
from pegboard.cli.main import run_command
from pegboard.cli.output import print_json
from pegboard.errors import ConfigurationError, PegboardError

if TYPE_CHECKING:
    from benchmarks.papers.benchmark import Benchmark

EPILOG = """\
{names}
  all              every one of these whose folder is in --data; those missing are said and skipped

Boards are built by the pipeline, with the embedded encoder and without an LLM, and asked through the reader. Rows that cannot be used
are counted and said. Tools that a query needs and no catalog has count as not found; steps and tools of ultratool and livemcpbench that
name no known tool are left out, and counted.

tasks (in the rows of --json)
  all, single, multi    queries for tools: all, those that need one, those that need several (metatool: its two tasks, of two catalogs);
                        seal-tools with several files of queries has each file as a task, too; toolret each category, and `instructed`:
                        every query behind its instruction
  direct-tool           livemcpbench: a question, for its tools
  step-tool             a step that has a tool of its own (as many steps as tools in its question), for that tool
  step-agent            the same step, for a server that owns the tool
  step-agent-all        every step, for the servers of all tools of its question (it needs one of them, so 1 is out of reach)
  direct-agent          a question, for the servers of all its tools

strategies
{strategies}
  and any strategy of your own: a JSON file, or JSON (`pegboard find --strategies`, docs/reference/strategies.md). By default: everything above that needs no
  LLM and fits the benchmark; with --llm the others as well. The library's strategy `search` is called hybrid here.

Rows: {{task, strategy, index, encoder, measure, value, low, high, n}}, with 95 % bootstrap intervals over queries. `differences` compare every strategy
with `hybrid` (agents: `agents-hybrid`) by a paired randomisation test; p_holm is for the number of strategies (Holm).

examples:
  python -m benchmarks seal-tools --data benchmarks/seal-tools
  python -m benchmarks toollinkos --data benchmarks/toollinkos --board kept --strategy hybrid --strategy dependencies-declared --json out.json
  python -m benchmarks all --data benchmarks --board kept --write docs/results.md
  python -m benchmarks metatool --data benchmarks/metatool --limit 200 --strategy rag-tool-fusion --strategy hybrid --llm openai/gpt-4o-mini"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    options = _parser().parse_args(arguments)
    return run_command("python -m benchmarks", options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Build the boards of a public benchmark from its own files, ask them by "
        "several strategies, and measure what is found.",
        epilog=_epilog(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "names",
        nargs="+",
        metavar="NAME",
        choices=[*NAMES, "all"],
        help=f"{', '.join(NAMES)}, or all",
    )
    parser.add_argument(
        "--data",
        required=True,
        metavar="DIR",
        help="the benchmark's folder, or one that holds it under its name",
    )
    parser.add_argument(
        "--strategy",
        action="append",
        default=[],
        metavar="PLAN",
        help="only this strategy; may be repeated (names below)",
    )
    parser.add_argument(
        "--board", metavar="DIR", help="keep the boards here, and find them again the next time"
    )
    parser.add_argument(
        "--measures",
        nargs="+",
        default=[],
        metavar="MEASURE",
        help="such as Recall@5 nDCG@10 Complete@10 mAP@20 MRR@10",
    )
    parser.add_argument(
        "--limit",
        type=int,
        metavar="N",
        help="ask at most so many queries of each kind, drawn at random",
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="of that draw (default: 0)"
    )
    parser.add_argument(
        "--llm",
        metavar="MODEL",
        help="a LiteLLM model for strategies that ask one, such as openai/gpt-4o-mini",
    )
    parser.add_argument(
        "--llm-api-base", "--api-base", metavar="URL", help="where that model is served"
    )
    parser.add_argument(
        "--llm-timeout", type=float, metavar="SECONDS", help="for each question to it (default: 10)"
    )
    parser.add_argument(
        "--json",
        nargs="?",
        const="-",
        metavar="OUT",
        help="write the result as JSON into a file; to stdout without one",
    )
    parser.add_argument(
        "--write",
        metavar="FILE",
        help="put the tables into a document, between its marks <!-- bench NAME -->",
    )
    add_prefect_option(parser)
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    parser.set_defaults(run=_bench)
    return parser


def _epilog() -> str:
    from benchmarks.papers.strategies import DESCRIPTIONS

    def listed(names: dict[str, str], width: int) -> str:
        indent = " " * (width + 4)
        return "\n".join(
            textwrap.fill(
                what, 124, initial_indent=f"  {name:<{width}}  ", subsequent_indent=indent
            )
            for name, what in names.items()
        )

    return EPILOG.format(names=listed(NAMES, 15), strategies=listed(DESCRIPTIONS, 28))


def _bench(options: argparse.Namespace) -> int:
    from benchmarks.papers.strategies import chosen_of
    from benchmarks.papers.tables import markdown, missing_marks, printed, write_between_marks
    from pegboard.evaluation.measures import measures_of

    _check(options)
    chosen, measures = chosen_of(options.strategy), tuple(measures_of(options.measures))
    benchmarks, missing = _loaded(options)
    document = Path(options.write) if options.write else None
    if document and (problem := missing_marks(document, [one.name for one in benchmarks])):
        raise ConfigurationError(problem)
    for name in missing:
        print(
            f"python -m benchmarks: {name} is skipped: {options.data} has no folder of that name",
            file=sys.stderr,
        )

    gc.set_threshold(100_000, 50, 50)  # imports make objects, not garbage
    from benchmarks.run import BenchSettings, run_benchmark, working_folder
    from tasks import progress

    told = {"api_base": options.llm_api_base, "timeout": options.llm_timeout}
    llm_options = {name: value for name, value in told.items() if value is not None}
    settings = BenchSettings(
        chosen, measures, options.llm, llm_options, prefect=use_prefect(options.prefect)
    )
    results: list[dict[str, Any]] = []
    with (
        working_folder(Path(options.board) if options.board else None) as folder,
        progress.showing(not options.quiet),
    ):
        try:
            for benchmark in benchmarks:
                result = run_benchmark(benchmark, folder, settings)
                results.append(result)
                if options.json not in (None, "-"):
                    _write_json(Path(options.json), _as_json(options, results, missing))
                if document:
                    write_between_marks(document, benchmark.name, markdown(result))
                if options.json != "-":
                    print(printed(result, options.measures or None) + "\n", flush=True)
        except KeyboardInterrupt:
            if options.board is None:
                print(
                    "python -m benchmarks: the boards were in a temporary folder; --board DIR "
                    "keeps them.",
                    file=sys.stderr,
                )
            raise
    if options.json == "-":
        print_json(_as_json(options, results, missing))
    return 0


def _check(options: argparse.Namespace) -> None:
    problems: list[str] = []
    if options.limit is not None and options.limit < 1:
        problems.append(f"--limit is {options.limit}, expected 1 or more")
    if options.llm is None and (options.llm_api_base or options.llm_timeout is not None):
        problems.append(
            "--llm-api-base and --llm-timeout are about a model, expected --llm MODEL beside them"
        )
    if options.json not in (None, "-") and not Path(options.json).absolute().parent.is_dir():
        problems.append(f"--json {options.json}: there is no folder to write it into")
    if problems:
        raise ConfigurationError("; ".join(problems) + ".")


def _loaded(options: argparse.Namespace) -> "tuple[list[Benchmark], list[str]]":
    """The benchmarks that were asked for, and the names of those whose folders are missing. Raises
    ConfigurationError for all at once.
    """
    from benchmarks.papers.loading import load_benchmark
    from benchmarks.papers.reading import folders_of

    data = Path(options.data)
    there = folders_of(data) if "all" in options.names else dict.fromkeys(options.names, data)
    loaded: list[Benchmark] = []
    problems: list[str] = []
    for name, folder in there.items():
        try:
            loaded.append(load_benchmark(name, folder, options.limit, options.seed))
        except PegboardError as error:
            problems.append(str(error))
    if problems:
        raise ConfigurationError("\n".join(problems))
    return loaded, [name for name in NAMES if name not in there] if "all" in options.names else []


def _as_json(
    options: argparse.Namespace, results: list[dict[str, Any]], missing: list[str]
) -> dict[str, Any]:
    """The result of one benchmark, or those of all."""
    if options.names in ([name] for name in NAMES):
        return results[0]
    return {"benchmark": " ".join(options.names), "results": results, "missing": missing}


def _write_json(path: Path, value: dict[str, Any]) -> None:
    """Whole or not at all, so that what was finished stays where a later benchmark is
    interrupted.
    """
    beside = path.with_name(f".{path.name}.new")
    try:
        beside.write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n", "utf-8")
        beside.replace(path)
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be written: {error.strerror}. Give --json a file that can be."
        ) from error


if __name__ == "__main__":
    sys.exit(main())
