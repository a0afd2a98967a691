"""Errors as clients are told them: what is wrong, where, and the next step; JSON over HTTP."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from pegboard.errors import BoardNotFound, PegboardError, QueryError
from pegboard.text.redaction import redact

log = logging.getLogger("pegboard.serve")


class ApiError(Exception):
    """An answer that is an error, with headers of its own."""

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
        self.status, self.code, self.headers = status, code, headers
        self.values = {"code": code, "what": what, "where": where, "next_step": next_step}

    def response(self) -> JSONResponse:
        """Return the error as a response."""
        return JSONResponse({"error": self.values}, self.status, headers=self.headers)


def invalid(what: str, where: str, next_step: str) -> ApiError:
    """Return the error of a parameter or body that cannot be answered."""
    return ApiError(400, "invalid_request", what, where, next_step)


def error_of(error: Exception) -> ApiError:
    """Return any error as clients are told it; what is not the request's fault is logged.

    The library's messages name files, addresses and models, which only the log may have.
    """
    cause = error.__cause__
    match error:
        case ApiError():
            return error
        case HTTPException() if isinstance(cause, ApiError):
            return cause
        case HTTPException(status_code=404 | 405):
            return ApiError(
                error.status_code, "not_served", f"{error.detail}.", "path, method",
                "/openapi.json lists the paths, and the methods that each takes.", error.headers,
            )  # fmt: skip
        case HTTPException():
            return invalid(f"{error.detail}.", "body", "Send one JSON object.")
        case RequestValidationError():
            problems = [{**one, "loc": one["loc"][1:]} for one in error.errors()]
            return invalid_parameters(
                problems, "Correct it; /openapi.json describes every parameter."
            )
        case QueryError():
            what, _, next_step = redact(str(error)).partition(". ")
            return invalid(f"{what.rstrip('.')}.", "query", next_step or "Correct it.")
        case BoardNotFound():
            return ApiError(
                404, "not_found", "There is no such index.", "index",
                "GET /v1/status lists the indexes of the release.",
            )  # fmt: skip
        case PegboardError():
            log.error("A request failed: %s", redact(str(error)))
            return ApiError(
                503, "unavailable", "The board, its encoder or its LLM does not answer.", "board",
                "Try again; the gateway's log has the error.",
            )  # fmt: skip
        case _:
            log.error("A request failed.", exc_info=error)
            return ApiError(
                500, "unexpected", "The gateway failed.", "gateway",
                "Try again; the gateway's log has the error.",
            )  # fmt: skip


def invalid_parameters(problems: Sequence[Mapping[str, Any]], next_step: str) -> ApiError:
    """Return the error of parameters, from the problems that pydantic names."""
    places = [".".join(map(str, problem["loc"])) for problem in problems]
    texts = [
        f"{place}: {problem['msg']}" if place else str(problem["msg"])
        for place, problem in zip(places, problems, strict=True)
    ]
    return invalid("; ".join(texts) + ".", places[0] or "body", next_step)
