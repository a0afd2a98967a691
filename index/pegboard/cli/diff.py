"""`pegboard releases diff`: the difference between two releases."""

import argparse
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from pegboard.cli.output import Subparsers, add_command, add_json_option, add_options, print_json
from pegboard.formatting import count_text, limited_lines
from pegboard.store.diff import (
    Changes,
    FieldChange,
    IndexDiff,
    ReleaseDiff,
    diff_releases,
    field_lines,
)
from pegboard.store.releases import ReleaseStore

EPILOG = """\
OLD and NEW are ids, beginnings of ids, or channels. NEW defaults to the channel's release, OLD to
the channel's previous release.

examples:
  pegboard releases diff                                  what the last publish changed
  pegboard releases diff live canary                      what promoting canary would change
  pegboard releases diff --texts                          old and new text of changed tools"""
LISTED = 20
"""Lines of a kind that are printed; --json has all."""
SHORT = 60
"""Characters of a value in a list."""
SIGNS = {"added": "+", "removed": "-", "changed": "~"}


def register_diff(actions: Subparsers) -> None:
    """Add the action to `pegboard releases`."""
    parser = add_command(
        actions,
        "diff",
        _diff,
        EPILOG,
        help="compare two releases",
        description="Compare two releases: tools added, removed and changed, with the fields that "
        "changed; dependencies; and indexes, with their settings and rows.",
    )
    parser.add_argument("old", nargs="?", help="the release to compare with")
    parser.add_argument("new", nargs="?", help="the release to compare")
    add_options(parser, "--board", "--channel")
    parser.add_argument(
        "--texts", action="store_true", help="show the old and new text of all changed tools"
    )
    add_json_option(parser, "the difference")


def _diff(options: argparse.Namespace) -> int:
    store = ReleaseStore(options.board)
    new = store.named(options.new or options.channel)
    old = store.named(options.old) if options.old else store.previous(options.channel)
    diff = diff_releases(store, old, new)
    if options.json:
        print_json(diff.to_dict())
    else:
        _print_diff(diff, texts=options.texts)
    return 0


def _print_diff(diff: ReleaseDiff, *, texts: bool) -> None:
    counts = ", ".join(f"{count} {name}" for name, count in diff.counts.items())
    print(f"{diff.old} -> {diff.new}: {counts}")
    _print_some([f"{SIGNS['added']} {tool}" for tool in diff.added])
    _print_some([f"{SIGNS['removed']} {tool}" for tool in diff.removed])
    changed = [
        f"{SIGNS['changed']} {tool.id}: "
        f"{', '.join(_summary(*field) for field in tool.fields.items())}"
        for tool in diff.changed
    ]
    if texts:
        for line, tool in zip(changed, diff.changed, strict=True):
            print("\n    ".join([line, *_lines_of_fields(tool.fields)]))
    else:
        _print_some(changed)
    if diff.edges:
        print(f"dependencies of {count_text(len(diff.edges), 'tool')}:")
        _print_some([f"  {tool}: {_signed(changes)}" for tool, changes in diff.edges.items()])
    for name, index in diff.indexes.items():
        print(f"index {name}: {_index(index)}")


def _print_some(lines: list[str]) -> None:
    for line in limited_lines(lines, LISTED, "  ", "; --json lists all"):
        print(line)


def _summary(name: str, change: FieldChange) -> str:
    if isinstance(change.new, list):
        return f"{name} (+{len(change.added)} -{len(change.removed)})"
    return name


def _signed(changes: Changes) -> str:
    return ", ".join(
        f"{SIGNS[kind]}{edge}" for kind, edges in asdict(changes).items() for edge in edges
    )


def _index(index: IndexDiff) -> str:
    recipe = "; ".join(
        f"{name}: {_short(change.old)} -> {_short(change.new)}"
        for name, change in index.recipe.items()
    )
    return f"{index.state}; {recipe}" if recipe else index.state


def _lines_of_fields(fields: Mapping[str, FieldChange]) -> list[str]:
    return [line for name, change in fields.items() for line in field_lines(name, change)]


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHORT else f"{text[:SHORT]} ..."
