"""What the operations of the HTTP API receive: parameters, and the client with its view."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends
from pydantic import BaseModel, ConfigDict
from starlette.requests import Request

from pegboard.serve.access.clients import Client
from pegboard.serve.access.views import View
from pegboard.serve.errors import RequestError
from pegboard.serve.gateway import Gateway


class Parameters(BaseModel):
    """The parameters of an operation. Unknown ones are an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True, slots=True)
class RequestContext:
    """The gateway, and the client that the application recognised for a request."""

    gateway: Gateway
    client: Client

    def check_operator(self, what: str) -> None:
        """Raise RequestError if the client is not an operator; `what` is a noun phrase."""
        if not self.client.operator:
            raise RequestError(
                403, "operators_only", f"{what} are for operators.", "Authorization",
                "Ask the gateway's operator for the token of a client with `operator = true`.",
            )  # fmt: skip


async def _context(request: Request) -> RequestContext:
    """Return the gateway and the client of a request."""
    return RequestContext(request.app.state.gateway, request.state.client)


CurrentContext = Annotated[RequestContext, Depends(_context)]
"""Parameter of an operation: the gateway and the client of its request."""


async def _view(context: CurrentContext) -> View:
    """Return the release as the client of a request sees it."""
    return await context.gateway.access.view(context.client)


ClientView = Annotated[View, Depends(_view)]
"""Parameter of an operation: the release as the client of its request sees it."""
