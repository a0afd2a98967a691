"""Resolve type hints of Python functions, including names imported only for type checkers, and
reduce types to what JSON can represent.
"""

import ast
import builtins
import functools
import importlib.util
import inspect
import sys
import threading
import types
import typing
from collections.abc import Mapping
from functools import cache
from types import ModuleType, SimpleNamespace
from typing import Any

MAX_TEXT = 200
"""Maximum characters of a type's text."""
MAX_DEPTH = 20
"""Maximum depth of nested types; deeper ones count as NotJson."""


class NotJson:
    """Placeholder for a type, or part of a type, without JSON values."""


class _Missing(type):
    """The type of placeholders for undefined names; every operation on one gives a placeholder."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _missing(name)

    def __getitem__(cls, item: Any) -> Any:
        return cls


def type_of(function: Any, name: str, annotation: Any) -> Any:
    """Return the type of a parameter, or of the result (`return`); NotJson if it is not a type.

    An undefined name affects only its part of the type.
    """
    if annotation is inspect.Parameter.empty:
        return Any
    while isinstance(function, functools.partial):
        function = function.func
    plain = inspect.unwrap(getattr(function, "__func__", function))
    names = getattr(plain, "__globals__", getattr(type(plain).__call__, "__globals__", {}))
    holder = SimpleNamespace(__annotations__={name: annotation})
    try:
        return typing.get_type_hints(holder, names, _Names(names), include_extras=True)[name]
    except Exception:  # an annotation is any expression
        return NotJson


def type_text(annotation: Any) -> str:
    """Return an annotation as written in the source, for people."""
    try:
        text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    except Exception:
        text = type(annotation).__name__
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}..."


def json_part(hint: Any, depth: int = 0) -> Any:
    """Return the part of a type that JSON can represent; of a union, the members that it can.

    Returns:
        The type itself if JSON can represent all of its values; NotJson if it can represent none.
    """
    if depth > MAX_DEPTH or _adapter(hint) is not None:
        return hint if depth <= MAX_DEPTH else NotJson
    origin = typing.get_origin(hint)
    arguments = typing.get_args(hint)
    value = getattr(hint, "__value__", None)  # of `type Name = ...`
    if value is not None and not arguments:
        return json_part(value, depth + 1)
    if typing.is_typeddict(hint):
        return _json_mapping(hint)
    if origin is typing.Annotated:
        inner = json_part(arguments[0], depth + 1)
        return NotJson if inner is NotJson else _typing.Annotated[(inner, *hint.__metadata__)]
    if origin not in (typing.Union, types.UnionType):
        return _json_generic(origin, arguments, depth)
    parts = [json_part(argument, depth + 1) for argument in arguments]
    parts = [part for part in parts if part is not NotJson]
    return _typing.Union[tuple(parts)] if set(parts) - {type(None)} else NotJson


def adapter_of(hint: Any, default: Any = None) -> Any:
    """Return a TypeAdapter for a type; None if the type has no JSON Schema.

    Args:
        default: default of the parameter; a pydantic `Field` adds its constraints.
    """
    from pydantic.fields import FieldInfo

    return _adapter(_typing.Annotated[hint, default] if isinstance(default, FieldInfo) else hint)


_typing: Any = typing


def _json_generic(origin: Any, arguments: tuple[Any, ...], depth: int) -> Any:
    """Return a list or mapping type with its items reduced to what JSON can represent."""
    if not arguments or not isinstance(origin, type) or not issubclass(origin, _GENERIC):
        return NotJson
    parts = [part if part is ... else json_part(part, depth + 1) for part in arguments]
    if NotJson in parts:
        return NotJson
    try:
        reduced = types.GenericAlias(origin, tuple(parts))
        return reduced if _adapter(reduced) is not None else NotJson
    except TypeError:
        return NotJson


def _json_mapping(hint: Any) -> Any:
    """Return a TypedDict that pydantic accepts before Python 3.12, with the keys that JSON can
    represent; NotJson if it requires another one.
    """
    with _mappings_lock:
        if hint not in _mappings:
            _mappings[hint] = dict[str, Any]  # of a TypedDict within itself
            _mappings[hint] = _new_mapping(hint)
        return _mappings[hint]


def _new_mapping(hint: Any) -> Any:
    import typing_extensions

    names = vars(sys.modules.get(hint.__module__, typing))
    try:
        hints = typing.get_type_hints(hint, names, _Names(names), include_extras=True)
    except Exception:  # an annotation is any expression
        return NotJson
    fields: dict[str, Any] = {}
    for key, value in hints.items():
        inner, required = _requirement(value, key in hint.__required_keys__)
        part = json_part(inner)
        if part is NotJson and required:
            return NotJson
        if part is not NotJson:
            fields[key] = part if required else typing_extensions.NotRequired[part]
    functional: Any = typing_extensions.TypedDict
    reduced = functional(hint.__name__, fields)
    for attribute in ("__doc__", "__module__", "__qualname__"):
        setattr(reduced, attribute, getattr(hint, attribute))
    return reduced if _adapter(reduced) is not None else NotJson


def _requirement(hint: Any, required: bool) -> tuple[Any, bool]:
    """Return the type of a TypedDict's key without `Required`, `NotRequired` and `ReadOnly`, and
    whether the key is required.

    Args:
        required: whether the class says so, which cannot see marks in annotations that are text.
    """
    import typing_extensions as extensions

    while (mark := typing.get_origin(hint)) in (
        extensions.Required,
        extensions.NotRequired,
        extensions.ReadOnly,
    ):
        if mark is not extensions.ReadOnly:
            required = mark is extensions.Required
        hint = typing.get_args(hint)[0]
    return hint, required


_mappings: dict[Any, Any] = {}
"""What each TypedDict was reduced to."""
_mappings_lock = threading.RLock()
_GENERIC = (list, tuple, set, frozenset, typing.Iterable, dict, Mapping)
"""Base classes of generic types that JSON can represent."""


def _adapter(hint: Any) -> Any:
    try:
        return _stored_adapter(hint)
    except TypeError:  # the type cannot be hashed
        return _new_adapter(hint)


def _new_adapter(hint: Any) -> Any:
    from pydantic import TypeAdapter

    try:
        adapter = TypeAdapter[Any](hint)
        adapter.json_schema()
    except Exception:  # types run arbitrary code
        return None
    return adapter


_stored_adapter = functools.lru_cache(maxsize=1_000)(_new_adapter)


class _Names(dict[str, Any]):
    """The names of a module and of its imports for type checkers, and placeholders for others."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        super().__init__()
        self._names = names

    def __missing__(self, name: str) -> Any:
        for names in (self._names, vars(builtins)):
            if name in names:
                return names[name]
        imports = _checked_imports(sys.modules.get(str(self._names.get("__name__"))))
        return _imported(*imports[name]) if name in imports else _missing(name)


@cache
def _missing(name: str) -> Any:
    return _Missing(name, (), {})


@cache
def _imported(module: str, attribute: str) -> Any:
    try:
        target: Any = importlib.import_module(module)
        return getattr(target, attribute) if attribute else target
    except Exception:
        return _missing(attribute or module)


@cache
def _checked_imports(module: ModuleType | None) -> dict[str, tuple[str, str]]:
    """Return the imports of a module for type checkers only: name -> module and attribute."""
    try:
        tree = ast.parse(inspect.getsource(module)) if module else None
    except (OSError, SyntaxError, TypeError, ValueError, RecursionError):
        tree = None
    imports: dict[str, tuple[str, str]] = {}
    package = getattr(module, "__package__", "") or ""
    for block in ast.walk(tree) if tree else ():
        if not isinstance(block, ast.If) or "TYPE_CHECKING" not in ast.unparse(block.test):
            continue
        for item in block.body:
            if isinstance(item, ast.ImportFrom):
                relative = "." * item.level + (item.module or "")
                source = importlib.util.resolve_name(relative, package)
                for alias in item.names:
                    imports[alias.asname or alias.name] = (source, alias.name)
            elif isinstance(item, ast.Import):
                for alias in item.names:
                    top = alias.name if alias.asname else alias.name.partition(".")[0]
                    imports[alias.asname or top] = (top, "")
    return imports
