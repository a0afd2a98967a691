"""`pegboard completion`: a script that completes commands and options in bash and zsh.

The script holds the names, so completing starts no Python; print it again after an update."""

import argparse
from collections.abc import Iterator, Mapping

from pegboard.cli.output import Subparsers

EPILOG = """\
examples:
  pegboard completion bash >> ~/.bashrc
  pegboard completion zsh >> ~/.zshrc"""
BASH = """\
_pegboard() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" path="" item
  for item in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$path $item" in
{paths}
    esac
  done
  case "$path" in
{words}
  esac
  [[ ${{#COMPREPLY[@]}} -gt 0 ]] || COMPREPLY=($(compgen -f -- "$word"))
}}
complete -o filenames -F _pegboard pegboard
"""
ZSH = "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n"


def register_completion(subparsers: Subparsers, parser: argparse.ArgumentParser) -> None:
    """Add the command, which completes all commands of `parser`."""
    completion: argparse.ArgumentParser = subparsers.add_parser(
        "completion",
        help="print a script that completes commands and options in a shell",
        description="Print a script that completes commands and options in a shell.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    completion.add_argument("shell", choices=("bash", "zsh"))
    completion.set_defaults(run=lambda options: _print(options.shell, parser))


def _print(shell: str, parser: argparse.ArgumentParser) -> int:
    paths, words = list[str](), list[str]()
    for path, own in _commands(parser, ""):
        if path:
            before, _, name = path.rpartition(" ")
            paths.append(f'      "{before} {name}") path="{path}" ;;')
        words.append(f'    "{path}") COMPREPLY=($(compgen -W "{own}" -- "$word")) ;;')
    script = BASH.format(paths="\n".join(paths), words="\n".join(words))
    print(script if shell == "bash" else ZSH + script, end="")
    return 0


def _commands(parser: argparse.ArgumentParser, path: str) -> Iterator[tuple[str, str]]:
    """Each command, as ` releases show`, with the words that may follow it."""
    words: list[str] = []
    below: list[tuple[str, argparse.ArgumentParser]] = []
    for action in parser._actions:
        if isinstance(action.choices, Mapping):  # the commands below this one
            below += action.choices.items()
            words += action.choices
        else:
            words += [option for option in action.option_strings if option.startswith("--")]
            words += [] if action.option_strings else map(str, action.choices or ())
    yield path, " ".join(words)
    for name, child in below:
        yield from _commands(child, f"{path} {name}")
