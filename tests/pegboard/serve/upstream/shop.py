"""An HTTP API on loopback that repeats its requests, and its OpenAPI document."""

import json
from base64 import b64decode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

STRING = {"type": "string"}


def parameter(name, place, **more):
    return {"name": name, "in": place, "required": place == "path", "schema": STRING, **more}


def operation(name, *parameters, body=None, content="application/json", **more):
    spec = {
        "operationId": name,
        "summary": f"Operation {name}.",
        "parameters": list(parameters),
        "responses": {"200": {"description": "ok"}},
        **more,
    }
    if body:
        spec["requestBody"] = {"content": {content: {"schema": body}}}
    return spec


WORDS = {"schema": {"type": "array", "items": STRING}}
ORDER = {"type": "object", "properties": {"item": STRING, "amount": {"type": "integer"}}}
DOCUMENT = {
    "openapi": "3.0.3",
    "info": {"title": "Shop", "version": "1"},
    "servers": [{"url": "http://internal.example/v1"}],
    "components": {
        "securitySchemes": {
            "key": {"type": "apiKey", "name": "X-Key", "in": "header"},
            "query_key": {"type": "apiKey", "name": "key", "in": "query"},
            "cookie_key": {"type": "apiKey", "name": "session", "in": "cookie"},
            "login": {"type": "http", "scheme": "basic"},
            "bearer": {"type": "http", "scheme": "bearer"},
            "oauth": {
                "type": "oauth2",
                "flows": {"clientCredentials": {"tokenUrl": "http://evil.example", "scopes": {}}},
            },
        }
    },
    "paths": {
        "/orders/{order}": {
            "get": operation(
                "get_order",
                parameter("order", "path"),
                parameter("fields", "query", explode=False, **WORDS),
                parameter("tags", "query", **WORDS),
                parameter("X-Trace", "header"),
                parameter("theme", "cookie"),
                security=[{"bearer": []}],
            ),
            "delete": operation("cancel_order", parameter("order", "path")),
        },
        "/orders": {
            "post": operation("add_order", body=ORDER, security=[{"key": [], "query_key": []}]),
            "put": operation("replace_orders", body={"type": "array", "items": ORDER}),
        },
        "/form": {
            "post": operation(
                "send_form",
                body=ORDER,
                content="application/x-www-form-urlencoded",
                security=[{"login": []}, {"cookie_key": []}],
            )
        },
        "/account": {"get": operation("get_account", security=[{"oauth": []}])},
        "/away": {"get": operation("follow_away", security=[{"bearer": []}])},
        "/login": {"post": operation("log_in", body=ORDER)},
        "/broken": {"get": operation("get_broken")},
        "/long": {"get": operation("get_long")},
    },
}


class Handler(BaseHTTPRequestHandler):
    """Answers with the request as JSON."""

    def answer(self):
        length = int(self.headers.get("content-length") or 0)
        body = self.rfile.read(length).decode()
        self.server.requests.append(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        path = self.path.partition("?")[0]
        if path == "/v1/login":
            return self.send(200, {}, cookie=f"session={json.loads(body)['item']}; Path=/")
        if path == "/v1/token":
            credential = headers["authorization"].removeprefix("Basic ")
            secret = b64decode(credential).decode().removeprefix("gateway:")
            token = {"access_token": f"token-{len(body)}-4711abc"}
            odd = {"list": [token], "soon": {**token, "expires_in": "soon"}}
            return self.send(401 if secret == "other" else 200, odd.get(secret, token))
        if path == "/v1/away":
            return self.send(302, {}, location="http://evil.example/steal")
        if path == "/v1/broken":
            return self.send(404, {"error": "no such thing", "headers": headers})
        if path == "/v1/long":
            return self.send(200, {"text": "x" * 100_000})
        return self.send(
            200, {"method": self.command, "path": self.path, "headers": headers, "body": body}
        )

    def send(self, status, value, location=None, cookie=None):
        content = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        if location:
            self.send_header("location", location)
        if cookie:
            self.send_header("set-cookie", cookie)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args):
        pass


for method in ("GET", "POST", "PUT", "DELETE"):
    setattr(Handler, f"do_{method}", Handler.answer)


def serve():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.requests = []
    return server
