"""What an LLM adds to Pegboard, measured by recorded replies, without any network.

    python -m benchmarks llm --data BENCHMARKS --real CATALOGS --board BOARDS --write docs

Texts that are written once, offline, and calls for each request, on the papers' benchmarks and on
real catalogs. Every reply stands in `benchmarks/llm/replies` with its author and date; a request
without one ends the program, or is written down for a batch API or a person
(--missing-replies write)."""

import argparse
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.documents import HEADLINE, missing_marks, write_between_marks
from benchmarks.headline import headline
from benchmarks.llm.experiments import EXPERIMENTS, run_experiment
from benchmarks.llm.measured import MODEL, REPLIES, Experiment, Places, Row
from benchmarks.llm.tables import markdown
from benchmarks.run import working_folder
from flows.cli.options import quiet_encoders
from pegboard.cli.main import run_command
from pegboard.errors import CompletionError, ConfigurationError
from pegboard.llm.recorded import OPEN_FILE, ReplyFolder

UNRECORDED = [experiment.name for experiment in EXPERIMENTS if not experiment.recorded]
NAME = "python -m benchmarks llm"
MAX_FALLBACKS = 0.02
"""Share of a system's requests in which a reply may be unusable; a missing one ends the program."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(
        prog=NAME, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--data", type=Path, required=True, metavar="DIR", help="the papers' benchmarks")
    add("--real", type=Path, metavar="DIR", help="the real catalogs, as `fetch` writes them")
    add("--board", metavar="DIR", help="keep the boards here, and reuse them the next time")
    add(
        "--only",
        action="append",
        default=[],
        choices=[experiment.name for experiment in EXPERIMENTS],
        help=f"only this table; may be repeated. {', '.join(UNRECORDED)} have no recorded replies "
        "yet: write their requests down (--missing-replies write) and have them answered",
    )
    add("--replies", type=Path, default=REPLIES, metavar="DIR", help="the recorded replies")
    add("--missing-replies", choices=("write", "fail"), default="fail")
    add("--json", type=Path, metavar="OUT", help="write all rows as JSON")
    add(
        "--write",
        type=Path,
        metavar="DOCS",
        help="put each table into DOCS/results/llm.md, between its marks <!-- bench llm-NAME -->",
    )
    parser.set_defaults(run=_run)
    return run_command(NAME, parser.parse_args(arguments))


def _run(options: argparse.Namespace) -> int:
    experiments = [
        experiment
        for experiment in EXPERIMENTS
        if (experiment.name in options.only if options.only else experiment.recorded)
    ]
    page = options.write / "results" / "llm.md" if options.write else None
    if page is not None:
        names = ["llm-authors", *(f"llm-{experiment.name}" for experiment in experiments)]
        if problem := missing_marks(page, names):
            raise ConfigurationError(problem)
    values: dict[str, object] = {}
    with working_folder(options.board) as boards, quiet_encoders():
        places = Places(
            options.data, options.real, boards, options.missing_replies, options.replies.absolute()
        )
        for experiment in experiments:
            measured = run_experiment(experiment, places)
            check_replies(experiment, measured.rows, places)
            text = markdown(experiment, measured)
            print(text, flush=True)
            if page is not None:
                write_between_marks(page, f"llm-{experiment.name}", text)
            values[experiment.name] = asdict(measured)
    if options.json:
        options.json.write_text(json.dumps(values, ensure_ascii=False, indent=1) + "\n", "utf-8")
    if page is not None:
        write_between_marks(page, "llm-authors", authors(options.replies))
        results = options.write / "results.md"
        write_between_marks(results, HEADLINE, headline(options.write / "results"))
    return 0


def check_replies(experiment: Experiment, rows: Iterable[Row], places: Places) -> None:
    """Raise CompletionError if replies are missing, or too many could not be used."""
    count = len(ReplyFolder(places.replies).open_requests()) if places.missing == "write" else 0
    if count:
        raise CompletionError(
            f"{count} requests have no recorded reply and stand in {places.replies / OPEN_FILE}. "
            "Have them answered, read the answers by `pegboard replies read`, and run again.",
            kind="unrecorded",
        )
    worst = max(rows, key=lambda row: row.fallbacks, default=None)
    if worst is not None and worst.fallbacks > MAX_FALLBACKS:
        raise CompletionError(
            f"{experiment.name}: {worst.strategy} on {worst.task} worked without a usable reply "
            f"for {worst.fallbacks:.0%} of the requests; at most {MAX_FALLBACKS:.0%} may.",
            kind="unrecorded",
        )


def authors(replies: Path) -> str:
    """Return who wrote the replies."""
    written: dict[str, int] = {}
    folder = ReplyFolder(replies)
    for reply in folder.replies():
        who = f"{reply.author}, {reply.date}"
        written[who] = written.get(who, 0) + 1
    listed = "; ".join(f"{count:,} by {who}" for who, count in sorted(written.items()))
    return f"Replies: {listed}. The prompts are those that {MODEL} would get.\n"
