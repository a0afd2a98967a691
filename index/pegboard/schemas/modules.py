"""Select the functions of a module for a catalog of type `python`: its source lists these, and the
gateway calls only these.
"""

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

from pegboard.errors import SourceError


def named_function(module: ModuleType, path: str) -> Callable[..., Any]:
    """Return the function of the target `module:path`. Raises SourceError if it does not exist."""
    function: Any = module
    for part in path.split("."):
        function = getattr(function, part, None)
    if not callable(function):
        members = vars(module).items()
        public = sorted(key for key, item in members if callable(item) and key[0] != "_")
        raise SourceError(
            f"The module {module.__name__} has no function '{path}'. It has: {', '.join(public)}."
        )
    return function


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
    """Return the function with a public name; None if it is not a function of this module.

    Functions that a package imports from its submodules count as functions of the package.

    Args:
        listed: whether `__all__` has the name; then functions of other modules count, too.

    Raises:
        SourceError: the module does not have the name.
    """
    if not hasattr(module, name):
        raise SourceError("the module's __all__ names it, but the module does not define it")
    item = getattr(module, name)
    if not inspect.isroutine(item):
        return None
    defined_in = str(getattr(item, "__module__", None))
    if listed or defined_in == module.__name__:
        return item
    # Last, since looking up __path__ may call a `__getattr__` of the module, which may raise.
    in_submodule = hasattr(module, "__path__") and defined_in.startswith(f"{module.__name__}.")
    return item if in_submodule else None
