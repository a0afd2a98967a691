"""Write an index and a strategy into a pegboard.toml, as `default_index` and `[find] strategy`.

Comments and order stay; the file is replaced as a whole."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from pegboard.errors import ConfigurationError
from pegboard.retrieval.strategies import STRATEGIES, named_strategy
from pegboard.retrieval.strategy import Strategy
from tasks.lake.places import Folder
from tasks.settings.configuration import Configuration

Written = Mapping[str, Mapping[str, Any]]
"""For each setting that changed, its value `before` and `now`."""


def write_choice(configuration: Configuration, index: str, strategy: Strategy) -> Written:
    """Write an index and a strategy into the file of a configuration, and return what changed.

    Raises:
        ConfigurationError: there is no such index, or the file cannot be written.
    """
    import tomlkit

    names = [settings.name for settings in configuration.indexes]
    if index not in names:
        raise ConfigurationError(
            f"{configuration.file} has no index '{index}', which the sweep chose; it has "
            f"{', '.join(names)}. Nothing was written: add the index to the file, then sweep with "
            f"--write again."
        )
    document = cast("Any", tomlkit.parse(configuration.file.read_text("utf-8")))
    changes: dict[str, dict[str, Any]] = {}
    if configuration.default != index:
        changes["default_index"] = {"before": configuration.default, "now": index}
        document = _with_top_level(document, "default_index", index)
    named = strategy.name in STRATEGIES and named_strategy(strategy.name) == strategy
    now: Any = strategy.name if named else strategy.to_dict()
    if configuration.find.strategy != now:
        changes["find.strategy"] = {"before": configuration.find.strategy, "now": now}
        if "find" not in document:
            document["find"] = tomlkit.table()
        document["find"]["strategy"] = now if named else _inline(now)
    if changes:
        _replace(configuration.file, tomlkit.dumps(document))
    return changes


def _with_top_level(document: Any, name: str, value: str) -> Any:
    """The document with a top-level key; a new one stands before the first table."""
    import tomlkit

    if name in document:
        document[name] = value
        return document
    lines = tomlkit.dumps(document).splitlines(keepends=True)
    first = next((at for at, line in enumerate(lines) if line.lstrip().startswith("[")), len(lines))
    while first > 0 and lines[first - 1].lstrip().startswith("#"):  # comments of that table
        first -= 1
    new = f"{name} = {tomlkit.item(value).as_string()}\n\n"
    return tomlkit.parse("".join([*lines[:first], new, *lines[first:]]))


def _inline(strategy: Mapping[str, Any]) -> Any:
    import tomlkit

    table = tomlkit.inline_table()
    table.update(strategy)
    return table


def _replace(file: Path, text: str) -> None:
    try:
        Folder(file.parent).put(file.name, text.encode())
    except OSError as error:
        raise ConfigurationError(
            f"{file} cannot be written: {error.strerror}. Make it writable, or set default_index "
            f"and [find] strategy by hand."
        ) from error
