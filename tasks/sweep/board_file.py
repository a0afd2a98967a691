"""The configuration of the board that a sweep builds: the pegboard.toml, with a board and a channel of its own, so that nothing live moves.

It is written beside the pegboard.toml, since relative paths of catalogs count from there, and taken away when the board is built.
"""

import tomllib
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

from pegboard.canonical import digest
from pegboard.errors import ConfigurationError
from tasks.configuration import Configuration, load_configuration

__all__ = ["CHANNEL", "board_file", "checked_configuration", "sweep_table"]

CHANNEL = "sweep"
"""The channel that a sweep's releases are promoted on."""


def sweep_table(file: Path) -> dict[str, Any]:
    """The `[sweep]` table of a pegboard.toml, empty if it has none. Raises ConfigurationError if there is no such file."""
    table = _read(file).get("sweep", {})
    if not isinstance(table, Mapping):
        raise ConfigurationError(f"{file}: sweep is {table!r:.80}; expected a table [sweep].")
    return dict(cast("Mapping[str, Any]", table))


def checked_configuration(file: Path) -> Configuration:
    """The pegboard.toml without its `[sweep]`. Raises ConfigurationError that lists every problem with its place."""
    data = _read(file)
    if "sweep" not in data:
        return load_configuration(file)
    with _beside(file, _without(data, "sweep"), "check") as copy:
        try:
            configuration = load_configuration(copy)
        except ConfigurationError as error:
            raise ConfigurationError(str(error).replace(str(copy), str(file))) from error
    return configuration.model_copy(update={"file": file})


@contextmanager
def board_file(
    configuration: Configuration, uri: str, indexes: Sequence[str] = (), *, calibrated: bool = False
) -> Generator[Path]:
    """The configuration of a sweep's board, as a file that `reindex` takes, as long as the context lasts.

    Args:
        uri: where the board is built.
        indexes: those that it has; all if empty.
        calibrated: whether a plan asks for probabilities; otherwise golden queries say nothing about how the board is built.
    """
    file = configuration.file
    left_out = ["sweep", "find", "gate", *([] if calibrated else ["golden"]), *(["default_index"] if indexes else [])]
    data = _without(_read(file), *left_out)
    if indexes and "indexes" in data:
        data["indexes"] = [one for one in data["indexes"] if one.get("name", "full") in indexes]
    storage = configuration.board.storage if "://" in uri else {}
    data["board"] = {"uri": uri, "channel": CHANNEL, "report": False, **({"storage": storage} if storage else {})}
    with _beside(file, data, digest(uri)[:8]) as copy:
        yield copy


@contextmanager
def _beside(file: Path, data: Mapping[str, Any], mark: str) -> Generator[Path]:
    import tomlkit

    copy = file.with_name(f".{file.stem}.sweep-{mark}.toml")
    try:
        copy.write_text(tomlkit.dumps(data), "utf-8")
    except OSError as error:
        raise ConfigurationError(
            f"{copy} cannot be written: {error.strerror}. A sweep puts its configuration beside {file.name} while it builds; make that "
            "folder writable, or measure a published release with --board and --release."
        ) from error
    try:
        yield copy
    finally:
        with suppress(OSError):
            copy.unlink(missing_ok=True)


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except FileNotFoundError as error:
        raise ConfigurationError(
            f"There is no configuration at {file}. Give one with -c, or measure a published release with --board and --release."
        ) from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError(f"{file} cannot be read as TOML: {error}. Correct that place.") from error


def _without(data: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in data.items() if name not in names}
