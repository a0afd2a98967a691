import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from catalogs.openapi.source import source
from catalogs.shared.listing import Listing, ListingBuilder
from catalogs.shared.yaml_json import parse_yaml
from pegboard.errors import SourceError

SPECIMENS = Path(__file__).parent / "specimens"
TREE = json.loads((SPECIMENS / "tree.json").read_text())


def listed(base: Path, path: str = "api.json", **options: Any) -> Listing:
    where = {} if "url" in options else {"path": path}
    builder = ListingBuilder("apis", base)
    source.read(builder, source.options.model_validate({"type": "openapi", **where, **options}))
    return builder.build()


def listed_document(base: Path, document: Any) -> Listing:
    (base / "api.json").write_text(document if isinstance(document, str) else json.dumps(document))
    return listed(base)


def document(**operations: Any) -> dict[str, Any]:
    """A document with a GET operation for each name."""
    paths = {
        f"/{name}": {
            "get": {"operationId": name, "responses": {"200": {"description": "ok"}}} | given
        }
        for name, given in operations.items()
    }
    return {"openapi": "3.1.0", "info": {"title": "Test", "version": "1"}, "paths": paths}


def by_name(listing: Listing) -> dict[str, Any]:
    return {tool.name: tool for tool in listing.tools}


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield every value inside a value, with its place."""
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield (*path, key), item
            yield from places(item, (*path, key))


def references(schema: Any) -> set[str]:
    return {item for path, item in places(schema) if path[-1] == "$ref" and isinstance(item, str)}


def query(schema: Any) -> dict[str, Any]:
    """An operation with one parameter `q` of that schema."""
    return {"parameters": [{"name": "q", "in": "query", "schema": schema}]}


def link(name: Any) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/S{name}"}


def object_of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def test_a_yaml_document_lists_its_sound_operations_and_rejects_the_broken_ones() -> None:
    listing = listed(SPECIMENS, "shop.yaml")

    assert len(listing.tools) == 7
    first, middle, last = listing.tools[0], listing.tools[3], listing.tools[-1]
    assert (first.name, first.description) == ("createOrder", "Place an order")
    assert (middle.name, middle.annotations["path"]) == ("replaceOrder", "/orders/{orderId}")
    assert (last.name, last.annotations["contentType"]) == ("upload", "multipart/form-data")
    assert [(row.where, row.why.partition(":")[0]) for row in listing.rejected] == [
        (
            "shop.yaml GET /broken",
            "it refers to #/components/schemas/Nothing, which does not exist",
        ),
        ("shop.yaml POST /broken", "it is not valid OpenAPI"),
        ("shop.yaml GET /far", "it refers to https"),
        ("shop.yaml GET /hidden/{id}", "it is not valid OpenAPI"),
    ]
    assert json.loads(listing.rejected[0].raw)["operationId"] == "dangling"


def test_the_api_is_the_agent() -> None:
    (agent,) = listed(SPECIMENS, "shop.yaml").agents

    assert (agent.id, agent.kind, agent.source) == ("apis/Corner Shop", "api", "shop.yaml")
    assert "shelves of a corner shop" in agent.description


def test_parameters_of_path_and_operation_and_the_body_stand_in_one_schema() -> None:
    tools = by_name(listed(SPECIMENS, "shop.yaml"))

    assert tools["delete_orders_by_orderId"].input_schema == {
        "type": "object",
        "properties": {
            "orderId": {
                "type": "integer",
                "exclusiveMinimum": 0,
                "description": "The number of the order.",
            },
            "verbose": {
                "type": "string",
                "enum": ["on", "off", "yes", "no"],
                "description": "Say more.",
            },
        },
        "required": ["orderId"],
    }
    placed = tools["createOrder"].input_schema
    assert list(placed["properties"]) == [
        "item",
        "customer",
        "secret",
    ]  # not `number`, which is read-only
    assert placed["required"] == ["item", "customer"]
    assert placed["properties"]["item"] == {
        "type": "string",
        "description": "What.",
        "examples": ["tea"],
    }
    assert placed["properties"]["customer"]["properties"]["born"]["type"] == ["string", "null"]
    assert tools["createOrder"].annotations["locations"] == dict.fromkeys(
        ("item", "customer", "secret"), "body"
    )


def test_a_body_that_cannot_stand_beside_the_parameters_is_an_argument_of_its_own() -> None:
    tools = by_name(listed(SPECIMENS, "shop.yaml"))

    assert tools["replaceOrder"].input_schema["required"] == ["orderId", "body"]
    assert tools["replaceOrder"].input_schema["properties"]["body"]["properties"]["orderId"] == {
        "type": "string"
    }
    assert tools["setTags"].input_schema["properties"] == {
        "body": {"type": "array", "items": {"type": "string"}}
    }
    assert (
        "required" not in tools["search"].input_schema
    )  # the body may be left out; if sent, `text` is required
    assert tools["search"].input_schema["properties"]["body"]["required"] == ["text"]


def test_parameters_of_one_name_in_two_places_are_both_kept(tmp_path: Path) -> None:
    parameters = [
        {"name": "id", "in": place, "schema": {"type": "string"}} for place in ("query", "cookie")
    ]
    (tool,) = listed_document(tmp_path, document(a={"parameters": parameters})).tools

    assert tool.annotations["locations"] == {"id": "query", "id_cookie": "cookie"}


def test_an_answer_that_is_no_object_is_wrapped_in_one() -> None:
    tools = by_name(listed(SPECIMENS, "shop.yaml"))

    output = tools["listOrders"].output_schema
    assert output["x-fastmcp-wrap-result"] is True
    assert "secret" not in json.dumps(output)  # write-only
    assert "number" in json.dumps(output)
    assert tools["upload"].output_schema is None


def test_annotations_tell_method_security_and_hints() -> None:
    tools = by_name(listed(SPECIMENS, "shop.yaml"))

    key = [{"name": "api_key", "type": "apiKey"}]
    assert tools["listOrders"].annotations == {
        "method": "GET",
        "path": "/orders",
        "readOnlyHint": True,
        "security": key,
        "locations": {"limit": "query", "since": "query"},
    }
    cancel = tools["delete_orders_by_orderId"]
    assert cancel.annotations["destructiveHint"] is True
    assert "security" not in cancel.annotations
    assert cancel.description == "Cancel an order\n\nDeprecated."
    assert tools["listOrders"].tags == ("orders",)


def test_cyclic_schemas_stand_once_under_the_tool_own_definitions() -> None:
    tools = by_name(listed(SPECIMENS, "tree.json"))

    assert sorted(tools) == ["addPerson", "listHouses", "listPets"]
    add = tools["addPerson"].input_schema
    assert sorted(add["$defs"]) == ["House", "Person"]
    assert add["properties"]["parent"] == {"$ref": "#/$defs/Person", "description": "Older."}
    assert add["properties"]["$ref"] == {
        "type": "string",
        "description": "A property of that name.",
    }
    assert "lives" in json.dumps(add["$defs"]["House"])
    assert sorted(tools["listHouses"].output_schema["$defs"]) == ["House", "Person"]
    assert tools["listPets"].input_schema["properties"]["filter"]["description"] == "Like this one."


@pytest.mark.parametrize("specimen", ["shop.yaml", "tree.json"])
def test_no_schema_refers_to_anything_outside_itself(specimen: str) -> None:
    for tool in listed(SPECIMENS, specimen).tools:
        for schema in (tool.input_schema, tool.output_schema or {}):
            assert "#/components" not in json.dumps(schema)
            assert references(schema) == {f"#/$defs/{name}" for name in schema.get("$defs", {})}


def test_a_tool_keeps_its_digest_when_keys_are_reordered_or_another_operation_changes(
    tmp_path: Path,
) -> None:
    def reordered(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: reordered(value[key]) for key in reversed(value)}
        return [reordered(item) for item in value] if isinstance(value, list) else value

    # Required arguments are a set; parameters are a list, and are not touched.
    before = by_name(listed_document(tmp_path, TREE))
    turned = by_name(listed_document(tmp_path, reordered(TREE)))
    fewer = by_name(
        listed_document(tmp_path, {**TREE, "paths": {"/houses": TREE["paths"]["/houses"]}})
    )

    assert {name: tool.digest for name, tool in turned.items()} == {
        name: tool.digest for name, tool in before.items()
    }
    assert fewer["listHouses"].digest == before["listHouses"].digest


def test_schemas_that_would_double_at_every_level_do_not_explode(tmp_path: Path) -> None:
    big = document(deep=query(link(0)))
    schemas = {f"S{n}": object_of(left=link(n + 1), right=link(n + 1)) for n in range(60)}
    big["components"] = {"schemas": {**schemas, "S60": {"type": "string"}}}

    (tool,) = listed_document(tmp_path, big).tools

    assert len(json.dumps(tool.input_schema)) < 20_000
    assert len(tool.input_schema["$defs"]) > 50


def test_an_endless_web_of_schemas_is_cut_and_says_so(tmp_path: Path) -> None:
    big = document(web=query(link(1)))
    schemas = {
        f"S{n}": object_of(**{f"p{i}": link((n * 7 + i) % 2000) for i in range(8)})
        for n in range(2000)
    }
    big["components"] = {"schemas": schemas}

    (tool,) = listed_document(tmp_path, big).tools

    assert "whose schema is left out" in json.dumps(tool.input_schema)
    assert references(tool.input_schema) == {
        f"#/$defs/{name}" for name in tool.input_schema["$defs"]
    }


def test_a_path_with_two_methods_without_ids_has_two_stable_names(tmp_path: Path) -> None:
    operation = {"responses": {"200": {"description": "ok"}}}
    given = document()
    given["paths"] = {
        "/": {"get": operation},
        "/a-b/{c.d}/e": {
            "parameters": [{"name": "c.d", "in": "path", "required": True, "schema": {}}],
            "get": operation,
            "patch": operation,
        },
    }

    assert sorted(by_name(listed_document(tmp_path, given))) == [
        "get",
        "get_a_b_by_c_d_e",
        "patch_a_b_by_c_d_e",
    ]


def test_a_repeated_operation_id_rejects_the_second(tmp_path: Path) -> None:
    listing = listed_document(
        tmp_path, document(a={"operationId": "same"}, b={"operationId": "same"})
    )

    assert [tool.annotations["path"] for tool in listing.tools] == ["/a"]
    assert [row.where for row in listing.rejected] == ["api.json GET /b"]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"responses": {}, "operationId": 3}, "not of type"),
        ({"parameters": {}}, "parameters"),
        ({"description": "x" * 10_000_000}, "10,000,000 characters"),
        (query({"type": "strange"}), "not valid JSON Schema"),
        ({"parameters": [{"$ref": "#/components/parameters/Loop"}]}, "circle"),
        (query({"$ref": "other.json"}), "cannot be read"),
        (query({"$ref": "/etc/passwd"}), "outside"),
        (query({"$ref": "file://host/x.json"}), "only references inside"),
        (query({"$dynamicRef": "#x"}), "dynamicRef"),
        (query({"$ref": 7}), "expected text"),
        (query({"$ref": "http://[x"}), "no reference"),
        ({"summary": "caf\udce9"}, "UTF-8"),
    ],
)
def test_a_broken_operation_leaves_the_others_alone(
    tmp_path: Path, given: dict[str, Any], why: str
) -> None:
    whole = document(sound={}, broken=given, other={})
    whole["components"] = {"parameters": {"Loop": {"$ref": "#/components/parameters/Loop"}}}
    text = json.dumps(whole, ensure_ascii=False).encode("utf-8", "surrogateescape")
    (tmp_path / "api.json").write_bytes(text)

    listing = listed(tmp_path)

    assert [tool.name for tool in listing.tools] == ["other", "sound"]
    assert [row.where for row in listing.rejected] == ["api.json GET /broken"]
    assert why in listing.rejected[0].why


def test_schemas_nested_too_deeply_reject_their_operation(tmp_path: Path) -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(150):
        schema = {"anyOf": [{"not": schema}]}
    deep = document(deep=query(schema), flat={})

    listing = listed_document(tmp_path, deep)

    assert {"flat"} <= {tool.name for tool in listing.tools}
    assert len(listing.tools) + len(listing.rejected) == 2


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[]", "expected an object"),
        ('{"swagger": "2.0", "paths": {}}', "swagger2openapi"),
        ('{"paths": {}}', "version `openapi` is None"),
        ('{"openapi": "4.0.0", "paths": {}}', "expected '3.0.x'"),
        ('{"openapi": "3.0.0", "info": {"title": "x", "version": "1"}}', "has no `paths`"),
        ('{"openapi": "3.0.0", "paths": {}, "info": {"title": 1}}', "not of type"),
        ('{"openapi": "3.1.0", "paths": {}}', "info"),
        ('{"openapi": "3.0.0", "info": {}, "paths": {}}', '"title" is a required property'),
        ('{"openapi": "3.0.0", "info": {}, "paths": {}}', '"version" is a required property'),
        ('{"openapi": ', "line 1"),
        ("openapi: 3.0.0\nopenapi: 3.0.1", "stands twice"),
        ("openapi: [unclosed", "line"),
        ('{"a":' * 100_000, "not JSON"),
        ("- " * 1000, "nested deeper"),
    ],
)
def test_a_document_that_is_not_openapi_fails_with_the_reason(
    tmp_path: Path, text: str, why: str
) -> None:
    with pytest.raises(SourceError, match=r"api\.json") as caught:
        listed_document(tmp_path, text)
    assert why in str(caught.value)


def test_openapi_3_2_and_its_query_method_are_read(tmp_path: Path) -> None:
    given = document(a={}) | {"openapi": "3.2.0"}
    given["paths"] = {"/a": {"query": given["paths"]["/a"]["get"]}}

    (tool,) = listed_document(tmp_path, given).tools

    assert tool.annotations["method"] == "QUERY"
    empty = listed_document(tmp_path, document())
    assert (len(empty.agents), empty.tools, empty.rejected) == (1, (), ())


def test_references_into_files_of_the_own_folder_are_followed_and_their_own_references_too(
    tmp_path: Path,
) -> None:
    api = tmp_path / "api"
    (api / "parts").mkdir(parents=True)
    (tmp_path / "secret.json").write_text('{"type": "string", "const": "secret"}')
    (api / "parts" / "link.json").symlink_to(tmp_path / "secret.json")
    (api / "parts" / "pet.yaml").write_text(
        "Pet: {type: object, properties: {next: {$ref: '#/Pet'}, size: {$ref: 'size.json'}}}"
    )
    (api / "parts" / "size.json").write_text('{"type": "integer"}')

    files = {
        "near": "parts/pet.yaml#/Pet",
        "far": "../secret.json",
        "link": "parts/link.json",
        "bad": "a b.json",
    }
    given = document(**{name: query({"$ref": ref}) for name, ref in files.items()})
    (api / "api.json").write_text(json.dumps(given))

    listing = listed(api)

    (tool,) = listing.tools
    assert tool.input_schema["$defs"]["Pet"]["properties"] == {
        "next": {"$ref": "#/$defs/Pet"},
        "size": {"type": "integer"},
    }
    assert [row.where for row in listing.rejected] == [
        "api.json GET /far",
        "api.json GET /link",
        "api.json GET /bad",
    ]
    assert "secret" not in json.dumps([tool.input_schema for tool in listing.tools])


def test_yaml_is_read_as_json_and_not_as_yaml_1_1() -> None:
    text = (
        "{200: on, no: 2024-01-01, null: 0755, a: 1e3, b: ~, c: &x {d: 1.5}, e: {<<: *x, f: "
        ".inf}, g: [true, False, -0x1F]}"
    )

    assert parse_yaml(text, "here") == {
        "200": "on",
        "no": "2024-01-01",
        "null": "0755",
        "a": 1000.0,
        "b": None,
        "c": {"d": 1.5},
        "e": {"f": ".inf", "d": 1.5},
        "g": [True, False, "-0x1F"],
    }


def test_yaml_that_is_an_attack_is_refused_at_once() -> None:
    bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10)
    )
    for text in (
        bomb,
        "a: &a [*a]",
        "[" * 100_000,
        "a: !!python/object/apply:os.system [ls]",
        "? [a]\n: b",
        "--- a\n--- b",
    ):
        with pytest.raises(SourceError, match="here"):
            parse_yaml(text, "here")


def test_a_file_that_is_too_large_and_a_pattern_of_several_are_refused(tmp_path: Path) -> None:
    with (tmp_path / "api.json").open("wb") as file:
        file.truncate(65_000_000)
    with pytest.raises(SourceError, match="65,000,000 bytes"):
        listed(tmp_path)
    (tmp_path / "b.json").write_text("{}")
    with pytest.raises(SourceError, match="matches 2 files"):
        listed(tmp_path, "*.json")


@pytest.mark.parametrize(
    "options",
    [{}, {"path": "a", "url": "https://b"}, {"url": "ftp://b"}, {"path": "a", "timeout": 0}],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        source.options.model_validate({"type": "openapi", **options})


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == "/moved":
            self.answer(302, b"", Location="/openapi.yaml?key=other")
        elif path == "/big":
            with contextlib.suppress(OSError):
                self.answer(200, *[b" " * 1_000_000] * 80)
        elif path == "/openapi.yaml" and self.headers.get("Authorization") == "Bearer t0ken":
            self.answer(200, (SPECIMENS / "shop.yaml").read_bytes())
        else:
            self.answer(401, b"no")

    def answer(self, status: int, *chunks: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        for chunk in chunks:
            self.wfile.write(chunk)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever, args=[0.05])
        thread.start()
        yield f"http://127.0.0.1:{http.server_port}"
        http.shutdown()
        thread.join()


HEADERS = {"Authorization": "Bearer ${SHOP_TOKEN}"}


def test_a_document_is_fetched_with_headers_from_the_environment(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "t0ken")

    listing = listed(tmp_path, url=f"{server}/openapi.yaml?key=secret", headers=HEADERS)

    assert len(listing.tools) == 7
    assert listing.agents[0].source == f"{server}/openapi.yaml"
    assert listing.rejected[0].where == f"{server}/openapi.yaml GET /broken"
    assert "secret" not in repr([*listing.agents, *listing.rejected])


@pytest.mark.parametrize(
    ("url", "token", "why"),
    [
        ("{server}/nothing", "t0ken", "401"),
        ("{server}/moved", "t0ken", "has moved to .*/openapi.yaml"),
        ("{server}/big", "t0ken", "sends more than 64,000,000 bytes"),
        ("http://127.0.0.1:1/x", "t0ken", r"Cannot fetch http://127\.0\.0\.1:1/x: ConnectError"),
        ("{server}/", None, "SHOP_TOKEN, which the header Authorization needs"),
        ("{server}/", "t0ken\n", "header Authorization"),
    ],
)
def test_a_document_that_cannot_be_fetched_is_an_error_without_secrets(
    server: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    url: str,
    token: str | None,
    why: str,
) -> None:
    monkeypatch.delenv("SHOP_TOKEN", raising=False)
    if token:
        monkeypatch.setenv("SHOP_TOKEN", token)

    with pytest.raises(SourceError, match=why) as caught:
        listed(tmp_path, url=f"{url.format(server=server)}?key=secret", headers=HEADERS)

    assert not any(secret in str(caught.value) for secret in ("secret", "t0ken", "key="))


JUNK = st.sampled_from(
    [
        None,
        True,
        3,
        1.5,
        "",
        "x",
        [],
        ["x"],
        [[]],
        {},
        {"x": {}},
        {"$ref": "#/paths"},
        {"$ref": "#/no"},
    ]
)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(place=st.sampled_from([path for path, _ in places(TREE)]), junk=JUNK)
def test_no_damage_at_any_place_is_more_than_a_source_error_or_a_rejected_row(
    tmp_path: Path, place: tuple[Any, ...], junk: Any
) -> None:
    damaged = json.loads(json.dumps(TREE))
    target = damaged
    for key in place[:-1]:
        target = target[key]
    target[place[-1]] = junk

    try:
        listing = listed_document(tmp_path, damaged)
    except SourceError:
        return
    for tool in listing.tools:
        assert not any(
            ref.startswith("#/components")
            for ref in references([tool.input_schema, tool.output_schema])
        )
