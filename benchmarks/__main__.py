"""`python -m benchmarks`: what Pegboard finds on public benchmarks, beside papers."""

import argparse
import gc
import importlib
import json
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.papers import NAMES
from pegboard.cli.eval import fallbacks_exit_code
from pegboard.cli.main import run_command
from pegboard.cli.output import add_options, print_json
from pegboard.errors import ConfigurationError, PegboardError

if TYPE_CHECKING:
    from benchmarks.papers.benchmark import Benchmark

NAME = "python -m benchmarks"
PROGRAMS: dict[str, str] = {
    "peers": "other libraries beside Pegboard",
    "fetch": "the real catalogs, into a folder",
    "flaws": "what the flaws that `pegboard lint` finds cost, on the real catalogs",
    "called": "what the tools called so far add to a request",
    "train_ranker": "fit the ranker that ships with the library",
    "train_hostile": "fit the recogniser of hostile texts",
    "abstention": "whether a probability tells requests that nothing answers",
    "llm": "what an LLM adds, by recorded replies: texts written once, calls for each request",
    "headline": "the headline of the pages of results",
    "scale": "builds of a large catalog by step, and how its board is read",
    "gateway": "many agents at once at `pegboard serve`",
}
"""The other programs, each with options of its own, and what they measure or do."""
MODULES = {
    "headline": "benchmarks.documents",
    "llm": "benchmarks.llm.__main__",
    "peers": "benchmarks.peers.__main__",
    "fetch": "benchmarks.real.fetch",
    "flaws": "benchmarks.real.flaws",
    "called": "benchmarks.papers.called",
    "train_ranker": "benchmarks.train_ranker",
    "train_hostile": "benchmarks.train_hostile",
}
"""Where they are if not in `benchmarks.performance`."""
EPILOG = """\
benchmarks, with the files in their folders
{names}
  real             APIs, MCP servers and Python modules that `python -m benchmarks fetch`
                   fetches into DIR/real
  all              every one but real with a folder in --data; missing ones are reported and skipped

The pipeline builds the boards, with the embedded encoder and without an LLM; the reader library
answers the queries. Rows of the files that cannot be used are counted and reported. Tools that a
query needs and no catalog has count as not found; steps and tools of ultratool and livemcpbench
that name no known tool are left out, and counted.

tasks (in the rows of --json)
  all, single, multi    queries for tools: all, those that need one tool, those that need several
                        (metatool: its two tasks, of two catalogs); seal-tools with several files of
                        queries has each file as a task, too; toolret each category, and
                        `instructed`: every query after its instruction
  direct-tool           livemcpbench: a question, for its tools
  step-tool             a step with a tool of its own (as many steps as tools in its question), for
                        that tool
  step-agent            the same step, for a server that owns the tool
  step-agent-all        every step, for the servers of all tools of its question (it needs one of
                        them, so 1 is out of reach)
  direct-agent          a question, for the servers of all its tools

programs: python -m benchmarks PROGRAM --help
{programs}

strategies
{strategies}
  and your own strategies: a JSON file, or JSON (`pegboard strategies`,
  docs/reference/strategies.md). Default: all above that need no LLM and fit the benchmark; with
  --llm the others as well. The library's strategy `search` is called hybrid here.

Rows: {{task, strategy, index, encoder, measure, value, low, high, n}}, with 95 % bootstrap
intervals over queries. `differences` compare every strategy with `hybrid` (agents: `agents-hybrid`)
by a paired randomisation test; p_holm is corrected for the number of strategies (Holm).

examples:
  python -m benchmarks seal-tools --data benchmarks/seal-tools
  python -m benchmarks toollinkos ultratool --data benchmarks --board boards --json out.json
  python -m benchmarks all --data benchmarks --board boards --write docs
  python -m benchmarks metatool --data benchmarks --limit 200 --strategy rag-tool-fusion \\
      --strategy hybrid --llm openai/gpt-4o-mini
  python -m benchmarks livemcpbench --data benchmarks --index minilm.toml --index large.toml"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    if words and words[0] in PROGRAMS:
        sys.argv[:] = [f"{NAME} {words[0]}", *words[1:]]
        module = MODULES.get(words[0], f"benchmarks.performance.{words[0]}")
        return importlib.import_module(module).main() or 0
    options = _parser().parse_args(words)
    return run_command(NAME, options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=NAME,
        description="Build the boards of public benchmarks from their own files, answer their "
        "queries by several strategies, and measure what is found.",
        epilog=_epilog(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add(
        "names",
        nargs="+",
        metavar="NAME",
        choices=[*NAMES, "real", "all"],
        help="benchmarks, or all",
    )
    add(
        "--data",
        required=True,
        metavar="DIR",
        help="the benchmark's folder, or one that holds it under its name",
    )
    add(
        "--strategy",
        action="append",
        default=[],
        metavar="STRATEGY",
        help="only this strategy; may be repeated (names below)",
    )
    add("--board", metavar="DIR", help="keep the boards here, and reuse them the next time")
    add(
        "--index",
        action="append",
        default=[],
        metavar="FILE",
        help="a TOML file with [[indexes]] (encoder, parts, shape), and [enrich] if an LLM is to "
        "write, instead of the benchmark's own index; may be repeated; each file gets boards of "
        "its own",
    )
    add(
        "--measures",
        nargs="+",
        default=[],
        metavar="MEASURE",
        help="such as Recall@5 nDCG@10 Complete@10 mAP@20 MRR@10",
    )
    add(
        "--limit",
        type=int,
        metavar="N",
        help="ask at most N queries of each set, drawn at random",
    )
    add(
        "--catalog",
        action="append",
        default=[],
        metavar="NAME",
        help="of real: only this catalog; may be repeated",
    )
    add("--seed", type=int, default=0, metavar="N", help="of that draw (default: 0)")
    add("--llm", metavar="MODEL", help="a LiteLLM model for strategies that ask one")
    add("--llm-api-base", metavar="URL", help="where that model is served")
    add("--llm-timeout", type=float, metavar="SECONDS", help="of each request to it (default: 10)")
    add_options(parser, "--replies", "--missing-replies", "--max-fallbacks")
    add(
        "--json",
        nargs="?",
        const="-",
        metavar="OUT",
        help="write the results as JSON to a file; to stdout without one",
    )
    add(
        "--write",
        metavar="DIR",
        help="put the tables into DIR/results/NAME.md, between its marks <!-- bench NAME -->, and "
        "renew the headline in DIR/results.md",
    )
    add("--quiet", action="store_true", help="show no progress")
    parser.set_defaults(run=_bench)
    return parser


def _epilog() -> str:
    from benchmarks.papers.strategies import DESCRIPTIONS

    def listed(names: Mapping[str, str], width: int) -> str:
        indent = " " * (width + 4)
        return "\n".join(
            textwrap.fill(
                text, 100, initial_indent=f"  {name:<{width}}  ", subsequent_indent=indent
            )
            for name, text in names.items()
        )

    return EPILOG.format(
        names=listed(NAMES, 15),
        programs=listed(PROGRAMS, 15),
        strategies=listed(DESCRIPTIONS, 28),
    )


def _bench(options: argparse.Namespace) -> int:
    from benchmarks.documents import missing_places
    from benchmarks.papers.indexes import read_index_files
    from benchmarks.papers.strategies import chosen_strategies
    from pegboard.evaluation.measures import measures_of
    from pegboard.evaluation.overhead import check_llm

    _check(options)
    chosen, measures = chosen_strategies(options.strategy), tuple(measures_of(options.measures))
    if chosen and not options.llm:
        check_llm(chosen.library(), options.max_fallbacks)
    indexes = [
        file.with_replies(options.replies, options.missing_replies)
        for file in read_index_files(options.index)
    ]
    benchmarks, missing = _loaded(options)
    if options.write:
        names = [benchmark.name for benchmark in benchmarks]
        if problem := missing_places(Path(options.write), names):
            raise ConfigurationError(problem)
    for name in missing:
        _warn(f"{name} is skipped: {options.data} has no folder of that name")

    gc.set_threshold(100_000, 50, 50)  # imports create objects, not garbage
    from benchmarks.run import BenchSettings, working_folder
    from tasks.runtime import progress

    llm_options = {
        "api_base": options.llm_api_base,
        "timeout": options.llm_timeout,
        "replies": options.replies,
        "missing_replies": options.missing_replies,
    }
    settings = BenchSettings(
        chosen,
        measures,
        options.llm,
        {name: value for name, value in llm_options.items() if value is not None},
        indexes=indexes,
    )
    with working_folder(options.board) as folder, progress.showing(not options.quiet):
        try:
            return _run(benchmarks, folder, settings, options, missing)
        except KeyboardInterrupt:
            if options.board is None:
                _warn("the boards were in a temporary folder; --board DIR keeps them.")
            raise


def _run(
    benchmarks: "Sequence[Benchmark]",
    folder: Path,
    settings: Any,
    options: argparse.Namespace,
    missing: Sequence[str],
) -> int:
    """Run the benchmarks one by one, and write each result as soon as it is there.

    Fallbacks above the bound end the run, and no page gets their figures.
    """
    from benchmarks.documents import write_result
    from benchmarks.papers.tables import markdown, printed
    from benchmarks.run import run_benchmark

    results: list[dict[str, Any]] = []
    code = 0
    for benchmark in benchmarks:
        result, overheads = run_benchmark(benchmark, folder, settings)
        results.append(result)
        if options.json not in (None, "-"):
            _write_json(Path(options.json), _json_values(options, results, missing))
        if options.json != "-":
            print(printed(result, options.measures or None) + "\n", flush=True)
        if code := fallbacks_exit_code(NAME, overheads, options.max_fallbacks):
            break
        if options.write:
            write_result(Path(options.write), benchmark.name, markdown(result))
    if options.json == "-":
        print_json(_json_values(options, results, missing))
    return code


def _check(options: argparse.Namespace) -> None:
    problems: list[str] = []
    if options.limit is not None and options.limit < 1:
        problems.append(f"--limit is {options.limit}, expected 1 or more")
    if options.llm is None and (options.llm_api_base or options.llm_timeout is not None):
        problems.append("--llm-api-base and --llm-timeout need a model, expected --llm MODEL")
    if options.json not in (None, "-") and not Path(options.json).absolute().parent.is_dir():
        problems.append(f"--json {options.json}: its folder does not exist")
    if problems:
        raise ConfigurationError("; ".join(problems) + ".")


def _loaded(options: argparse.Namespace) -> "tuple[list[Benchmark], list[str]]":
    """The named benchmarks, and the names of `all` that have no folder.

    Raises ConfigurationError with the problems of all benchmarks.
    """
    from benchmarks.papers.loading import load_benchmark
    from benchmarks.papers.reading import folders_of

    data = Path(options.data)
    every = "all" in options.names
    folders = folders_of(data) if every else dict.fromkeys(options.names, data)
    loaded: list[Benchmark] = []
    problems: list[str] = []
    for name, folder in folders.items():
        try:
            seed, only = options.seed, options.catalog
            loaded.append(load_benchmark(name, folder, options.limit, seed, only))
        except PegboardError as error:
            problems.append(str(error))
    if problems:
        raise ConfigurationError("\n".join(problems))
    return loaded, [name for name in NAMES if name not in folders] if every else []


def _json_values(
    options: argparse.Namespace, results: Sequence[dict[str, Any]], missing: Sequence[str]
) -> dict[str, Any]:
    """The result of a single benchmark, or those of several."""
    if len(options.names) == 1 and options.names != ["all"]:
        return results[0]
    names = " ".join(options.names)
    return {"benchmark": names, "results": list(results), "missing": list(missing)}


def _write_json(path: Path, value: dict[str, Any]) -> None:
    """Replace the file as a whole: earlier results survive an interrupted later benchmark."""
    beside = path.with_name(f".{path.name}.new")
    try:
        beside.write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n", "utf-8")
        beside.replace(path)
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be written: {error.strerror}. Give --json another file."
        ) from error


def _warn(text: str) -> None:
    print(f"{NAME}: {text}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
