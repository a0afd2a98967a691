"""The page: a few files, served as they are, under a policy that allows nothing from elsewhere."""

from importlib import resources

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",  # texts cannot become HTML
        "trusted-types 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}


def page_routes() -> list[BaseRoute]:
    """Return a route for each file of the page."""
    files = {
        file.name: file.read_bytes()
        for file in resources.files("pegboard.serve").joinpath("page").iterdir()
        if file.name.endswith(tuple(TYPES))
    }
    return [
        _route("/" if name == "index.html" else f"/page/{name}", name, content)
        for name, content in files.items()
    ]


def is_public(path: str) -> bool:
    """Whether a path is that of the page or of the API's description."""
    return path in ("/", "/openapi.json") or path.startswith("/page/")


def _route(path: str, name: str, content: bytes) -> Route:
    media_type = TYPES[name[name.rindex(".") :]]

    async def file(_: Request) -> Response:
        return Response(content, headers=HEADERS, media_type=media_type)

    return Route(path, file, methods=["GET"])
