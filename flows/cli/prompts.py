"""`pegboard prompts`: which prompts are used, and how to get one to change."""

import argparse
from pathlib import Path

from pegboard.cli.output import Subparsers, print_json
from pegboard.errors import ConfigurationError

EPILOG = """\
A file of the same name in the folder prompts/ beside pegboard.toml stands for the built-in prompt. Raise its version when
you change the wording: exactly what that prompt makes is then bought anew, and `pegboard plan` says what it will cost.

examples:
  pegboard prompts                       which files are used, and their versions
  pegboard prompts --write questions     copy one to prompts/questions.md, to be changed there"""


def register_prompts(subparsers: Subparsers) -> None:
    """Add the command."""
    prompts: argparse.ArgumentParser = subparsers.add_parser(
        "prompts",
        help="show the LLM's prompts, or copy one to change it",
        description="Show which prompts an enrichment uses, or copy one beside the configuration "
        "to change it.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    prompts.add_argument(
        "-c", "--config", default="pegboard.toml", metavar="FILE", help="default: pegboard.toml"
    )
    prompts.add_argument(
        "--write",
        metavar="NAME",
        action="append",
        default=[],
        help="copy this one; may be repeated",
    )
    prompts.add_argument("--json", action="store_true", help="print the list as one JSON object")
    prompts.set_defaults(run=_prompts)


def _prompts(options: argparse.Namespace) -> int:
    from tasks.enrichment.prompts import OWN_PROMPTS, PROMPT_FILES, load_prompts
    from tasks.settings.enrichment import PRODUCTS

    folder = Path(options.config).resolve().parent / "prompts"
    names = [file.removesuffix(".md") for file in PROMPT_FILES]
    unknown = [name for name in options.write if name not in names]
    if unknown:
        raise ConfigurationError(
            f"There is no prompt {', '.join(unknown)}. There are: {', '.join(names)}."
        )
    there = [name for name in options.write if (folder / f"{name}.md").exists()]
    if there:
        raise ConfigurationError(
            f"{folder} has {', '.join(there)} already. Change that file, or delete it first."
        )
    for name in options.write:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.md").write_bytes((OWN_PROMPTS / f"{name}.md").read_bytes())
    prompts = load_prompts(folder, PRODUCTS)
    used = [*prompts.products.values(), prompts.think, prompts.repair]
    rows = [{"name": one.name, "version": one.version, "file": str(one.path)} for one in used]
    if options.json:
        print_json({"prompts": rows})
        return 0
    for row in rows:
        print(f"{row['name']:<12} version {row['version']:<6} {row['file']}")
    return 0
