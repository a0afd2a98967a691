"""The pages that programs write: `results/NAME.md` in the documents' folder, one page for each
benchmark, and the headline of `results.md`, which is made of those pages.

    python -m benchmarks headline docs --write

writes the headline again; every program that writes a page does so, too.
"""

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.headline import HEADLINE, headline
from pegboard.cli.main import run_command
from pegboard.errors import ConfigurationError

DOCS = Path(__file__).parents[1] / "docs"
"""The folder with the documents of this checkout."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks headline",
        description="Print the headline of the pages of results, and write it into results.md.",
    )
    parser.add_argument("docs", type=Path, metavar="DIR", help="holds results.md and results/")
    parser.add_argument("--write", action="store_true", help="put it between its marks, too")
    parser.set_defaults(run=_print_headline)
    return run_command("python -m benchmarks headline", parser.parse_args(arguments))


def write_result(docs: Path, name: str, text: str) -> None:
    """Replace the tables of one page of results, then the headline.

    Args:
        docs: the folder that holds `results.md` and `results/`.
        name: of the page and its marks, such as `seal-tools`.
        text: Markdown that ends with a newline.

    Raises:
        ConfigurationError: if a page or its marks are missing.
    """
    if problem := missing_places(docs, [name]):
        raise ConfigurationError(problem)
    write_between_marks(_page(docs, name), name, text)
    write_between_marks(docs / "results.md", HEADLINE, headline(docs / "results"))


def missing_places(docs: Path, names: Iterable[str]) -> str:
    """Why results cannot be written into a folder of documents; empty if they can."""
    places = [(docs / "results.md", HEADLINE), *((_page(docs, name), name) for name in names)]
    problems = (missing_marks(file, [name]) for file, name in places)
    return "\n".join(problem for problem in problems if problem)


def write_between_marks(file: Path, name: str, text: str) -> None:
    """Put text between `<!-- bench NAME -->` and `<!-- /bench NAME -->`.

    Raises ConfigurationError if the marks are missing.
    """
    if missing := missing_marks(file, [name]):
        raise ConfigurationError(missing)
    begin, end = _marks(name)
    before, _, rest = file.read_text("utf-8").partition(begin)
    beside = file.with_name(f".{file.name}.new")
    beside.write_text(f"{before}{begin}\n{text}{end}{rest.partition(end)[2]}", "utf-8")
    beside.replace(file)


def missing_marks(file: Path, names: Iterable[str]) -> str:
    """Why results cannot be written into a document; empty if they can."""
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return (
            f"{file} cannot be written into: {getattr(error, 'strerror', None) or error}. Give an "
            f"existing text file."
        )
    missing = [name for name in names if any(text.count(mark) != 1 for mark in _marks(name))]
    if not missing:
        return ""
    begin, end = _marks(missing[0])
    return (
        f"{file} has no place for {', '.join(missing)}. Expected the lines {begin} and {end} once, "
        "and likewise for each benchmark; the text between them is replaced."
    )


def _print_headline(options: argparse.Namespace) -> int:
    text = headline(options.docs / "results")
    print(text, end="")
    if options.write:
        write_between_marks(options.docs / "results.md", HEADLINE, text)
    return 0


def _page(docs: Path, name: str) -> Path:
    return docs / "results" / f"{name}.md"


def _marks(name: str) -> tuple[str, str]:
    return f"<!-- bench {name} -->", f"<!-- /bench {name} -->"
