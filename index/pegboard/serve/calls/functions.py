"""The functions of a Python catalog as an MCP server, which the gateway starts and calls like any
other: whatever a function does costs its own process. FastMCP turns arguments into values of the
function's types, and what it returns into a result.

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
"""Characters of an exception that are shown."""
ENDINGS = (SystemExit, KeyboardInterrupt, GeneratorExit)
"""What would end the process, if a function raises it."""

log = logging.getLogger("pegboard.serve")


def functions_server(table: Mapping[str, Any], base: Path) -> Server:
    """Return the server of a catalog of type `python`. It gets this process's environment, in which
    the functions expect their credentials.

    Args:
        table: of the catalog.
        base: the folder from which its search paths count.
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


class _CallEnd(Middleware):
    """Makes whatever a function raises or returns the end of its call, and of nothing else."""

    async def on_call_tool(
        self, context: MiddlewareContext[Any], call_next: CallNext[Any, ToolResult]
    ) -> ToolResult:
        """Answer a call."""
        try:
            result = await call_next(context)
            whole = CallToolResult(
                content=result.content, structured_content=result.structured_content
            )
            whole.model_dump_json()  # half of a character would cost the session
        except (*ENDINGS, Exception) as error:
            kind = "" if isinstance(error, FastMCPError) else f"{type(error).__name__}: "
            text = redact(f"{kind}{error}")[:MAX_MESSAGE]
            raise ToolError(text.encode("utf-8", "replace").decode()) from None
        return result


def _listed(targets: list[str]) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the functions that the catalog's source would list, by the names of their tools."""
    for target in targets:
        name, colon, path = target.partition(":")
        module = importlib.import_module(name)
        if colon:
            yield path.rpartition(".")[2], named_function(module, path)
            continue
        names, listed = public_names(module)
        for key in names:
            function = public_function(module, key, listed)
            if function is not None:
                yield key, function


def _serve(targets: list[str]) -> None:
    server = FastMCP("functions", middleware=[_CallEnd()])
    for name, function in _listed(targets):
        try:
            tool = FunctionTool.from_function(function, name=name, output_schema=None)
            server.add_tool(tool)
        except Exception as error:
            log.warning("%s cannot be called: %s", name, error)
    server.run(show_banner=False)


def _texts(value: Any) -> list[str]:
    values: Any = [value] if isinstance(value, str) else value or []
    return [str(one) for one in values]


if __name__ == "__main__":
    _serve(sys.argv[1:])
