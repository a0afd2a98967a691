"""Schemas of Python functions: types are converted by Pydantic, and docstrings (Google, NumPy or
Sphinx style) parsed by Griffe.
"""

import functools
import inspect
import json
import logging
import re
import textwrap
import typing
from collections.abc import Callable
from typing import Any

from pegboard.errors import ConfigurationError, SourceError
from pegboard.extras import install_command
from pegboard.schemas.declarations import Declaration
from pegboard.schemas.hints import NotJson, adapter_of, json_part, type_of, type_text
from pegboard.schemas.loose import loose_type

INJECTED = {
    "CallbackContext",
    "Context",
    "RunContext",
    "RunContextWrapper",
    "ToolContext",
    "ToolRuntime",
}
"""Classes of arguments that agent frameworks pass themselves: FastMCP, Pydantic AI, OpenAI Agents,
Google ADK, LangChain."""


HEADING = re.compile(r"(?:keyword |other )?(?:args|arguments|params|parameters):\s*", re.IGNORECASE)
"""Matches the heading of parameters in a docstring of Google's style."""
FIELD = re.compile(r"^:(?:param|parameter|arg|argument|key|keyword)\b", re.MULTILINE)
"""Matches the field of a parameter in a docstring of Sphinx's style."""
EPYDOC = re.compile(r"^@(?=(?:param|type|raises?)[ \t]+\w+:|(?:returns?|rtype):)", re.MULTILINE)
"""Matches the sign of a field of Epydoc's style, which Griffe does not know."""


class NoSchema(SourceError):
    """A function whose signature is unknown, so that it cannot be called, and why."""


def described(function: Callable[..., Any]) -> Declaration:
    """Return the declaration of a function as a tool.

    A union is reduced to the members that JSON can represent. Annotations: `injected` has the
    parameters that the framework passes; `loose` has the required parameters that JSON cannot
    represent, whose schema only has the text of their type.

    Raises:
        NoSchema: the signature of the function is unknown.
    """
    signature, adapters, loose, injected, takes_more = _parameters(function)
    description, documented = _docstring(function)
    properties, defs = _schemas(adapters)
    order = [name for name in signature.parameters if name in properties.keys() | loose.keys()]
    properties = {name: {**loose, **properties}[name] for name in order}
    required = [name for name in order if _is_required(signature.parameters[name].default)]
    schema: dict[str, Any] = {
        "type": "object",
        "properties": properties,
        "required": required,
        **({} if takes_more else {"additionalProperties": False}),
    }
    for name, item in properties.items():
        _complete(item, *documented.get(name, ("", None)))
        _add_default(item, signature.parameters[name].default)
    schema |= {"$defs": defs} if defs else {}
    if not required:
        del schema["required"]
    output = _output(function, signature)
    parameters = {"injected": injected, "loose": list(loose)}
    annotations = {key: names for key, names in parameters.items() if names}
    name = getattr(function, "__name__", type(function).__name__)
    return Declaration(name, description, schema, output, annotations)


def _parameters(
    function: Callable[..., Any],
) -> tuple[inspect.Signature, dict[str, Any], dict[str, Any], list[str], bool]:
    """Return the signature of a function, adapters of the parameters that JSON can represent,
    schemas of loose parameters, names of injected ones, and whether it has `**kwargs`.
    """
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError) as error:
        raise NoSchema(
            f"its signature is unknown: {error}; wrap it in a function with type hints"
        ) from error
    adapters: dict[str, Any] = {}
    loose: dict[str, Any] = {}
    injected: list[str] = []
    takes_more = False
    for parameter in signature.parameters.values():
        name = parameter.name
        default = parameter.default
        if parameter.kind is parameter.VAR_KEYWORD:
            takes_more = True
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        hint = type_of(function, name, parameter.annotation)
        part = NotJson if _is_injected(hint, parameter.annotation) else json_part(hint)
        adapter = None if part is NotJson else adapter_of(part, default)
        if adapter is not None:
            adapters[name] = adapter
        elif default is not parameter.empty or _is_injected(hint, parameter.annotation):
            injected.append(name)
        else:
            loose[name] = {"x-type": type_text(parameter.annotation)}
    return signature, adapters, loose, injected, takes_more


def _is_injected(hint: Any, annotation: Any) -> bool:
    if hint is NotJson:
        return isinstance(annotation, str) and annotation.strip("'\"").partition("[")[0] in INJECTED
    options = [part for part in (hint, *typing.get_args(hint)) if part is not type(None)]
    return any(
        getattr(typing.get_origin(part) or part, "__name__", "") in INJECTED for part in options[:2]
    )


def _is_required(default: Any) -> bool:
    from pydantic.fields import FieldInfo

    return (
        default.is_required()
        if isinstance(default, FieldInfo)
        else default is inspect.Parameter.empty
    )


def _schemas(adapters: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    from pydantic import TypeAdapter

    if not adapters:
        return {}, {}
    schemas, shared = TypeAdapter.json_schemas(
        [(name, "validation", adapter) for name, adapter in adapters.items()]
    )
    return {name: dict(schemas[name, "validation"]) for name in adapters}, shared.get("$defs", {})


def _complete(schema: dict[str, Any], description: str, kind: str | None) -> None:
    """Add type and description from the docstring where the signature has none."""
    if not schema and kind:
        schema |= loose_type(kind)
    if description and "description" not in schema:
        schema["description"] = description


def _add_default(schema: dict[str, Any], default: Any) -> None:
    from pydantic.fields import FieldInfo
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    if default is inspect.Parameter.empty or isinstance(default, FieldInfo) or "default" in schema:
        return
    try:
        value = to_jsonable_python(default)
        json.dumps(value, allow_nan=False)
    except (PydanticSerializationError, ValueError):
        return  # callers only need to know that the parameter is optional
    schema["default"] = value


def _output(function: Any, signature: inspect.Signature) -> dict[str, Any] | None:
    """Return the schema of the result; None if it is not an object."""
    hint = type_of(function, "return", signature.return_annotation)
    adapter = adapter_of(hint)
    if hint is Any or adapter is None:
        return None
    try:
        schema = adapter.json_schema(mode="serialization")
    except Exception:  # its model may have a serializer without a schema
        return None
    target = schema.get("$defs", {}).get(schema.get("$ref", "").rpartition("/")[2], schema)
    return schema if target.get("type") == "object" else None


def _docstring(function: Any) -> tuple[str, dict[str, tuple[str, str | None]]]:
    """Return the text of a docstring, and the description and type of each parameter."""
    try:
        import griffe
    except ImportError as error:
        raise ConfigurationError(
            f"Python functions as tools need griffe. Install it: {install_command('griffelib')}"
        ) from error

    while isinstance(function, functools.partial):
        function = function.func
    text = inspect.getdoc(function) or ""
    if not text.strip():
        return "", {}
    text = _with_items_indented(text)
    if "@param" in text:
        text = EPYDOC.sub(":", text)
    docstring = griffe.Docstring(text, lineno=1)
    style = _style(docstring)
    logger = logging.getLogger("griffe")
    was_disabled = logger.disabled
    logger.disabled = True  # it warns of missing types, which the signature has
    try:
        sections = griffe.parse(docstring, style)
    finally:
        logger.disabled = was_disabled
    texts = (
        section.value for section in sections if section.kind is griffe.DocstringSectionKind.text
    )
    documented: dict[str, tuple[str, str | None]] = {}
    for section in sections:
        if section.kind in (
            griffe.DocstringSectionKind.parameters,
            griffe.DocstringSectionKind.other_parameters,
        ):
            for item in section.value:
                kind = None if item.annotation is None else str(item.annotation)
                documented[item.name.strip("*-` ")] = (item.description.strip(), kind)
    return "\n\n".join(texts).strip(), documented


def _with_items_indented(text: str) -> str:
    """Return a docstring so that a heading in its first line keeps its items: `inspect.cleandoc`
    takes the indentation of all other lines away, as if the first line were a summary.
    """
    heading, _, items = text.partition("\n")
    if not HEADING.fullmatch(heading):
        return text
    items = items.lstrip("\n")
    if not items.startswith((" ", "\t")):
        items = textwrap.indent(items, "    ")
    return f"\n{heading}\n{items}"


def _style(docstring: Any) -> Any:
    """Return Griffe's parser for a docstring."""
    import griffe

    style = griffe.infer_docstring_style(docstring)[0]
    if style is None:
        between_lines = griffe.Docstring("")
        between_lines.value = f"\n{docstring.value}\n"  # Griffe looks for lines between others
        style = griffe.infer_docstring_style(between_lines)[0]
        if style is griffe.Parser.sphinx and not FIELD.search(docstring.value):
            style = None  # a result alone belongs to the description
    return style or griffe.Parser.google
