"""Calls to Python functions, in this process: only of catalogs that `[serve] python` names."""

import importlib
import inspect
import json
import logging
import sys
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
)
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp_types import CallToolResult, TextContent
from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import to_jsonable_python

from pegboard.errors import SourceError
from pegboard.records import Tool, agent_id
from pegboard.redaction import redact
from pegboard.schemas.modules import named_function, public_function, public_names
from pegboard.schemas.signature import NoSchema, Parameters, parameters_of
from pegboard.serve.calls.results import CallProblem
from pegboard.serve.calls.threads import AllOccupied, ThreadLoop, Threads
from pegboard.serve.settings import CallSettings

MAX_MESSAGE = 2_000
"""Characters of an exception that are shown."""
MAX_PROBLEMS = 5
"""Arguments that do not fit their types, as far as they are shown."""

log = logging.getLogger("pegboard.serve")
Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class _Listed:
    """A function that its catalog's source would list."""

    function: Function
    parameters: Parameters

    def call(self, arguments: Mapping[str, Any]) -> Any:
        """Call it with JSON values, as values of its types.

        Raises:
            CallProblem: the arguments do not fit its types; and whatever the function raises.
        """
        values, problems = dict(arguments), list[str]()
        for name, adapter in self.parameters.adapters.items():
            if name not in values:
                continue
            try:
                values[name] = adapter.validate_json(json.dumps(values[name]))
            except ValidationError as error:
                problems += _problems(name, error)
        if problems:
            raise CallProblem(
                "invalid",
                "The arguments do not fit the function's types, and it was not called:\n"
                + "\n".join(problems[:MAX_PROBLEMS]),
            )
        parameters = self.parameters.signature.parameters.values()
        for parameter in parameters:
            if isinstance(default := parameter.default, FieldInfo) and not default.is_required():
                values.setdefault(parameter.name, default.get_default(call_default_factory=True))
        positional = list(_positional(parameters, values))
        return self.function(*positional, **values)


@dataclass(slots=True, eq=False)
class _Catalog:
    """The functions of a catalog, and where they run: a catalog that hangs costs only itself."""

    table: Mapping[str, Any]
    threads: Threads
    loop: ThreadLoop = field(default_factory=ThreadLoop)
    functions: dict[str, _Listed] = field(default_factory=dict[str, _Listed])


class PythonCalls:
    """The functions of some catalogs of type `python`.

    Args:
        catalogs: `[catalogs]` of the configuration.
        allowed: the catalogs whose functions may run.
        base: the folder from which their search paths count.
    """

    def __init__(
        self,
        catalogs: Mapping[str, Mapping[str, Any]],
        allowed: tuple[str, ...],
        base: Path,
        limits: CallSettings,
    ) -> None:
        self._catalogs = {
            name: _Catalog(table, Threads(limits.concurrency))
            for name, table in catalogs.items()
            if name in allowed and table.get("type") == "python"
        }
        self._base, self._max_bytes = base, limits.max_bytes

    def serves(self, catalog: str) -> bool:
        """Whether the functions of a catalog may run."""
        return catalog in self._catalogs

    async def call(self, tool: Tool, arguments: Mapping[str, Any]) -> CallToolResult:
        """Return what a function returns; an exception becomes an error.

        What is awaited runs in its catalog's event loop. Any other function runs in one of its
        catalog's threads, which no time limit can end.

        Raises:
            CallProblem: the function is not there or is another agent's, returns too much or what
                cannot be sent, or has no thread to run in.
        """
        catalog = self._catalogs[tool.catalog]
        agent = agent_id(tool.catalog, str(catalog.table.get("agent") or tool.catalog))
        if tool.agent != agent:  # rules for the agent would not match
            raise CallProblem(
                "refused",
                f"{tool.id} was not called: pegboard.toml has the functions of '{tool.catalog}' "
                f"under {agent}. Whoever runs the gateway builds the release with that `agent`.",
            )
        listed = catalog.functions.get(tool.name)
        if listed is None:
            listed = await self._in_thread(catalog, tool, self._find, tool)
            catalog.functions[tool.name] = listed
        if inspect.iscoroutinefunction(listed.function):
            return await catalog.loop.run(self._await(lambda: listed.call(arguments)))
        answer = await self._in_thread(catalog, tool, self._run, listed, arguments)
        if isinstance(answer, CallToolResult):
            return answer
        return await catalog.loop.run(self._await(lambda: answer))

    def close(self) -> None:
        """End the event loops of coroutines."""
        for catalog in self._catalogs.values():
            catalog.loop.close()

    async def _in_thread(
        self, catalog: _Catalog, tool: Tool, function: Function, *args: Any
    ) -> Any:
        try:
            return await catalog.threads.run(function, *args)
        except AllOccupied:  # as many calls as threads are let in: these are of calls given up
            raise CallProblem(
                "failed",
                f"{tool.id} was not called: all threads of '{tool.catalog}' are occupied by calls "
                f"that were given up and have not ended. Try again later; if they never end, "
                f"whoever runs the gateway restarts it.",
            ) from None

    def _run(
        self, listed: _Listed, arguments: Mapping[str, Any]
    ) -> CallToolResult | Awaitable[Any]:
        """Return the result of a function, or what it returned to be awaited."""
        try:
            value = listed.call(arguments)
            return value if isinstance(value, Awaitable) else self._result(value)
        except CallProblem:
            raise
        except BaseException as error:  # a function that exits ends its call, not the gateway
            return _failure(error)

    async def _await(self, start: Callable[[], Awaitable[Any]]) -> CallToolResult:
        try:
            return self._result(await start())
        except CallProblem:
            raise
        except BaseException as error:  # nobody reads the result of a call that was given up
            return _failure(error)

    def _find(self, tool: Tool) -> _Listed:
        """Return the function of a tool, if its catalog's source would list it.

        What the release says is no reason to call anything: neither a name that a module merely
        imports, nor a function that takes arguments from its framework.
        """
        function = self._listed(tool)
        try:
            parameters = parameters_of(function)
        except NoSchema as error:
            raise CallProblem("refused", f"{tool.id} cannot be called: {error}.") from None
        if parameters.injected:
            raise CallProblem(
                "refused", f"{tool.id} takes arguments from its framework, which is not here."
            )
        return _Listed(function, parameters)

    def _listed(self, tool: Tool) -> Function:
        table = self._catalogs[tool.catalog].table
        for folder in _texts(table.get("search_path")):
            path = str((self._base / folder).resolve())
            if path not in sys.path:
                sys.path.insert(0, path)
        problems: list[str] = []
        for target in _texts(table.get("target")):
            try:
                function = _function_of(target, tool.name)
            except SourceError as error:
                problems.append(str(error))
            else:
                if function is not None:
                    return function
        for problem in problems:
            log.error("The catalog '%s' of [serve] python: %s", tool.catalog, problem)
        raise CallProblem(
            "failed", f"The function {tool.id} is not in the modules of '{tool.catalog}'."
        )

    def _result(self, value: Any) -> CallToolResult:
        structured = None
        if isinstance(value, str):
            text = value
        else:
            text = json.dumps(value, ensure_ascii=False, default=_plain)
            structured = json.loads(text) if text.startswith("{") else None
        if len(text.encode("utf-8", "replace")) > self._max_bytes:
            raise CallProblem(
                "too_large", f"The result has more than {self._max_bytes:,} bytes. Ask for less."
            )
        return CallToolResult(content=[TextContent(text=text)], structured_content=structured)


def _function_of(target: str, name: str) -> Function | None:
    """Return the function that a target lists under a name; None if it lists none.

    Raises:
        SourceError: the module cannot be imported or read.
    """
    module_name, colon, path = target.partition(":")
    if colon and path.rpartition(".")[2] != name:
        return None
    try:
        module = importlib.import_module(module_name)
    except BaseException as error:  # whatever a module does when it is run may end here
        text = f"the module {module_name} cannot be imported: {_message(error)}"
        raise SourceError(text) from error
    if colon:
        return named_function(module, path)
    names, listed = public_names(module)
    return public_function(module, name, listed) if name in names else None


def _positional(parameters: Iterable[inspect.Parameter], values: dict[str, Any]) -> Generator[Any]:
    """Take the values that cannot be passed by name, with the defaults of those between them."""
    only = [parameter for parameter in parameters if parameter.kind is parameter.POSITIONAL_ONLY]
    while only and only[-1].name not in values:
        only.pop()
    for parameter in only:
        yield values.pop(parameter.name, parameter.default)


def _problems(name: str, error: ValidationError) -> Generator[str]:
    for problem in error.errors(include_url=False, include_context=False, include_input=False):
        place = ".".join(str(part) for part in (name, *problem["loc"]))
        yield f"- {place:.300}: {problem['msg']:.300}"


def _plain(value: Any) -> Any:
    """Return a value that JSON does not have as one that it has, such as an object's fields."""
    if isinstance(value, Iterator | AsyncIterator | Awaitable):
        if inspect.iscoroutine(value) and inspect.getcoroutinestate(value) == inspect.CORO_CREATED:
            value.close()  # or its collection warns in whatever code runs then
        raise CallProblem(
            "failed",
            f"The result is of type {type(value).__name__}, whose values are still to come, and "
            f"cannot be sent. The function has to return them, as a list.",
        )
    return to_jsonable_python(value, fallback=str)


def _failure(error: BaseException) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=_message(error))], is_error=True)


def _message(error: BaseException) -> str:
    try:
        return redact(f"{type(error).__name__}: {error}")[:MAX_MESSAGE]
    except Exception:  # some exceptions have no text
        return type(error).__name__


def _texts(value: Any) -> list[str]:
    values: Any = [value] if isinstance(value, str) else value or []
    return [str(one) for one in values]
