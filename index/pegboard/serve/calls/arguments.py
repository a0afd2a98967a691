"""The arguments of a call against the input schema of its tool, before anything is called."""

import json
import logging
from collections.abc import Mapping
from typing import Any

from anyio import BrokenWorkerProcess, CapacityLimiter, to_process

from pegboard.records import Tool
from pegboard.serve.calls.results import CallProblem
from pegboard.serve.calls.schema_check import problems_of

MAX_CHECKS = 2
"""At once, each in a process; callers let in no more."""
MAX_SECONDS = 1.0
"""Of processor time, for one check."""

log = logging.getLogger("pegboard.serve")


async def check_arguments(tool: Tool, arguments: Mapping[str, Any]) -> None:
    """Raise CallProblem with all that is wrong with the arguments, or if that takes too much time
    or memory to tell.

    They are checked in another process: what takes long costs its call alone, and cancelling that
    ends the process. A schema that cannot be used checks nothing: the tool itself will judge.
    """
    try:
        # Halves of characters are refused here: no tool could be sent them.
        text = json.dumps(dict(arguments), allow_nan=False, ensure_ascii=False)
        text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise CallProblem(
            "invalid",
            f"The arguments are not JSON, or too deep: {error!s:.200}. {tool.id} was not called.",
        ) from None
    try:
        schema = json.dumps(dict(tool.input_schema))
    except (TypeError, ValueError, RecursionError):
        return
    try:
        problems = await to_process.run_sync(
            *(problems_of, schema, text, MAX_SECONDS),
            cancellable=True,
            limiter=CapacityLimiter(1),  # that of all work in processes is everyone's
        )
    except BrokenWorkerProcess as error:
        log.warning(
            "The check of a call's arguments for %s broke off: %r", tool.id, error.__cause__
        )
        raise CallProblem(
            "invalid",
            f"It takes too long to check these arguments against the inputSchema of {tool.id}, "
            f"and it was not called. Send less, or tell whoever publishes the tool that its "
            f"schema is too complex.",
        ) from None
    if problems:
        lines = "\n".join(f"- {problem}" for problem in problems)
        raise CallProblem(
            "invalid",
            f"The arguments do not fit the tool's inputSchema, and it was not called:\n{lines}",
        )
