"""`pegboard prompts`: which prompts an enrichment uses, and how to get one to change."""

import argparse
from pathlib import Path

from flows.cli.options import add_command, add_config_option
from pegboard.cli.output import Subparsers, add_json_option, print_json
from pegboard.errors import ConfigurationError

EPILOG = """\
A file NAME.md in the folder prompts/ beside pegboard.toml replaces the built-in prompt. Change its
version with its wording: the replies of that prompt are then asked for anew, and `pegboard plan`
estimates the cost.

examples:
  pegboard prompts                     list the prompts in use, with their versions
  pegboard prompts --write questions   copy a built-in prompt to prompts/questions.md"""


def register_prompts(subparsers: Subparsers) -> None:
    """Add the command."""
    prompts = add_command(
        subparsers,
        "prompts",
        _prompts,
        EPILOG,
        help="list the LLM prompts, or copy one to change it",
        description="List the prompts of an enrichment, or copy one beside the configuration to "
        "change it.",
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
    from tasks.enrichment.prompts import load_enrichment_prompts
    from tasks.settings.enrichment import PRODUCTS

    folder = Path(options.config).resolve().parent / "prompts"
    _write_prompts(folder, options.write)
    prompts = load_enrichment_prompts(folder, PRODUCTS)
    used = [*prompts.products.values(), prompts.think, prompts.repair]
    rows = [{"name": one.name, "version": one.version, "file": str(one.path)} for one in used]
    if options.json:
        print_json({"prompts": rows})
        return 0
    for row in rows:
        print(f"{row['name']:<12} version {row['version']:<6} {row['file']}")
    return 0


def _write_prompts(folder: Path, names: list[str]) -> None:
    from tasks.enrichment.prompts import BUILTIN_PROMPTS, FORMATS

    if unknown := [name for name in names if name not in FORMATS]:
        raise ConfigurationError(
            f"Unknown prompt: {', '.join(unknown)}. Expected one of {', '.join(FORMATS)}."
        )
    if existing := [name for name in names if (folder / f"{name}.md").exists()]:
        raise ConfigurationError(
            f"{folder} already has {', '.join(existing)}. Change that file, or delete it first."
        )
    for name in names:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.md").write_bytes((BUILTIN_PROMPTS / f"{name}.md").read_bytes())
