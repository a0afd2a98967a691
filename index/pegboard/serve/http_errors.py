"""Errors as clients are told them: what is wrong, where, and the next step; JSON over HTTP."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse

from pegboard.errors import BoardNotFound, PegboardError, QueryError
from pegboard.redaction import redact

SHOWN = 5
"""Problems of one request that the error names."""

log = logging.getLogger("pegboard.serve")


class ApiError(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, code: str, what: str, where: str, next_step: str) -> None:
        super().__init__(what)
        self.status = status
        self.values = {"code": code, "what": what, "where": where, "next_step": next_step}

    def __str__(self) -> str:
        return f"{self.values['what']} {self.values['next_step']}"

    def response(self, headers: Mapping[str, str] | None = None) -> JSONResponse:
        """Return the error as a response."""
        headers = {"Cache-Control": "no-store", **(headers or {})}
        return JSONResponse({"error": self.values}, self.status, headers=headers)


def invalid(what: str, where: str, next_step: str) -> ApiError:
    """Return the error of a parameter or body that cannot be answered."""
    return ApiError(400, "invalid_request", what, where, next_step)


def unknown_client(sign_in: str) -> JSONResponse:
    """Return the answer to a request that no client is recognised by.

    Args:
        sign_in: the address of the metadata that says where to get a token; "" without one.
    """
    metadata = f' resource_metadata="{sign_in}"' if sign_in else ""
    return ApiError(
        401, "unknown_client", "The credentials are not known here.", "Authorization",
        "Send the header `Authorization: Bearer TOKEN` with the token of a client.",
    ).response({"WWW-Authenticate": f"Bearer{metadata}"})  # fmt: skip


def operators_only(what: str) -> ApiError:
    """Return the error of a request that only an operator may make; `what` is a noun phrase."""
    return ApiError(
        403, "operators_only", f"{what} are for operators.", "Authorization",
        "Ask whoever runs the gateway for the token of a client with `operator = true`.",
    )  # fmt: skip


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
        case HTTPException():
            return invalid(str(error.detail), "body", "Send one JSON object.")
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
                404, "not_found", "There is no such release or index, or there are several.",
                "release, index", "GET /v1/releases lists the newest releases and their indexes.",
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


async def not_served(request: Request, error: Exception) -> JSONResponse:
    """Answer a path that is not served, or a method that a path does not take."""
    path, headers = f"{request.url.path!r:.200}", getattr(error, "headers", None)
    problem = (404, "not_found", f"There is no {path}.", "path")
    if getattr(error, "status_code", 404) == 405:
        problem = (405, "wrong_method", f"{path} does not take {request.method}.", "method")
    next_step = "/openapi.json lists the paths, and the methods that each takes."
    return ApiError(*problem, next_step).response(headers)


def invalid_parameters(problems: Sequence[Mapping[str, Any]], next_step: str) -> ApiError:
    """Return the error of parameters, from the problems that pydantic names."""
    places = [".".join(map(str, problem["loc"])) for problem in problems]
    texts = [
        f"{place[:60]}: {problem['msg']}" if place else str(problem["msg"])
        for place, problem in zip(places, problems, strict=True)
    ]
    more = "; ..." if len(texts) > SHOWN else "."
    return invalid("; ".join(texts[:SHOWN]) + more, places[0] or "body", next_step)
