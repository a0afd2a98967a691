"""`pegboard releases diff`: what is different between two releases."""

import argparse
import json
from dataclasses import asdict
from typing import Any

from pegboard.cli.output import Subparsers, add_board_option, print_json
from pegboard.cli.release_names import named_release, release_before
from pegboard.errors import BoardNotFound
from pegboard.store.diff import (
    EdgeChanges,
    FieldChange,
    IndexDiff,
    Neighbours,
    ReleaseDiff,
    diff_releases,
)
from pegboard.store.releases import ReleaseStore

EPILOG = """\
OLD and NEW are ids, beginnings of ids, or channels. Without NEW it is what the channel has now, without OLD what it had before.

examples:
  pegboard releases diff                                  what the last publishing changed
  pegboard releases diff live canary                      what a promotion of canary would change
  pegboard releases diff --tool github/issues/create      that tool's texts, old and new, and its neighbours"""
NAMED = 20
"""Tools of a kind that are listed; --json has all."""
SHOWN = 60
"""Characters of a text in a list."""
SIGNS = {"added": "+", "removed": "-", "changed": "~"}


def register_diff(actions: Subparsers) -> None:
    """Add the action to `pegboard releases`."""
    diff: argparse.ArgumentParser = actions.add_parser(
        "diff",
        help="what is different between two releases",
        description="Compare two releases: tools added, removed and changed, and in which fields; "
        "the nearest neighbours that "
        "changed and added tools gained and lost; what tools depend on; indexes, their recipes "
        "and rows.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    diff.add_argument(
        "old", nargs="?", help="what to compare with (default: the release before, of the channel)"
    )
    diff.add_argument(
        "new", nargs="?", help="what is compared (default: the release of the channel)"
    )
    add_board_option(diff)
    diff.add_argument(
        "--channel", default="live", help="whose releases are taken by default (default: live)"
    )
    diff.add_argument("--tool", metavar="ID", help="everything that is different in one tool")
    diff.add_argument(
        "--neighbours",
        type=int,
        default=5,
        metavar="N",
        help="nearest tools compared (default: 5; 0: none)",
    )
    diff.add_argument("--json", action="store_true", help="print the difference as one JSON object")
    diff.set_defaults(run=_diff)


def _diff(options: argparse.Namespace) -> int:
    store = ReleaseStore(options.board)
    new = named_release(store, options.new or options.channel)
    old = (
        named_release(store, options.old) if options.old else release_before(store, options.channel)
    )
    found = diff_releases(store, old, new, max(0, options.neighbours))
    if options.tool:
        return _print_tool(found, options.tool, as_json=options.json)
    if options.json:
        print_json(found.to_dict())
        return 0
    counts = found.counts
    print(f"{found.old} -> {found.new}: " + ", ".join(f"{counts[name]} {name}" for name in counts))
    _print_tools(found)
    if found.edges:
        print(f"dependencies of {len(found.edges)} tools:")
        _print_some([f"  {tool}: {_edges(changes)}" for tool, changes in found.edges.items()])
    for name, index in found.indexes.items():
        print(f"index {name}: {_index(index)}")
    return 0


def _print_tools(found: ReleaseDiff) -> None:
    lines = [f"{SIGNS['added']} {one}{_near(found.neighbours.get(one))}" for one in found.added]
    _print_some(lines)
    _print_some([f"{SIGNS['removed']} {one}" for one in found.removed])
    _print_some(
        [
            f"{SIGNS['changed']} {one.id}: "
            f"{', '.join(_summary(*pair) for pair in one.fields.items())}"
            f"{_near(found.neighbours.get(one.id))}"
            for one in found.changed
        ]
    )


def _print_some(lines: list[str]) -> None:
    for line in lines[:NAMED]:
        print(line)
    if len(lines) > NAMED:
        print(f"  ... and {len(lines) - NAMED} more; --json lists all")


def _summary(name: str, change: FieldChange) -> str:
    if isinstance(change.new, list):
        return f"{name} (+{len(change.added)} -{len(change.removed)})"
    return name


def _near(neighbours: Neighbours | None) -> str:
    if neighbours is None:
        return ""
    gained = [f"+{one}" for one in neighbours.gained]
    return f"; neighbours {', '.join(gained + [f'-{one}' for one in neighbours.lost])}"


def _edges(changes: EdgeChanges) -> str:
    kinds = {"added": changes.added, "removed": changes.removed, "changed": changes.changed}
    return ", ".join(f"{SIGNS[kind]}{said}" for kind, several in kinds.items() for said in several)


def _index(index: IndexDiff) -> str:
    rows = (
        f"{index.rows_added} rows added, {index.rows_removed} removed, {index.rows_changed} changed"
    )
    recipe = "; ".join(
        f"{name}: {_short(one.old)} -> {_short(one.new)}" for name, one in index.recipe.items()
    )
    return (
        "same"
        if index.state == "same"
        else f"{index.state}; {rows}{f'; {recipe}' if recipe else ''}"
    )


def _print_tool(found: ReleaseDiff, tool: str, *, as_json: bool) -> int:
    change = next((one for one in found.changed if one.id == tool), None)
    edges = found.edges.get(tool)
    different = change is not None or edges is not None
    state = (
        "added"
        if tool in found.added
        else "removed"
        if tool in found.removed
        else "changed"
        if different
        else "same"
    )
    near = found.neighbours.get(tool)
    if as_json:
        whole = found.to_dict()
        fields = next((one["fields"] for one in whole["changed"] if one["id"] == tool), {})
        said = {
            "fields": fields,
            "neighbours": whole["neighbours"].get(tool),
            "edges": whole["edges"].get(tool),
        }
        print_json({"tool": tool, "state": state, **said})
        return 0
    if state == "same":
        raise BoardNotFound(
            f"Tool '{tool}' is not different between releases {found.old} and {found.new}, or "
            f"neither has it. "
            "`pegboard releases diff` lists those that are."
        )
    print(f"{SIGNS[state]} {tool}{_near(near)}")
    for name, field in change.fields.items() if change else ():
        print(f"{name}")
        for sign, values in (
            ("-", _parts(field.old, field.removed)),
            ("+", _parts(field.new, field.added)),
        ):
            for value in values:
                print("\n".join(f"  {sign} {line}" for line in value.splitlines() or [""]))
    if edges is not None:
        print("depends on")
        for kind, several in asdict(edges).items():
            for said in several:
                print(f"  {SIGNS[kind]} {said}")
    return 0


def _parts(value: Any, parts: tuple[str, ...]) -> tuple[str, ...]:
    """Of a list what came or went, of anything else all of it."""
    if isinstance(value, list):
        return parts
    return (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1),)


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]} ..."
