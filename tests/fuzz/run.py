"""List hostile sources as a build does, and say what was lost, what crashed and what it took.

    python -m tests.fuzz.run [--records N] [--seed S] [--only KIND]...

A violation is a crash, a good tool that is not listed, a hostile record that is neither listed nor
rejected, or a source that was ended for its time or memory. Everything follows from the seed."""

import argparse
import json
import resource
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from tasks.lake.files import Lake
from tasks.settings.configuration import check_configuration
from tasks.snapshot import take_snapshot
from tests.fuzz.sources import DOCUMENTS, RECORDS, Generator, Hostile
from tests.listings import listing_of

ENDED = ("max_seconds", "max_memory")
"""Options that the message names if a source was ended for its time or memory."""


@dataclass(slots=True)
class Outcome:
    """What happened to all sources together."""

    sources: int = 0
    records: int = 0
    listed: int = 0
    rejected: int = 0
    failed: int = 0
    seconds: float = 0
    slowest: float = 0
    peak_mb: int = 0
    violations: list[str] = field(default_factory=list[str])


def cases(
    seed: int, generators: Sequence[Generator], size: int
) -> Iterator[tuple[str, Generator, int]]:
    """Yield, without end, a label from which the source can be made again, and its generator."""
    for number in count():
        generator = generators[number % len(generators)]
        yield (
            f"{seed}/{number}/{generator.__name__}",
            generator,
            1 if generator in DOCUMENTS else size,
        )


def run(
    seed: int,
    records: int,
    folder: Path,
    *,
    size: int = 100,
    generators: Sequence[Generator] = (*RECORDS, *DOCUMENTS),
) -> Outcome:
    """List hostile sources until they have that many records.

    Args:
        folder: an empty folder for the sources and a lake.
        size: records of a source.
    """
    outcome = Outcome()
    for label, generator, number in cases(seed, generators, size):
        if outcome.records >= records:
            break
        place = folder / str(outcome.sources)
        place.mkdir()
        source = generator(Random(label), place, number)
        start = time.perf_counter()
        _list(label, source, place, outcome)
        took = time.perf_counter() - start
        outcome.sources += 1
        outcome.records += number
        outcome.seconds += took
        outcome.slowest = max(outcome.slowest, took / number)
    outcome.peak_mb = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    return outcome


def _list(label: str, source: Hostile, folder: Path, outcome: Outcome) -> None:
    tables: dict[str, Any] = {"board": {"uri": "board"}, "catalogs": {"kit": source.options}}
    try:
        configuration = check_configuration(folder / "pegboard.toml", tables)
        snapshot = take_snapshot(configuration, "kit")
        stored = listing_of(Lake(configuration.uri), kit=snapshot.digest)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        outcome.violations.append(f"{label}: {type(error).__name__}: {str(error)[:300]}")
        return
    names = [tool.name for tool in stored.tools]
    outcome.listed += len(names)
    outcome.rejected += len(snapshot.rejected)
    outcome.failed += bool(snapshot.problems)
    if missing := sorted(source.good - set(names)):
        problems = "; ".join((*snapshot.problems, *(row.why for row in snapshot.rejected)))
        outcome.violations.append(f"{label}: not listed {missing[:5]}: {problems[:500]}")
    elif len(names) + len(snapshot.rejected) < source.records:
        outcome.violations.append(
            f"{label}: {source.records} records, {len(names)} listed and "
            f"{len(snapshot.rejected)} rejected"
        )
    elif snapshot.problems and not source.unreadable:
        outcome.violations.append(f"{label}: {snapshot.problems[0][:500]}")
    elif any(option in problem for problem in snapshot.problems for option in ENDED):
        outcome.violations.append(f"{label}: ended: {snapshot.problems[0][:500]}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line; the exit status is 1 if there is a violation."""
    known = {generator.__name__: generator for generator in (*RECORDS, *DOCUMENTS)}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--size", type=int, default=100, help="records of a source")
    parser.add_argument("--only", action="append", choices=sorted(known))
    options = parser.parse_args(arguments)
    generators = [known[name] for name in options.only or known]
    with tempfile.TemporaryDirectory() as folder:
        outcome = run(
            options.seed,
            options.records,
            Path(folder),
            size=options.size,
            generators=generators,
        )
    json.dump({name: getattr(outcome, name) for name in Outcome.__slots__}, sys.stdout, indent=1)
    return 1 if outcome.violations else 0


if __name__ == "__main__":
    sys.exit(main())
