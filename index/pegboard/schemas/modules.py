"""Which functions of a module a catalog of type `python` has: its source lists these, and the
gateway calls no others.
"""

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

from pegboard.errors import SourceError


def named_function(module: ModuleType, path: str) -> Callable[..., Any]:
    """Return what the target `module:path` names. Raises SourceError if that is no function."""
    found: Any = module
    for part in path.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        members = vars(module).items()
        public = sorted(key for key, item in members if callable(item) and key[0] != "_")
        raise SourceError(
            f"The module {module.__name__} has no function '{path}'. It has: {', '.join(public)}."
        )
    return found


def public_names(module: ModuleType) -> tuple[list[Any], bool]:
    """Return the names of a module's public members, and whether its `__all__` lists them.

    Raises:
        SourceError: its `__all__` cannot be read.
    """
    if "__all__" not in vars(module):
        return [key for key in vars(module) if key[:1] != "_"], False
    try:
        return list(module.__all__), True
    except Exception as error:
        raise SourceError(
            f"The module {module.__name__} has an __all__ that cannot be read: "
            f"{type(error).__name__}. Make it a list of names."
        ) from error


def public_function(module: ModuleType, name: str, listed: bool) -> Callable[..., Any] | None:
    """Return the function that has a public name; None if that is none, or another module's. Of a
    package its submodules' functions, which its `__init__` imports, are its own.

    Args:
        listed: whether `__all__` has the name: then the function may be another module's.

    Raises:
        SourceError: the module does not have the name.
    """
    if not hasattr(module, name):
        raise SourceError("the module's __all__ names it, but the module does not have it")
    item = getattr(module, name)
    if not inspect.isroutine(item):
        return None
    home, submodules = str(getattr(item, "__module__", None)), f"{module.__name__}."
    own = home == module.__name__ or (hasattr(module, "__path__") and home.startswith(submodules))
    return item if listed or own else None
