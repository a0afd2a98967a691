"""Source kind `python`: functions of importable modules. Schemas come from type hints, descriptions
from docstrings. See docs/how-to/sources.md.

Listing imports the module, which runs its code: configure only modules that you trust. The process
that lists a source of this kind is not reused.
"""

import importlib
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import field_validator

from catalogs.shared.listing import ListingBuilder, SourceKind, SourceOptions
from catalogs.shared.watching import Watched, WatchedListing
from pegboard.errors import SourceError
from pegboard.schemas.modules import named_function, public_function, public_names
from pegboard.schemas.signature import described


class PythonOptions(SourceOptions):
    """The options of a catalog of type `python`; `agent` defaults to the catalog's name."""

    target: tuple[str, ...]
    agent: str | None = None
    search_path: tuple[str, ...] = ()

    @field_validator("target", "search_path", mode="before")
    @classmethod
    def _one_or_many(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value


def read(listing: ListingBuilder, options: PythonOptions) -> None:
    """List the functions. Raises SourceError for a module that does not import or lacks one."""
    _put_on_path([(listing.base / folder).resolve() for folder in options.search_path])
    modules: dict[str, ModuleType] = {}
    for target in options.target:
        name = target.partition(":")[0]
        if name not in modules:
            modules[name] = _import(name)
    description = inspect.getdoc(next(iter(modules.values()))) or "" if len(modules) == 1 else ""
    agent = listing.agent(
        options.agent or listing.catalog,
        description=description.partition("\n\n")[0],
        kind="library",
        source=", ".join(options.target),
    )
    for target in options.target:
        name = target.partition(":")[0]
        for key, function in _functions(listing, modules[name], target):
            with listing.record(f"{name}:{key}"):
                _list_function(listing, agent, f"{name}:{key}", function)


def _list_function(listing: ListingBuilder, agent: str, where: str, function: Any) -> None:
    declaration = described(function)
    listed = listing.tool(
        agent,
        where.rpartition(":")[2].rpartition(".")[2],
        where=where,
        raw=where,
        description=declaration.description,
        input_schema=declaration.input_schema,
        output_schema=declaration.output_schema,
        annotations=declaration.annotations,
    )
    parameters = inspect.signature(function).parameters.values()
    if listed and (unnamed := [str(one) for one in parameters if one.kind is one.VAR_POSITIONAL]):
        why = f"{unnamed[0]} is left out, since tools are called with named arguments"
        listing.notice("cut", where, why)


def _put_on_path(folders: list[Path]) -> None:
    missing = [str(folder) for folder in folders if not folder.is_dir()]
    if missing:
        raise SourceError(
            f"`search_path` names folders that do not exist: {missing}. Relative paths count from "
            f"the folder of pegboard.toml."
        )
    sys.path[:0] = [str(folder) for folder in folders]
    importlib.invalidate_caches()


def _import(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException as error:
        # Importing runs the module's code, which may raise anything, including SystemExit.
        raise SourceError(
            f"The module {name} cannot be imported: {type(error).__name__}: {error}. "
            "Install what it needs, or name its folder in `search_path`."
        ) from error


def _functions(
    listing: ListingBuilder, module: ModuleType, target: str
) -> Iterator[tuple[str, Any]]:
    """Yield the function that a target names, or all public functions of its module in order.

    Raises SourceError for a module without public functions.
    """
    name, colon, path = target.partition(":")
    if colon:
        yield path, named_function(module, path)
        return
    names, listed = public_names(module)
    has_functions = False
    rejected_count = len(listing.rejected)
    for key in names:
        with listing.record(f"{name}:{key!s:.200}"):
            function = public_function(module, key, listed)
            if function is not None:
                has_functions = True
                yield key, function
    if not has_functions and len(listing.rejected) == rejected_count:
        raise SourceError(
            f"The module {name} defines no public functions. Add imported ones to its __all__, or "
            f"name each as a target: '{name}:function'."
        )


def watched(base: Path, options: PythonOptions) -> list[Watched]:
    """Return the listing, which is repeated when a file in `search_path` changes."""
    return [WatchedListing(tuple(str(Path(folder, "**/*.py")) for folder in options.search_path))]


source = SourceKind(options=PythonOptions, read=read, watched=watched)
