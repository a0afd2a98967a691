"""What the HTTP API takes: parameters with their limits, and bodies."""

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from starlette.requests import ClientDisconnect, Request

from pegboard.errors import did_you_mean
from pegboard.serve.finder import MAX_QUERY
from pegboard.serve.http_errors import ApiError, invalid

MAX_BODY = 65_536
"""Bytes of a request's body."""
MAX_PARAMETERS = 16_384
"""Bytes of the parameters in an address."""
SHOWN = 5
"""Problems of one request that the error names."""

Query = Annotated[
    str,
    Field(min_length=1, max_length=MAX_QUERY, description="What is wanted, in plain words."),
]
Name = Annotated[str, Field(min_length=1, max_length=200)]
ToolId = Annotated[str, Field(min_length=1, max_length=1_000)]
Release = Annotated[
    str | None,
    Field(
        pattern="^[0-9a-f]{1,64}$",
        description="A release to ask instead of the live one: its id or the beginning of it.",
    ),
]
Model = TypeVar("Model", bound="Parameters")


class Parameters(BaseModel):
    """The parameters of an operation. Unknown ones are an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class FindParameters(Parameters):
    """Which tools fit a request."""

    query: Query
    k: Annotated[int, Field(ge=1, le=100, description="The most tools that are returned.")] = 5
    strategy: Annotated[
        Name | None,
        Field(
            description="A built-in strategy by name (GET /v1/status); by default the release's."
        ),
    ] = None
    index: Annotated[
        Name | None, Field(description="An index of the release; its default one by default.")
    ] = None
    release: Release = None
    explain: Annotated[
        bool,
        Field(description="Also return what each feature adds, and each part's queries and ranks."),
    ] = False


class ToolsParameters(Parameters):
    """Which tools are listed, by id."""

    agent: Annotated[str | None, Field(max_length=1_000, description="An agent's id.")] = None
    catalog: Annotated[Name | None, Field(description="A catalog's name.")] = None
    tag: Annotated[Name | None, Field(description="A tag that the tools have.")] = None
    text: Annotated[
        str | None,
        Field(max_length=200, description="Words that the id or the description contains."),
    ] = None
    limit: Annotated[int, Field(ge=1, le=200, description="Tools on a page.")] = 50
    after: Annotated[
        str | None, Field(max_length=1_000, description="The `next` of the page before.")
    ] = None
    release: Release = None


class ReleaseParameters(Parameters):
    """Which release is asked."""

    release: Release = None


class GraphParameters(Parameters):
    """Which part of the dependency graph is returned."""

    tool: Annotated[ToolId, Field(description="The tool in the middle.")]
    depth: Annotated[
        int, Field(ge=1, le=3, description="Dependencies between it and the farthest tool.")
    ] = 1
    release: Release = None


class GoldenParameters(Parameters):
    """A request with the tools that are right for it."""

    query: Query
    tools: Annotated[
        tuple[ToolId, ...],
        Field(min_length=1, max_length=50, description="Ids of all right tools."),
    ]
    kind: Literal["single", "parallel", "sequential"] | None = None
    release: Release = None

    @model_validator(mode="after")
    def _has_words(self) -> Self:
        if not self.query.strip():
            raise ValueError("query: expected words")
        return self


def query_parameters(request: Request, model: type[Model]) -> Model:
    """Return the parameters in an address.

    Raises:
        ApiError: they are too long, repeated, unknown or invalid.
    """
    if len(request.scope["query_string"]) > MAX_PARAMETERS:
        raise ApiError(
            414, "too_long", f"The parameters have more than {MAX_PARAMETERS} bytes.", "parameters",
            "Shorten them, or send a POST request.",
        )  # fmt: skip
    pairs = request.query_params.multi_items()
    names = [name for name, _ in pairs]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise invalid(f"{repeated[0]} is given twice.", repeated[0], "Give each parameter once.")
    return _checked(model, dict(pairs))


async def body_parameters(request: Request, model: type[Model]) -> Model:
    """Return the parameters in a JSON body.

    A body of another type is refused: a browser sends such a one from any page without asking.

    Raises:
        ApiError: it is too large, of another type, no JSON object, or invalid.
    """
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != "application/json":
        raise ApiError(
            415, "unsupported_type", f"The body is of type {content_type or 'none'!r:.60}.", "body",
            "Send a JSON object, with the header Content-Type: application/json.",
        )  # fmt: skip
    try:
        values: Any = json.loads(await _body(request))
    except (ValueError, RecursionError) as error:
        raise invalid(
            f"The body is not JSON: {error!s:.200}", "body", "Send one JSON object."
        ) from error
    if not isinstance(values, dict):
        raise invalid("The body is no JSON object.", "body", "Send one JSON object.")
    return _checked(model, values, strict=True)


async def _body(request: Request) -> bytes:
    """Return the body, of which no more than the limit is ever held."""
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_BODY:
                raise ApiError(
                    413, "too_large", f"The body has more than {MAX_BODY} bytes.", "body",
                    "Shorten it.",
                )  # fmt: skip
    except ClientDisconnect as error:
        raise invalid("The body ended early.", "body", "Send it again.") from error
    return bytes(body)


def _checked(model: type[Model], values: Mapping[str, Any], *, strict: bool = False) -> Model:
    # JSON has types of its own, the parameters of an address are all texts.
    try:
        if strict:
            return model.model_validate_json(json.dumps(values), strict=True)
        return model.model_validate(values)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=False)
    except ValueError as error:  # lone surrogates
        raise invalid(f"{error!s:.200}", "body", "Send valid Unicode.") from error
    places = [".".join(str(part) for part in problem["loc"]) for problem in problems]
    texts = [
        _problem(model, place, problem["type"], problem["msg"])
        for place, problem in zip(places, problems, strict=True)
    ]
    raise invalid(
        "; ".join(texts[:SHOWN]) + ("; ..." if len(texts) > SHOWN else "."),
        places[0] or "body",
        "Correct it; /openapi.json describes every parameter.",
    )


def _problem(model: type[Parameters], place: str, kind: str, message: str) -> str:
    if kind == "extra_forbidden":
        names: Sequence[str] = list(model.model_fields)
        hint = did_you_mean(place, names).rstrip(".?") or f"; expected {', '.join(names)}"
        return f"{place[:60]}: there is no such parameter{hint}"
    message = message.removeprefix("Value error, ")
    return f"{place}: {message[:1].lower()}{message[1:]}" if place else message
