"""A choice into the pegboard.toml: `default_index` and `[find] plan`. Comments and order stay; the file is replaced as a whole."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from pegboard.errors import ConfigurationError
from pegboard.retrieval.plan import Plan
from pegboard.retrieval.plans import PLANS, named_plan
from tasks.configuration import Configuration
from tasks.places import Folder
from tasks.sweep.best import Choice

__all__ = ["Written", "write_choice"]

Written = Mapping[str, Mapping[str, Any]]
"""For each setting that changed what it was `before` and is `now`."""


def write_choice(configuration: Configuration, choice: Choice, plan: Plan) -> Written:
    """Write the choice, and say what changed.

    Raises ConfigurationError if the configuration has no such index, or the file cannot be written.
    """
    import tomlkit

    names = [index.name for index in configuration.indexes]
    if choice.index not in names:
        raise ConfigurationError(
            f"{configuration.file} has no index '{choice.index}', which the sweep chose; it has {', '.join(names)}. Nothing was written: add "
            "the index to the file, then sweep with --write again."
        )
    document = cast("Any", tomlkit.parse(configuration.file.read_text("utf-8")))
    changes: dict[str, dict[str, Any]] = {}
    if configuration.default != choice.index:
        changes["default_index"] = {"before": configuration.default, "now": choice.index}
        document = _with_first(document, "default_index", choice.index)
    named = plan.name in PLANS and named_plan(plan.name) == plan
    now: Any = plan.name if named else plan.to_dict()
    if configuration.find.plan != now:
        changes["find.plan"] = {"before": configuration.find.plan, "now": now}
        if "find" not in document:
            document["find"] = tomlkit.table()
        document["find"]["plan"] = now if named else _inline(now)
    if changes:
        _replace(configuration.file, tomlkit.dumps(document))
    return changes


def _with_first(document: Any, name: str, value: str) -> Any:
    """The document with a key of the whole file; a new one has to stand before the first table, or it would belong to that."""
    import tomlkit

    if name in document:
        document[name] = value
        return document
    lines = tomlkit.dumps(document).splitlines(keepends=True)
    first = next((at for at, line in enumerate(lines) if line.lstrip().startswith("[")), len(lines))
    while first > 0 and lines[first - 1].lstrip().startswith("#"):  # the table's own comment stays with it
        first -= 1
    return tomlkit.parse("".join([*lines[:first], f"{name} = {tomlkit.item(value).as_string()}\n\n", *lines[first:]]))


def _inline(plan: Mapping[str, Any]) -> Any:
    import tomlkit

    table = tomlkit.inline_table()
    table.update(plan)
    return table


def _replace(file: Path, text: str) -> None:
    try:
        Folder(file.parent).put(file.name, text.encode())
    except OSError as error:
        raise ConfigurationError(
            f"{file} cannot be written: {error.strerror}. Make it writable, or set default_index and [find] plan by hand."
        ) from error
