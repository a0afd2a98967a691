"""Errors as clients see them: what is wrong, where, and the next step. `RequestError` answers a
request, `CallProblem` becomes the result of a call."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pegboard.errors import BoardNotFound, PegboardError, QueryError
from pegboard.text.redaction import redact

Outcome = Literal[
    "ok",
    "tool_error",
    "invalid",
    "unknown",
    "refused",
    "unconfirmed",
    "timeout",
    "too_large",
    "failed",
    "cancelled",
]
"""How a call ended.

`ok`: answered. `tool_error`: answered with an error of the tool. `invalid`: the arguments do not
match the schema. `unknown`: the client may see no such tool. `refused`: the user did not agree, or
the call is not configured. `unconfirmed`: the user has to be asked first. `timeout`: no answer in
time. `too_large`: the answer is longer than allowed. `failed`: the server was not reached, or the
connection broke. `cancelled`: the client gave up."""

log = logging.getLogger("pegboard.serve")


class CallProblem(Exception):
    """A call that was not made, or broke off. Becomes a result with `isError`.

    Args:
        message: what, where, and the next step, for the model that called.
    """

    def __init__(self, outcome: Outcome, message: str) -> None:
        super().__init__(message)
        self.outcome: Outcome = outcome


def answer_too_large(max_bytes: int) -> CallProblem:
    """Return the problem of an answer with more than `max_bytes` bytes."""
    return CallProblem(
        "too_large",
        f"The answer has more than {max_bytes:,} bytes. The call was made, and may have had an "
        f"effect. Ask for less, by its filters or pages.",
    )


class RequestError(Exception):
    """A request that is answered with an error.

    Args:
        status: the HTTP status; over MCP, 400 is a problem of the parameters.
        headers: of the HTTP response.
    """

    def __init__(
        self,
        status: int,
        code: str,
        what: str,
        where: str,
        next_step: str,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(f"{what} {next_step}")
        self.status = status
        self.code = code
        self.headers = headers
        self.values = {"code": code, "what": what, "where": where, "next_step": next_step}


def invalid(what: str, where: str, next_step: str) -> RequestError:
    """Return the error of an invalid parameter or body."""
    return RequestError(400, "invalid_request", what, where, next_step)


def invalid_parameters(problems: Sequence[Mapping[str, Any]], next_step: str) -> RequestError:
    """Return the error of invalid parameters, from the problems that pydantic lists."""
    places = [".".join(map(str, problem["loc"])) for problem in problems]
    texts = [
        f"{place}: {problem['msg']}" if place else str(problem["msg"])
        for place, problem in zip(places, problems, strict=True)
    ]
    return invalid("; ".join(texts) + ".", places[0] or "body", next_step)


def reported_error(error: Exception) -> RequestError:
    """Return an error as clients see it; log it unless the request caused it.

    The library's messages name files, addresses and models, which only the log may contain.
    """
    match error:
        case RequestError():
            return error
        case QueryError():
            what, _, next_step = redact(str(error)).partition(". ")
            return invalid(f"{what.rstrip('.')}.", "query", next_step or "Correct it.")
        case BoardNotFound():
            return RequestError(
                404, "not_found", "There is no such index.", "index",
                "GET /v1/status lists the indexes of the release.",
            )  # fmt: skip
        case PegboardError():
            log.error("A request failed: %s", redact(str(error)))
            return RequestError(
                503, "unavailable", "The board, its encoder or its LLM does not answer.", "board",
                "Try again; the gateway's log has the error.",
            )  # fmt: skip
        case _:
            log.error("A request failed.", exc_info=error)
            return RequestError(
                500, "unexpected", "The gateway failed.", "gateway",
                "Try again; the gateway's log has the error.",
            )  # fmt: skip
