"""An MCP server of the functions of a Python catalog, which the gateway starts and calls like any
other server. Functions run in their own process, so that they cannot harm the gateway. FastMCP
converts arguments to the types of the function's parameters, and return values to results.

    python -m pegboard.serve.calls.functions TARGET...
"""

import importlib
import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from fastmcp import FastMCP
from fastmcp.exceptions import FastMCPError, ToolError
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fastmcp.tools import FunctionTool, ToolResult
from mcp_types import CallToolResult

from pegboard.schemas.modules import named_function, public_function, public_names
from pegboard.servers.config import Server
from pegboard.servers.references import secrets_in_catalogs
from pegboard.text.redaction import is_secret_name, redact

MAX_MESSAGE = 2_000
"""Most characters of an exception's text in a result."""
EXITS = (SystemExit, KeyboardInterrupt, GeneratorExit)
"""Exceptions that would end the process if a function raised them."""

log = logging.getLogger("pegboard.serve")


def functions_server(table: Mapping[str, Any], base: Path) -> Server:
    """Return the server of a catalog of type `python`. It gets the environment of this process, in
    which the functions expect their credentials.

    Args:
        table: the catalog's table in pegboard.toml.
        base: the folder that relative search paths start from.
    """
    folders = [str((base / folder).resolve()) for folder in _texts(table.get("search_path"))]
    path = os.pathsep.join(filter(None, [*folders, *sys.path]))
    secrets = secrets_in_catalogs(
        value for name, value in os.environ.items() if is_secret_name(name)
    )
    return Server(
        transport="stdio",
        source="",
        command=sys.executable,
        args=("-P", "-m", __name__, *_texts(table.get("target"))),
        env={**os.environ, "PYTHONPATH": path},
        cwd=base,
        secrets=secrets,
        private=secrets,
    )


class _CallIsolation(Middleware):
    """Turns everything that a function raises, and results that are not JSON, into tool errors."""

    async def on_call_tool(
        self, context: MiddlewareContext[Any], call_next: CallNext[Any, ToolResult]
    ) -> ToolResult:
        """Answer a call."""
        try:
            result = await call_next(context)
            sent_result = CallToolResult(
                content=result.content, structured_content=result.structured_content
            )
            sent_result.model_dump_json()  # a lone surrogate would end the session
        except (*EXITS, Exception) as error:
            prefix = "" if isinstance(error, FastMCPError) else f"{type(error).__name__}: "
            text = redact(f"{prefix}{error}")[:MAX_MESSAGE]
            raise ToolError(text.encode("utf-8", "replace").decode()) from None
        return result


def _functions(targets: list[str]) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the functions that the catalog's source lists, with the names of their tools."""
    for target in targets:
        name, colon, path = target.partition(":")
        module = importlib.import_module(name)
        if colon:
            yield path.rpartition(".")[2], named_function(module, path)
            continue
        names, has_all = public_names(module)
        for function_name in names:
            function = public_function(module, function_name, has_all)
            if function is not None:
                yield function_name, function


def _serve(targets: list[str]) -> None:
    server = FastMCP("functions", middleware=[_CallIsolation()])
    for name, function in _functions(targets):
        try:
            tool = FunctionTool.from_function(function, name=name, output_schema=None)
            server.add_tool(tool)
        except Exception as error:
            log.warning("%s cannot be called: %s", name, error)
    server.run(show_banner=False)


def _texts(value: Any) -> list[str]:
    values: Any = [value] if isinstance(value, str) else value or []
    return [str(item) for item in values]


if __name__ == "__main__":
    _serve(sys.argv[1:])
