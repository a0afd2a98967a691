"""`pegboard prompts`: what an LLM is asked with."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from flows.cli.options import add_config_option
from pegboard.cli.output import Subparsers, add_command, add_json_option, print_json
from pegboard.cli.tables import print_table
from pegboard.errors import ConfigurationError

if TYPE_CHECKING:
    from pegboard.llm.prompts import PromptFormat

PROMPTS_EPILOG = """\
A file NAME.md in the folder prompts/ beside pegboard.toml replaces the built-in prompt. Change its
version with its wording. The replies of an enrichment prompt are then asked for anew, and `pegboard
plan` estimates the cost. Prompts of strategies are published with the next release, for all its
readers.

examples:
  pegboard prompts                     list the prompts in use, with their versions
  pegboard prompts --write questions   copy a built-in prompt to prompts/questions.md"""


def register_prompts(subparsers: Subparsers) -> None:
    """Add `pegboard prompts`."""
    prompts = add_command(
        subparsers,
        "prompts",
        _prompts,
        PROMPTS_EPILOG,
        help="list the LLM prompts, or copy one to change it",
        description="List the prompts of enrichment and of strategies, or copy one beside the "
        "configuration to change it.",
    )
    add_config_option(prompts, "pegboard.toml")
    prompts.add_argument(
        "--write",
        metavar="NAME",
        action="append",
        default=[],
        help="copy this built-in prompt; may be repeated",
    )
    add_json_option(prompts, "the list")


def _prompts(options: argparse.Namespace) -> int:
    from pegboard.llm.prompts import load_prompts

    folder = Path(options.config).resolve().parent / "prompts"
    _write_prompts(folder, options.write)
    every = _formats()
    formats = {name: form for _, _, own in every for name, form in own.items()}
    rows = [
        {"name": prompt.name, "use": use, "version": prompt.version, "file": str(prompt.path)}
        for use, built_in, own in every
        for prompt in load_prompts(built_in, formats, folder, own).values()
    ]
    if options.json:
        print_json({"prompts": rows})
        return 0
    columns = ("use", "name", "version", "file")
    print_table(columns, [[row[column] for column in columns] for row in rows])
    return 0


def _formats() -> "list[tuple[str, Path, Mapping[str, PromptFormat]]]":
    """What the prompts are for, the folder of the built-in ones, and the format of each by name."""
    from pegboard.retrieval.llm.questions import FORMATS as REQUESTS
    from pegboard.retrieval.llm.questions import PROMPTS
    from tasks.enrichment.prompts import BUILTIN_PROMPTS, FORMATS

    return [("enrichment", BUILTIN_PROMPTS, FORMATS), ("strategies", PROMPTS, REQUESTS)]


def _write_prompts(folder: Path, names: list[str]) -> None:
    built_in = {name: path / f"{name}.md" for _, path, own in _formats() for name in own}
    if unknown := [name for name in names if name not in built_in]:
        raise ConfigurationError(
            f"Unknown prompt: {', '.join(unknown)}. Expected one of {', '.join(built_in)}."
        )
    if existing := [name for name in names if (folder / f"{name}.md").exists()]:
        raise ConfigurationError(
            f"{folder} already has {', '.join(existing)}. Change that file, or delete it first."
        )
    for name in names:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.md").write_bytes(built_in[name].read_bytes())
