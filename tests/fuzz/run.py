"""List hostile sources as a build does, and say what was lost, what crashed and what it took.

    python -m tests.fuzz.run [--records N] [--seed S]

A violation is a crash, a good tool that is not listed, a hostile record that is neither listed nor
rejected, or a source that was ended for its time or memory. Everything follows from the seed."""

import resource
import sys
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from random import Random
from typing import Any

from tasks.lake.files import Lake
from tasks.settings.configuration import check_configuration
from tasks.steps.snapshot import take_snapshot
from tests.fuzz.outcome import Outcome, main
from tests.fuzz.sources import DOCUMENTS, RECORDS, Generator, Hostile
from tests.listings import listing_of

ENDED = ("max_seconds", "max_memory")
"""Options that the message names if a source was ended for its time or memory."""


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
    for number, generator in enumerate(cycle(generators)):
        if outcome.counts["records"] >= records:
            break
        label = f"{seed}/{number}/{generator.__name__}"
        place = folder / str(number)
        place.mkdir()
        source = generator(Random(label), place, size)
        with outcome.checked(label):
            outcome.violations += (f"{label}: {why:.500}" for why in _list(source, place, outcome))
        outcome.counts["records"] += 1 if generator in DOCUMENTS else size
    outcome.peak_mb = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    return outcome


def _list(source: Hostile, folder: Path, outcome: Outcome) -> list[str]:
    """List a source, and return what is wrong with its listing."""
    tables: dict[str, Any] = {"board": {"uri": "board"}, "catalogs": {"kit": source.options}}
    configuration = check_configuration(folder / "pegboard.toml", tables)
    snapshot = take_snapshot(configuration, "kit")
    listing = listing_of(Lake(configuration.uri), kit=snapshot.digest)
    names = [tool.name for tool in listing.tools]
    listed = len(names)
    rejected = len(snapshot.rejected)
    problems = snapshot.problems
    outcome.counts.update(listed=listed, rejected=rejected, failed=bool(problems))
    if missing := sorted(source.good - set(names)):
        whys = "; ".join((*problems, *(row.why for row in snapshot.rejected)))
        return [f"not listed {missing[:5]}: {whys}"]
    if listed + rejected < source.records:
        return [f"{source.records} records, {listed} listed and {rejected} rejected"]
    ended = any(option in problem for problem in problems for option in ENDED)
    return list(problems[:1]) if ended or not source.unreadable else []


if __name__ == "__main__":
    sys.exit(main(run, "records", __doc__))
