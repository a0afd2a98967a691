"""What a run of the fuzz found, and its command line."""

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

WORTH_SAYING = 500
"""Characters of an error."""


@dataclass(slots=True)
class Outcome:
    """What happened to all cases together.

    Attributes:
        counts: of cases and of what became of them.
        peak_mb: of the process that reads what is hostile.
    """

    counts: Counter[str] = field(default_factory=Counter[str])
    violations: list[str] = field(default_factory=list[str])
    peak_mb: int = 0

    @contextmanager
    def checked(self, label: str) -> Generator[None]:
        """Take whatever the block raises for a violation; a panic of Rust is none of Exception."""
        try:
            yield
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"
            self.violations.append(f"{label}: {text[:WORTH_SAYING]}")


def main(run: Callable[[int, int, Path], Outcome], of: str, description: str | None) -> int:
    """Call a fuzz from the command line; the exit status is 1 if there is a violation.

    Args:
        run: takes a seed, a size and an empty folder.
        of: what the size counts.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(f"--{of}", type=int, default=2_000, dest="size")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        outcome = run(options.seed, options.size, Path(folder))
    # `asdict` makes another count of a Counter: of its pairs.
    json.dump({**asdict(outcome), "counts": outcome.counts}, sys.stdout, indent=1)
    return 1 if outcome.violations else 0
