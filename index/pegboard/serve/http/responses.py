"""Errors as HTTP responses."""

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from pegboard.serve.errors import RequestError, invalid, invalid_parameters, reported_error


def reported_http_error(error: Exception) -> RequestError:
    """Return an error of the HTTP application as clients see it; see `reported_error`."""
    match error:
        case HTTPException() if isinstance(error.__cause__, RequestError):
            return error.__cause__
        case HTTPException(status_code=404 | 405):
            return RequestError(
                error.status_code, "not_served", f"{error.detail}.", "path, method",
                "/openapi.json lists the paths, and the methods that each takes.", error.headers,
            )  # fmt: skip
        case HTTPException():
            return invalid(f"{error.detail}.", "body", "Send one JSON object.")
        case RequestValidationError():
            # The first part of a location says where the parameter was: body, query or path.
            problems = [{**problem, "loc": problem["loc"][1:]} for problem in error.errors()]
            return invalid_parameters(
                problems, "Correct it; /openapi.json describes every parameter."
            )
        case _:
            return reported_error(error)


def error_response(error: RequestError) -> Response:
    """Return an error as a JSON response."""
    return JSONResponse({"error": error.values}, error.status, headers=error.headers)
