"""OpenAPI documents as tools: arguments, schemas, references, annotations."""

import json
from pathlib import Path

import pytest

from pegboard.errors import SourceError
from tests.catalogs.conftest import places

SPECIMENS = Path(__file__).parent / "specimens"
TREE = json.loads((SPECIMENS / "tree.json").read_text())


@pytest.fixture
def specimen(listed):
    return lambda name: listed("openapi", SPECIMENS, path=name)


def document(**operations):
    """A document with a GET operation for each name."""
    paths = {
        f"/{name}": {
            "get": {"operationId": name, "responses": {"200": {"description": "ok"}}} | members
        }
        for name, members in operations.items()
    }
    return {"openapi": "3.1.0", "info": {"title": "Test", "version": "1"}, "paths": paths}


def by_name(listing):
    return {tool.name: tool for tool in listing.tools}


def references(schema):
    return {item for path, item in places(schema) if path[-1] == "$ref" and isinstance(item, str)}


def query(schema):
    """An operation with one parameter `q` of that schema."""
    return {"parameters": [{"name": "q", "in": "query", "schema": schema}]}


def link(name):
    return {"$ref": f"#/components/schemas/S{name}"}


def object_of(**properties):
    return {"type": "object", "properties": properties}


def test_valid_operations_of_a_yaml_document_are_listed_and_invalid_ones_rejected(specimen):
    listing = specimen("shop.yaml")

    (agent,) = listing.agents
    assert (agent.id, agent.kind, agent.source) == ("kit/kit", "api", "shop.yaml")
    assert agent.description.startswith("Corner Shop\n\n")
    assert len(listing.tools) == 8
    create = listing.tools[0]
    replace = by_name(listing)["replaceOrder"]
    upload = listing.tools[-1]
    assert (create.name, create.description) == ("createOrder", "Place an order")
    assert (replace.name, replace.annotations["path"]) == ("replaceOrder", "/orders/{orderId}")
    assert (upload.name, upload.annotations["contentType"]) == ("upload", "multipart/form-data")
    assert [(row.where, row.why.partition(":")[0]) for row in listing.rejected] == [
        (
            "shop.yaml GET /broken",
            "it refers to #/components/schemas/Nothing, which does not exist",
        ),
        ("shop.yaml POST /broken", "it is not valid OpenAPI"),
        ("shop.yaml GET /far", "it refers to https"),
    ]
    (added,) = listing.notices
    assert (added.where, added.kind) == ("shop.yaml GET /hidden/{id}", "repaired")


def test_parameters_of_path_operation_and_body_are_merged_into_one_schema(specimen):
    tools = by_name(specimen("shop.yaml"))

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
    # Not `number`, which is read-only.
    assert placed["properties"].keys() == {"item", "customer", "secret"}
    assert placed["required"] == ["customer", "item"]
    assert placed["properties"]["item"] == {
        "type": "string",
        "description": "What.",
        "examples": ["tea"],
    }
    assert placed["properties"]["customer"]["properties"]["born"]["type"] == ["string", "null"]
    assert tools["createOrder"].annotations["locations"] == dict.fromkeys(
        ("item", "customer", "secret"), "body"
    )


def test_a_colliding_argument_gets_its_location_as_a_suffix(specimen, listed_document):
    replace = by_name(specimen("shop.yaml"))["replaceOrder"]
    parameters = [
        {"name": "id", "in": place, "schema": {"type": "string"}} for place in ("query", "cookie")
    ]
    (twice,) = listed_document(document(a={"parameters": parameters})).tools

    arguments = {"orderId", "verbose", "orderId_body", "note"}
    assert replace.input_schema["properties"].keys() == arguments
    assert replace.input_schema["required"] == ["orderId", "orderId_body"]
    assert replace.annotations["names"] == {"orderId_body": "orderId"}
    assert twice.annotations["locations"] == {"id": "query", "id_cookie": "cookie"}


def body_of(schema, required=True):
    content = {"application/json": {"schema": schema}}
    return {"requestBody": {"required": required, "content": content}}


def required(*names, **properties):
    return object_of(**properties) | {"required": list(names)}


TEXT = {"type": "string"}
NOTED = TEXT | {"description": "A note."}


@pytest.mark.parametrize(
    ("body", "properties", "names"),
    [
        (body_of(required("a", a=TEXT, b=TEXT)), {"a": TEXT, "b": TEXT}, ["a"]),
        (body_of(required("a", a=TEXT), required=False), {"a": TEXT}, None),
        (
            body_of({"allOf": [required("a", a=TEXT), required("b", b=TEXT)]}),
            {"a": TEXT, "b": TEXT},
            ["a", "b"],
        ),
        (
            body_of({"oneOf": [required("a", "b", a=TEXT, b=TEXT), required("a", a=NOTED, c={})]}),
            {"a": {"anyOf": [TEXT, NOTED], "description": "A note."}, "b": TEXT, "c": {}},
            ["a"],
        ),
        (
            body_of(object_of(a=TEXT, b=TEXT) | {"anyOf": [{"required": ["a"]}, {}]}),
            {"a": TEXT, "b": TEXT},
            None,
        ),
        (body_of({"type": "array", "items": TEXT}), None, ["body"]),
        (body_of({"oneOf": [required("a", a=TEXT), TEXT]}), None, ["body"]),
        (body_of({"type": "object", "additionalProperties": TEXT}), None, ["body"]),
    ],
)
def test_the_properties_of_a_body_are_arguments_if_it_is_an_object_with_any(
    listed_document, body, properties, names
):
    (tool,) = listed_document(document(a=body)).tools

    schema = body["requestBody"]["content"]["application/json"]["schema"]
    assert tool.input_schema["properties"] == (properties or {"body": schema})
    assert tool.input_schema.get("required") == names
    location = "body" if properties else "requestBody"
    assert set(tool.annotations["locations"].values()) == {location}


@pytest.mark.parametrize(
    ("servers", "url"),
    [
        ([{"url": "https://api.example/v1/"}, {"url": "https://other"}], "https://api.example/v1"),
        (
            [{"url": "https://{region}.example", "variables": {"region": {"default": "eu"}}}],
            "https://eu.example",
        ),
        ([{"url": "/v1"}], "/v1"),
        ([{"url": "https://user:pass@api.example/?key=secret"}], "https://api.example"),
        ([], None),
        ([{"url": "http://["}], None),
        ([{"url": "javascript:alert(1)"}], None),
        ([7], None),
    ],
)
def test_the_base_url_comes_from_the_nearest_servers(listed_document, servers, url):
    servers_document = document(near={"servers": [{"url": "https://near.example"}]}, far={})
    tools = by_name(listed_document(servers_document | {"servers": servers}))

    assert tools["far"].annotations.get("baseUrl") == url
    assert tools["near"].annotations["baseUrl"] == "https://near.example"


def test_a_response_that_is_not_an_object_is_wrapped_in_one(specimen):
    tools = by_name(specimen("shop.yaml"))

    output = tools["listOrders"].output_schema
    assert output["x-fastmcp-wrap-result"] is True
    assert "secret" not in json.dumps(output)  # write-only
    assert "number" in json.dumps(output)
    assert tools["upload"].output_schema is None


def test_annotations_have_method_security_and_hints(specimen):
    tools = by_name(specimen("shop.yaml"))

    key = [{"name": "api_key", "type": "apiKey", "in": "header", "parameter": "X-Key"}]
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


def test_cyclic_schemas_are_written_once_under_defs_of_the_tool(specimen):
    tools = by_name(specimen("tree.json"))

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


def test_a_tool_keeps_its_digest_when_keys_are_reordered_or_another_operation_changes(
    listed_document,
):
    def reordered(value):
        if isinstance(value, dict):
            return {key: reordered(value[key]) for key in reversed(value)}
        return [reordered(item) for item in value] if isinstance(value, list) else value

    # Required arguments are a set; parameters are a list, and are not touched.
    original = by_name(listed_document(TREE))
    reversed_keys = by_name(listed_document(reordered(TREE)))
    fewer = by_name(listed_document({**TREE, "paths": {"/houses": TREE["paths"]["/houses"]}}))

    assert {name: tool.digest for name, tool in reversed_keys.items()} == {
        name: tool.digest for name, tool in original.items()
    }
    assert fewer["listHouses"].digest == original["listHouses"].digest


def test_an_excessive_graph_of_schemas_is_cut_with_a_note(listed_document):
    big = document(web=query(link(1)))
    schemas = {
        f"S{n}": object_of(**{f"p{i}": link((n * 7 + i) % 2000) for i in range(8)})
        for n in range(2000)
    }
    big["components"] = {"schemas": schemas}

    (tool,) = listed_document(big).tools

    assert "whose schema is left out" in json.dumps(tool.input_schema)
    assert references(tool.input_schema) == {
        f"#/$defs/{name}" for name in tool.input_schema["$defs"]
    }


def test_a_path_with_two_methods_without_ids_has_two_stable_names(listed_document):
    operation = {"responses": {"200": {"description": "ok"}}}
    api = document()
    api["paths"] = {
        "/": {"get": operation},
        "/a-b/{c.d}/e": {
            "parameters": [{"name": "c.d", "in": "path", "required": True, "schema": {}}],
            "get": operation,
            "patch": operation,
        },
    }

    assert sorted(by_name(listed_document(api))) == [
        "get",
        "get_a_b_by_c_d_e",
        "patch_a_b_by_c_d_e",
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[]", "expected an object"),
        ('{"swagger": "1.2", "paths": {}}', "its version is '1.2', expected `openapi` '3.0.x'"),
        ('{"paths": {}}', "its version is None"),
        ('{"openapi": "4.0.0", "paths": {}}', "its version is '4.0.0'"),
        ('{"openapi": "3.0.0", "info": {"title": "x", "version": "1"}}', "has no `paths`"),
        ('{"openapi": ', "line 1"),
        ("openapi: [unclosed", "line"),
        ('{"a":' * 100_000, "not JSON"),
    ],
)
def test_a_document_that_is_not_openapi_fails_with_the_reason(listed_document, text, why):
    with pytest.raises(SourceError, match=r"api\.json") as caught:
        listed_document(text)
    assert why in str(caught.value)


def test_openapi_3_2_and_its_query_method_are_read(listed_document):
    api = document(a={}) | {"openapi": "3.2.0"}
    api["paths"] = {"/a": {"query": api["paths"]["/a"]["get"]}}

    (tool,) = listed_document(api).tools

    assert tool.annotations["method"] == "QUERY"
    empty = listed_document(document())
    assert (len(empty.agents), empty.tools, empty.rejected) == (1, (), ())


def test_references_to_files_in_the_same_folder_are_followed_transitively(listed, tmp_path):
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
    api_document = document(**{name: query({"$ref": ref}) for name, ref in files.items()})
    (api / "api.json").write_text(json.dumps(api_document))

    listing = listed("openapi", api, path="api.json")

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


def test_a_document_is_one_file_of_limited_size(listed, tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(document(a={})))
    assert listed("openapi", path="*.json", max_bytes=1_000).tools
    with pytest.raises(SourceError, match="more than 100 bytes"):
        listed("openapi", path="a.json", max_bytes=100)
    (tmp_path / "b.json").write_text("{}")
    with pytest.raises(SourceError, match="matches 2 files"):
        listed("openapi", path="*.json")


def test_operations_that_share_an_id_are_named_by_method_and_path(listed_document):
    shared = document(jobs={"operationId": "search"}, flows={"operationId": " search "}, ping={})
    shared["paths"]["/jobs"]["post"] = shared["paths"]["/jobs"]["get"]
    reordered = {**shared, "paths": dict(reversed(shared["paths"].items()))}

    listing = listed_document(shared)

    assert set(by_name(listing)) == {"get_jobs", "post_jobs", "get_flows", "ping"}
    assert listed_document(reordered).tools == listing.tools
    (said,) = listing.notices
    assert said.kind == "renamed"
    assert "several operations have the operationId 'search'" in said.why


@pytest.mark.parametrize(
    "responses",
    [
        {"404": {"$ref": "#/components/responses/Missing"}},
        {"200": {"$ref": "https://errors.example/ok.yaml"}},
        {"200": {"description": 1, "content": []}},
        {"200": 7},
        {"200": {"content": {"application/json": {"schema": link("Missing")}}}},
        {"200": {"content": {"application/json": {"schema": {"$ref": "../out.yaml"}}}}},
        {"200": {"content": {"application/json": []}}},
        [],
    ],
)
def test_a_response_that_cannot_be_read_costs_only_the_output_schema(listed_document, responses):
    listing = listed_document(document(ping={"responses": responses}))

    (tool,) = listing.tools
    assert (tool.name, tool.output_schema, listing.rejected) == ("ping", None, ())


def test_a_broken_error_response_leaves_the_output_schema(listed_document):
    good = {"content": {"application/json": {"schema": object_of(pong={"type": "string"})}}}
    responses = {"200": good, "default": {"$ref": "#/components/responses/Missing"}}

    (tool,) = listed_document(document(ping={"responses": responses})).tools

    assert tool.output_schema == object_of(pong={"type": "string"})


def test_numbers_and_booleans_of_yaml_are_text_where_text_is_meant(listed_document):
    listing = listed_document(
        """
openapi: 3.0.3
info: {title: Codes, version: 1}
paths:
  /a: {get: {operationId: 12, summary: 404, description: true, tags: [2024, v1]}}
  /b: {get: {operationId: b, summary: 2024-01-01, tags: users, description: {$ref: d.md}}}
  /c: {get: {operationId: c, parameters: [
    {name: 7, in: query, required: "true", description: 5, schema: {type: string}},
    {name: q, in: query, required: yes, schema: {type: string}},
    {name: r, in: query, required: "false", schema: {type: string}}]}}
"""
    )

    tools = by_name(listing)
    assert listing.rejected == ()
    assert (tools["12"].description, tools["12"].tags) == ("404\n\ntrue", ("2024", "v1"))
    assert (tools["b"].description, tools["b"].tags) == ("2024-01-01", ("users",))
    assert tools["c"].input_schema["required"] == ["7", "q"]
    assert tools["c"].input_schema["properties"]["7"]["description"] == "5"


def test_a_parameter_that_only_the_path_names_is_added_and_reported(listed_document):
    paths = {"/a/{id}/b/{part}": {"get": {"operationId": "a"}}}

    listing = listed_document(document() | {"paths": paths})

    (tool,) = listing.tools
    assert tool.input_schema == object_of(id={"type": "string"}, part={"type": "string"}) | {
        "required": ["id", "part"]
    }
    assert tool.annotations["locations"] == {"id": "path", "part": "path"}
    (said,) = listing.notices
    assert said.kind == "repaired"
    assert "its path names 'id', 'part', which it does not declare" in said.why


def test_an_empty_list_where_an_object_is_meant_is_an_empty_object(listed_document):
    body = {"content": {"application/json": {"schema": {"type": "object", "properties": []}}}}
    schema = {"type": "array", "items": [], "default": []}
    operations = {
        "a": {"requestBody": body, "responses": []},
        "b": {"requestBody": {"content": {"application/json": {"schema": []}}}},
        "c": {"requestBody": []},
        "d": query(object_of(any=[], required=[])),
        "e": query(schema),
    }

    listing = listed_document(document(**operations) | {"components": [], "info": []})

    tools = by_name(listing)
    assert (listing.rejected, set(tools)) == ((), set("abcde"))
    assert tools["d"].input_schema["properties"]["q"] == object_of(any={}, required={})
    assert tools["e"].input_schema["properties"]["q"] == schema | {"items": {}}


def test_internal_operations_are_left_out_and_counted_unless_wanted(listed, tmp_path):
    marks = {"a": {"x-hidden": True}, "b": {"x-speakeasy-mcp": {"disabled": True}}}
    shop = document(**marks, c={}, d={"x-internal": False})
    shop["paths"]["/c"]["x-internal"] = True
    (tmp_path / "api.json").write_text(json.dumps(shop))

    listing = listed("openapi", path="api.json")

    assert set(by_name(listing)) == {"d"}
    (said,) = listing.notices
    assert (listing.rejected, said.kind) == ((), "skipped")
    assert said.why.startswith("3 operations marked as internal left out")
    assert set(by_name(listed("openapi", path="api.json", internal=True))) == set("abcd")


def test_paths_of_other_scripts_give_names_of_their_own(listed_document):
    operation = {"responses": {}}
    paths = {path: {"get": operation} for path in ("/天气/{城市}", "/地图", "/größe", "/pets/{id}")}

    listing = listed_document({"openapi": "3.1.0", "info": {"title": "T"}, "paths": paths})

    assert [tool.name for tool in listing.tools] == [
        *("get_gr_e", "get_pets_by_id", "get_地图", "get_天气_by_城市"),
    ]
