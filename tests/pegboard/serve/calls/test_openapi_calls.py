"""Calls of operations of an OpenAPI document: requests, credentials, and what a release or an
argument cannot do."""

import asyncio
import base64
import json

import pytest
from pydantic import ValidationError

from pegboard.records import Tool
from pegboard.serve.calls.openapi import _result
from pegboard.serve.calls.openapi_request import build_request
from pegboard.serve.errors import CallProblem
from pegboard.serve.settings import ApiSettings
from pegboard.servers.messages import NOT_SHOWN
from pegboard.text.secret_values import SecretValues
from tests.pegboard.serve.office import called

TOKEN = "tk-4711-abcdef-0815"
BASE = "https://api.example/v1"


@pytest.fixture
def call(desk_uri, shop, gateway_of):
    """A function: the result of one call with the given credentials."""

    def result(name, arguments=None, credentials=None, apis=None, settings=None, **serve):
        api = {"base_url": shop.url, "credentials": credentials or {}, **(settings or {})}

        async def run():
            configured_apis = {"shop": api} if apis is None else apis
            async with gateway_of(desk_uri, apis=configured_apis, **serve) as gateway:
                return await called(gateway, name, arguments or {})

        return asyncio.run(run())

    return result


def operation(**annotations):
    values = {"method": "GET", "path": "/a/{id}", "locations": {"id": "path"}, **annotations}
    return Tool("c/a/t", "c", "c/a", "t", annotations=values)


@pytest.mark.parametrize("levels", [90, 150, 300, 600, 5_000])
def test_deeply_nested_json_is_returned_as_text(levels):
    body = b'{"a":' * levels + b"1" + b"}" * levels

    result = _result(200, "application/json", body, SecretValues([TOKEN]))

    assert result.content[0].text == body.decode()
    assert (result.structured_content is None) == (levels > 200)
    assert json.loads(result.model_dump_json())


def test_parameters_are_sent_in_the_locations_of_the_document(call, monkeypatch):
    monkeypatch.setenv("SHOP_TOKEN", TOKEN)
    arguments = {
        "order": "a/b ä",
        "fields": ["x", "y"],
        "tags": ["p", "q"],
        "X-Trace": "t1",
        "theme": "dark",
    }

    slashes = {"slashes": ["order"]}
    result = call("get_order", arguments, {"bearer": "${SHOP_TOKEN}"}, settings=slashes)

    sent = result.structured_content
    assert sent["path"] == "/v1/orders/a%2Fb%20%C3%A4?fields=x%2Cy&tags=p&tags=q"
    assert sent["headers"]["x-trace"] == "t1"
    assert sent["headers"]["cookie"] == "theme=dark"
    assert sent["headers"]["authorization"] == "Bearer ***"  # it was sent, and is not shown
    assert TOKEN not in result.model_dump_json()


def test_a_body_is_sent_as_its_media_type(call, monkeypatch):
    monkeypatch.setenv("SHOP_LOGIN", f"ana:{TOKEN}")
    order = {"item": "tea", "amount": 2}

    added = call("add_order", order).structured_content
    replaced = call("replace_orders", {"body": [order]}).structured_content
    form = call("send_form", order, {"login": "${SHOP_LOGIN}"})

    assert (added["method"], json.loads(added["body"])) == ("POST", order)
    assert (replaced["method"], json.loads(replaced["body"])) == ("PUT", [order])
    assert form.structured_content["body"] == "item=tea&amount=2"
    encoded = base64.b64encode(f"ana:{TOKEN}".encode()).decode()
    assert encoded not in form.model_dump_json()
    assert TOKEN not in form.model_dump_json()


def test_keys_are_sent_in_header_query_and_cookie(call, monkeypatch):
    monkeypatch.setenv("SHOP_KEY", TOKEN)

    both = call("add_order", {"item": "x"}, {"key": "${SHOP_KEY}", "query_key": "${SHOP_KEY}"})
    cookie = call("send_form", {"item": "x"}, {"cookie_key": "${SHOP_KEY}"})

    assert both.structured_content["headers"]["x-key"] == "***"
    assert both.structured_content["path"] == "/v1/orders?key=***"
    assert cookie.structured_content["headers"]["cookie"] == "session=***"


@pytest.mark.parametrize("secret", ["s3cret", "other", "list", "soon"])
def test_a_token_is_requested_once_with_client_credentials_and_not_shown(
    desk_uri, shop, gateway_of, monkeypatch, secret
):
    monkeypatch.setenv("SHOP_CLIENT", f"gateway:{secret}")
    credentials = {"oauth": "${SHOP_CLIENT}"}
    api = {"base_url": shop.url, "credentials": credentials, "token_url": f"{shop.url}/token"}

    async def run():
        async with gateway_of(desk_uri, apis={"shop": api}) as gateway:
            return [await called(gateway, "get_account", {}) for _ in range(2)]

    shop.requests.clear()
    results = asyncio.run(run())

    if secret == "s3cret":
        sent = [result.structured_content["headers"]["authorization"] for result in results]
        assert sent == ["Bearer ***"] * 2
        assert shop.requests == ["/v1/token", "/v1/account", "/v1/account"]
    else:
        assert all("gave the gateway no token" in str(result.content) for result in results)
        assert shop.requests == ["/v1/token"] * 2


def test_cookies_of_one_call_are_not_sent_with_the_next(desk_uri, shop, gateway_of):
    async def run():
        async with gateway_of(desk_uri, apis={"shop": {"base_url": shop.url}}) as gateway:
            await called(gateway, "log_in", {"item": "of-ana"})
            without = await called(gateway, "get_order", {"order": "1"})
            with_own = await called(gateway, "get_order", {"order": "1", "theme": "dark"})
            return without.structured_content["headers"], with_own.structured_content["headers"]

    without, with_own = asyncio.run(run())

    assert "cookie" not in without
    assert with_own["cookie"] == "theme=dark"


def test_a_clients_token_is_passed_to_an_api_with_passthrough(desk_uri, shop, ask, monkeypatch):
    monkeypatch.setenv("ANA_TOKEN", TOKEN)
    body = {"json": {"tool": "get_order", "arguments": {"order": "1"}}}
    bearer = {"headers": {"Authorization": f"Bearer {TOKEN}"}}

    with_token, without = ask(
        desk_uri,
        ("POST", "/v1/call", body | bearer),
        ("POST", "/v1/call", body),
        apis={"shop": {"base_url": shop.url, "auth": "passthrough"}},
        clients={"ana": {"token": "${ANA_TOKEN}"}, "everyone": {}},
    )

    sent = with_token.json()["structuredContent"]["headers"]["authorization"]
    assert sent == "Bearer ***"  # it was sent, and is not shown
    assert "the request has no bearer token" in without.text


def test_a_missing_variable_is_an_error_and_nothing_is_sent(call, shop, monkeypatch):
    monkeypatch.delenv("SHOP_TOKEN", raising=False)
    requests_before = len(shop.requests)

    result = call("get_order", {"order": "1"}, {"bearer": "${SHOP_TOKEN}"})

    assert "SHOP_TOKEN is not set" in result.content[0].text
    assert len(shop.requests) == requests_before


@pytest.mark.parametrize(
    "url",
    [
        "https://a.example/v1?key=1",
        "https://a.example/#v1",
        "https://ana:pw@a.example",
        "https://a.example\\@b.example",
        "https://",
        "http://[",
        "file:///etc/passwd",
        "a.example/v1",
    ],
)
def test_an_address_to_which_no_path_can_be_appended_is_refused(url):
    with pytest.raises(ValidationError):
        ApiSettings(base_url=url)


def test_an_api_without_an_address_is_refused_with_the_line_to_add(call, shop):
    requests_before = len(shop.requests)

    result = call("get_order", {"order": "1"}, apis={})

    assert '[serve.apis."shop"]' in result.content[0].text
    assert len(shop.requests) == requests_before


def test_errors_of_the_api_are_errors_of_the_tool_without_credentials(call):
    result = call("get_broken")

    assert result.is_error
    assert result.content[0].text.startswith("HTTP 404\n")


def test_redirects_are_not_followed(call, monkeypatch):
    monkeypatch.setenv("SHOP_TOKEN", TOKEN)

    away = call("follow_away", credentials={"bearer": "${SHOP_TOKEN}"})

    assert "a redirect to http://evil.example/steal, which is not followed" in away.content[0].text


def test_an_image_with_a_credential_is_not_shown():
    secrets = SecretValues([TOKEN])

    svg = _result(200, "image/svg+xml", f"<svg>{TOKEN}</svg>".encode(), secrets)
    png_with_token = _result(200, "image/png", b"\x89PNG" + TOKEN.encode(), secrets)
    type_with_token = _result(200, f"image/{TOKEN}", b"\x89PNG", secrets)

    assert svg.content[0].text == "<svg>***</svg>"
    assert png_with_token.content[0].text == NOT_SHOWN
    assert type_with_token.content[0].mime_type == "image/***"


def test_reading_stops_when_an_answer_is_too_long(call):
    result = call("get_long", calls={"max_bytes": 5_000})

    assert "more than 5,000 bytes" in result.content[0].text


def test_a_delete_is_confirmed_or_refused(call, shop):
    requests_before = len(shop.requests)

    result = call("cancel_order", {"order": "1"})
    allowed = call("cancel_order", {"order": "1"}, calls={"destructive": "allow"})

    assert "may destroy something" in result.content[0].text
    assert allowed.structured_content["method"] == "DELETE"
    assert len(shop.requests) == requests_before + 1


@pytest.mark.parametrize(
    "value",
    [
        *("..", ".", "", "../admin", "a/../../admin", "a/..", "./a", "a/./b", "/..", "..\\admin"),
        *(
            "%2e%2e",
            "%2E%2E/admin",
            "..%2fadmin",
            "a%2f..%2fb",
            "%252e%252e%252fadmin",
            "a%5c..%5cb",
        ),
        *("..;", "..;/admin", "a/..;x=1/b", "%2e%2e%3b/admin", ".. /admin", "..\t/admin", "..\0/x"),
        *("．．／admin", "‥/admin", ["a", "b/../c"], {"x": "a/../b"}),
    ],
)
def test_a_path_argument_cannot_select_another_operation(value):
    with pytest.raises(CallProblem, match=r"cannot|leads away"):
        build_request(operation(), {"id": value}, BASE, slashes=["id"])


@pytest.mark.parametrize(
    "value",
    [
        *("1/secret", "/secret", "1/", "1\\secret", "1%2Fsecret", "1%252fsecret", "1%5csecret"),
        *("1／secret", "1＼secret", ["1", "2/secret"], {"1/secret": 2}, {"x": "1/secret"}),
    ],
)
def test_a_path_argument_cannot_add_segments(value):
    tool = operation()

    with pytest.raises(CallProblem, match=r"cannot be .* slashes = \["):
        build_request(tool, {"id": value}, BASE)
    with pytest.raises(CallProblem, match=r"cannot be .* slashes = \["):
        build_request(tool, {"id": value}, BASE, slashes=["path"])


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        ("feature/x", "feature%2Fx"),
        ("src/a..b/.env", "src%2Fa%2E%2Eb%2F%2Eenv"),
        ("...", "%2E%2E%2E"),
        ("v1..v2", "v1%2E%2Ev2"),
        ("100% done", "100%25%20done"),
        ("a;b", "a%3Bb"),
        ("C:\\x", "C%3A%5Cx"),
    ],
)
def test_a_path_argument_may_have_dots_in_names_and_configured_slashes(value, sent):
    request = build_request(operation(), {"id": value}, BASE, slashes=["id"])

    assert str(request.url) == f"{BASE}/a/{sent}"


@pytest.mark.parametrize("arguments", [{"a": "x/", "b": "/y"}, {"a": "x%2f", "b": "%2fy"}])
def test_path_arguments_cannot_form_dot_segments(arguments):
    tool = operation(path="/{a}.{b}", locations={"a": "path", "b": "path"})

    with pytest.raises(CallProblem, match="leads away"):
        build_request(tool, arguments, BASE, slashes=["a", "b"])


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
@pytest.mark.parametrize("value", ["x", None])
def test_unknown_arguments_are_named_and_nothing_is_sent(method, value):
    tool = operation(method=method, locations={"id": "path", "filter": "query"})

    with pytest.raises(CallProblem, match=r"'filtr'; did you mean 'filter'.*: id, filter"):
        build_request(tool, {"id": "1", "filtr": value}, BASE)
    with pytest.raises(CallProblem, match="expected: none"):
        build_request(operation(path="/a", method=method, locations={}), {"x": value}, BASE)


def test_a_body_accepts_additional_properties():
    tool = operation(method="POST", locations={"id": "path", "item": "body"})

    request = build_request(tool, {"id": "1", "item": "tea", "note": "hot"}, BASE)

    assert json.loads(request.content) == {"item": "tea", "note": "hot"}


@pytest.mark.parametrize(
    "path",
    [
        *("@evil.example/", "/a/../../admin", "/a\\..\\b", "a"),
        *("/a/%2e%2e/admin", "/a/..%2fadmin", "/a/..;/admin"),
    ],
)
def test_a_release_cannot_redirect_a_request_to_another_address(path):
    with pytest.raises(CallProblem):
        build_request(operation(path=path, locations={}), {}, BASE)


@pytest.mark.parametrize("name", ["Host", "Authorization", "Cookie", "Proxy-Connection", "X\nY"])
def test_arguments_cannot_set_reserved_headers(name):
    tool = operation(path="/a", locations={"h": "header"}, names={"h": name})

    with pytest.raises(CallProblem, match="cannot be set"):
        build_request(tool, {"h": "x"}, BASE)


@pytest.mark.parametrize(
    ("style", "value", "query"),
    [
        ("", ["a", "b"], [("q", "a"), ("q", "b")]),
        ("form,false", ["a", "b"], [("q", "a,b")]),
        ("pipeDelimited,false", ["a", "b"], [("q", "a|b")]),
        ("deepObject,true", {"x": 1, "y": "z"}, [("q[x]", "1"), ("q[y]", "z")]),
        ("", {"x": 1, "y": True}, [("x", "1"), ("y", "true")]),
        ("form,false", {"x": 1}, [("q", "x,1")]),
        ("json", {"x": [1]}, [("q", '{"x": [1]}')]),
        ("", 1.5, [("q", "1.5")]),
    ],
)
def test_query_values_are_written_in_the_style_of_their_parameter(style, value, query):
    tool = operation(path="/a", locations={"q": "query"}, styles={"q": style} if style else {})

    assert build_request(tool, {"q": value}, BASE).url.params.multi_items() == query


@pytest.mark.parametrize("style", ["label", "matrix", "tabDelimited,false"])
def test_an_operation_with_an_unsupported_style_is_refused_with_a_reason(style):
    tool = operation(styles={"id": style})

    with pytest.raises(CallProblem, match=f"in the style '{style}'"):
        build_request(tool, {"id": "1"}, BASE)
