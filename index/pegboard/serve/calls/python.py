"""Calls to Python functions, in this process: only of catalogs that `[serve] python` names.

FastMCP turns arguments into values of the function's types, and what it returns into a result."""

import asyncio
import importlib
import inspect
import logging
import sys
import threading
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fastmcp.exceptions import ValidationError
from fastmcp.tools import FunctionTool
from mcp_types import CallToolResult

from pegboard.records import Tool, agent_id
from pegboard.redaction import redact
from pegboard.schemas.modules import named_function, public_function, public_names
from pegboard.serve.calls.results import CallProblem, error_result

MAX_MESSAGE = 2_000
"""Characters of an exception that are shown."""

log = logging.getLogger("pegboard.serve")
Function = Callable[..., Any]


@dataclass(slots=True, eq=False)
class _Catalog:
    """The functions of a catalog, and where they run: a catalog that hangs costs only itself.

    Attributes:
        free: threads for functions. One counts until it ends, whoever still waits for it.
        loop: the event loop of all its coroutines, in a thread of its own.
    """

    table: Mapping[str, Any]
    free: threading.Semaphore
    loop: asyncio.AbstractEventLoop | None = None
    functions: dict[str, FunctionTool] = field(default_factory=dict[str, FunctionTool])


class PythonCalls:
    """The functions of some catalogs of type `python`.

    Args:
        catalogs: `[catalogs]` of the configuration.
        allowed: the catalogs whose functions may run.
        base: the folder from which their search paths count.
        threads: for the functions of each catalog.
    """

    def __init__(
        self,
        catalogs: Mapping[str, Mapping[str, Any]],
        allowed: tuple[str, ...],
        base: Path,
        threads: int,
    ) -> None:
        self._catalogs = {
            name: _Catalog(table, threading.Semaphore(threads))
            for name, table in catalogs.items()
            if name in allowed and table.get("type") == "python"
        }
        self._base = base

    def serves(self, catalog: str) -> bool:
        """Whether the functions of a catalog may run."""
        return catalog in self._catalogs

    async def call(self, tool: Tool, arguments: Mapping[str, Any]) -> CallToolResult:
        """Return what a function returns; an exception becomes an error.

        A coroutine runs in its catalog's event loop, any other function in a thread, which no time
        limit can end.

        Raises:
            CallProblem: the function is not there or is another agent's, its arguments do not fit,
                or it has no thread to run in.
        """
        catalog = self._catalogs[tool.catalog]
        agent = agent_id(tool.catalog, str(catalog.table.get("agent") or tool.catalog))
        if tool.agent != agent:  # rules for the agent would not match
            raise CallProblem(
                "refused",
                f"{tool.id} was not called: pegboard.toml has the functions of '{tool.catalog}' "
                f"under {agent}. Whoever runs the gateway builds the release with that `agent`.",
            )
        if tool.name not in catalog.functions:
            catalog.functions[tool.name] = await asyncio.to_thread(self._find, catalog, tool)
        function = catalog.functions[tool.name]
        if inspect.iscoroutinefunction(function.fn):
            return await _in_loop(catalog, _answer(function, arguments))
        return await _in_thread(catalog, tool, function, arguments)

    def close(self) -> None:
        """End the event loops of coroutines."""
        for catalog in self._catalogs.values():
            if catalog.loop is not None:
                asyncio.run_coroutine_threadsafe(_end(), catalog.loop)

    def _find(self, catalog: _Catalog, tool: Tool) -> FunctionTool:
        """Return the function of a tool, if its catalog's source would list it.

        What the release says is no reason to call anything: neither a name that a module merely
        imports, nor a function that takes arguments from its framework.
        """
        for folder in _texts(catalog.table.get("search_path")):
            path = str((self._base / folder).resolve())
            if path not in sys.path:
                sys.path.insert(0, path)
        targets = _texts(catalog.table.get("target"))
        functions = (_function_of(target, tool) for target in targets)
        function = next((one for one in functions if one is not None), None)
        if function is None:
            raise CallProblem(
                "failed", f"The function {tool.id} is not in the modules of '{tool.catalog}'."
            )
        try:
            found = FunctionTool.from_function(
                function, name=tool.name, output_schema=None, run_in_thread=False
            )
            given = inspect.signature(function).parameters.keys()
        except Exception as error:
            text = f"{tool.id} cannot be called: {_message(error)}"
            raise CallProblem("refused", text) from None
        if given - found.parameters.get("properties", {}).keys():
            raise CallProblem(
                "refused", f"{tool.id} takes arguments from its framework, which is not here."
            )
        return found


async def _answer(function: FunctionTool, arguments: Mapping[str, Any]) -> CallToolResult:
    """Call a function. Whatever it raises, also SystemExit, ends its call and not the gateway.

    Raises:
        CallProblem: the arguments do not fit.
    """
    try:
        value = await function.run(dict(arguments))
        result = CallToolResult(
            content=value.content,
            structured_content=value.structured_content,
            is_error=bool(value.is_error),
        )
        result.model_dump_json()  # or half of a character would cost more than this call
    except ValidationError as error:
        raise CallProblem(
            "invalid", f"The arguments do not fit, and it was not called: {_message(error)}"
        ) from None
    except BaseException as error:
        return error_result(_message(error))
    return result


async def _in_loop(
    catalog: _Catalog, answer: Coroutine[Any, Any, CallToolResult]
) -> CallToolResult:
    """Run a coroutine in its catalog's event loop; who stops waiting cancels it."""
    if catalog.loop is None:
        catalog.loop = asyncio.new_event_loop()
        threading.Thread(target=_run, args=(catalog.loop,), daemon=True).start()
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(answer, catalog.loop))


def _run(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_forever()
    loop.close()


async def _in_thread(
    catalog: _Catalog, tool: Tool, function: FunctionTool, arguments: Mapping[str, Any]
) -> CallToolResult:
    """Run a function in a thread of its own, for which the process does not wait when it ends.

    Raises:
        CallProblem: as many calls as threads are let in, and these are of calls given up.
    """
    if not catalog.free.acquire(blocking=False):
        raise CallProblem(
            "failed",
            f"{tool.id} was not called: all threads of '{tool.catalog}' are occupied by calls "
            f"that were given up and have not ended. Try again later; if they never end, "
            f"whoever runs the gateway restarts it.",
        )
    done: Future[CallToolResult] = Future()
    done.set_running_or_notify_cancel()  # who stops waiting does not end the function

    def work() -> None:
        try:
            done.set_result(asyncio.run(_answer(function, arguments)))
        except CallProblem as problem:
            done.set_exception(problem)
        finally:
            catalog.free.release()

    threading.Thread(target=work, daemon=True).start()
    return await asyncio.wrap_future(done)


async def _end() -> None:
    """Cancel the coroutines of this event loop, and stop it as soon as they let it."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
    asyncio.get_running_loop().stop()


def _function_of(target: str, tool: Tool) -> Function | None:
    """Return the function that a target lists under a tool's name; None if it lists none."""
    module_name, colon, path = target.partition(":")
    if colon and path.rpartition(".")[2] != tool.name:
        return None
    try:
        module = importlib.import_module(module_name)
        if colon:
            return named_function(module, path)
        names, listed = public_names(module)
        return public_function(module, tool.name, listed) if tool.name in names else None
    except BaseException as error:  # whatever a module does when it is run may end here
        log.error("The catalog '%s' of [serve] python: %s", tool.catalog, _message(error))
        return None


def _message(error: BaseException) -> str:
    try:
        text = redact(f"{type(error).__name__}: {error}")[:MAX_MESSAGE]
        return text.encode("utf-8", "replace").decode()
    except Exception:  # some exceptions have no text
        return type(error).__name__


def _texts(value: Any) -> list[str]:
    values: Any = [value] if isinstance(value, str) else value or []
    return [str(one) for one in values]
