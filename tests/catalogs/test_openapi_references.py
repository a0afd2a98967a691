"""References of OpenAPI documents lead where their authors meant: within a schema, by identity, by
anchor, and to files of the folder that the catalog allows.
"""

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from catalogs.shared.kinds import source_kind
from pegboard.errors import SourceError

CASES = Path(__file__).parents[3] / "shared" / "cases" / "ingest"
AMOUNT = {"type": "number", "minimum": 0}


@pytest.fixture
def reported(listed):
    """A function that lists a document from a public report."""
    if not CASES.is_dir():
        pytest.skip("the inputs from public reports are not here")
    return lambda path, **options: listed("openapi", CASES, path=path, **options)


def document(schema, version="3.1.0", **members):
    """A document with one operation, `put`, whose body has the schema."""
    body = {"content": {"application/json": {"schema": schema}}}
    operation = {"operationId": "put", "requestBody": body, "responses": {}}
    return {
        "openapi": version,
        "info": {"title": "T", "version": "1"},
        "paths": {"/{a~b}/50%": {"put": operation}},
        **members,
    }


def schemas(listing):
    """Return the input schemas of a listing without losses, by tool."""
    assert not listing.rejected
    return {tool.name: tool.input_schema["properties"] for tool in listing.tools}


@pytest.fixture
def properties(listed_document):
    """A function that lists a document, and returns the schemas of the body's properties."""

    def properties_of(document):
        (found,) = schemas(listed_document(document)).values()
        return {name: schema for name, schema in found.items() if name != "a~b"}

    return properties_of


def test_definitions_of_a_body_are_found(reported):
    sample = schemas(reported("oa/o8.json"))["sync_samples"]["samples"]["items"]

    assert sample["properties"]["at"] == {"type": "string", "format": "date-time"}
    assert sample["required"] == ["at", "value"]


def test_identities_and_anchors_are_found(reported):
    found = schemas(reported("oa/o9.yaml"))

    limits = {"upper": AMOUNT}
    assert found["setLimits"] == limits
    assert found["setLimits2"]["limits"]["properties"] == limits
    assert found["anchored"]["money"]["properties"] == {"amount": {"type": "number"}}


@pytest.mark.parametrize("holder", ["$defs", "definitions"])
def test_a_whole_json_schema_in_a_body_keeps_its_definitions(properties, holder):
    schema = {
        holder: {"Amount": AMOUNT, "List": {"items": {"$ref": f"#/{holder}/Amount"}}},
        "properties": {"all": {"$ref": f"#/{holder}/List"}},
    }

    assert properties(document(schema)) == {"all": {"items": AMOUNT}}


def test_a_cyclic_definition_of_a_body_stays_a_definition(listed_document):
    node = {"properties": {"next": {"$ref": "#/$defs/Node"}}}
    schema = {"$defs": {"Node": node}, "properties": {"first": {"$ref": "#/$defs/Node"}}}

    (tool,) = listed_document(document(schema)).tools

    assert tool.input_schema["properties"]["first"] == {"$ref": "#/$defs/Node"}
    assert tool.input_schema["$defs"] == {"Node": node}


URL = "https://x.example/all"


@pytest.mark.parametrize(
    ("reference", "schema"),
    [
        ("#/definitions/A", AMOUNT),
        ("#/$defs/A", AMOUNT),
        (URL, {"$id": URL, **AMOUNT}),
        (f"{URL}#/$defs/a", {"$id": URL, "$defs": {"a": AMOUNT}}),
        (f"{URL}#a", {"$id": URL, "$defs": {"a": {"$anchor": "a", **AMOUNT}}}),
        (URL, {"$id": "https://x.example/", "allOf": [{"$id": "all", **AMOUNT}]}),
        ("#amount", {"$dynamicAnchor": "amount", **AMOUNT}),
        ("#amount", {"$id": "#amount", **AMOUNT}),
        ("https://api.example/v1#/components/schemas/A", AMOUNT),
    ],
)
def test_siblings_of_references_by_identity_are_found(properties, reference, schema):
    described = document(
        {"properties": {"a": {"$ref": reference}}},
        components={"schemas": {"A": schema}},
        **{"$self": "https://api.example/v1"},
    )

    (found,) = properties(described).values()

    assert {key: found[key] for key in AMOUNT} == AMOUNT


def test_a_dynamic_reference_leads_to_its_anchor(properties):
    schema = {
        "properties": {"a": {"$dynamicRef": "#amount"}},
        "$defs": {"a": {"$dynamicAnchor": "amount", **AMOUNT}},
    }

    assert properties(document(schema)) == {"a": AMOUNT}


def test_within_an_identity_its_own_definitions_come_first(properties):
    inner = {"$id": "https://x.example/inner", "$defs": {"a": AMOUNT}, "$ref": "#/$defs/a"}
    schema = {"properties": {"inner": inner, "outer": {"$ref": "#/$defs/a"}}}

    found = properties(document(schema, **{"$defs": {"a": {"type": "string"}}}))

    assert found == {"inner": AMOUNT, "outer": {"type": "string"}}


def test_examples_and_properties_named_like_keywords_are_data(properties):
    example = {"$id": "https://x.example/a", "$ref": "#/$defs/nothing"}
    schema = {
        "properties": {"$id": {"type": "string"}, "a": {"default": example}},
        "$defs": {"unused": {}},
    }

    assert properties(document(schema)) == {"$id": {"type": "string"}, "a": {"default": example}}


def test_a_reference_that_leads_nowhere_still_costs_its_operation(listed_document):
    (row,) = listed_document(document({"$defs": {}, "$ref": "#/$defs/nothing"})).rejected

    assert row.why == "it refers to #/$defs/nothing, which does not exist"


def test_a_document_at_a_url_may_name_its_own_address(listed, servers_of_text):
    text = json.dumps(
        document(
            {"properties": {"a": {"$ref": "ADDRESS#/components/schemas/A"}}},
            components={"schemas": {"A": AMOUNT}},
        )
    )
    url = servers_of_text(text)

    (found,) = schemas(listed("openapi", url=url)).values()

    assert found["a"] == AMOUNT


@pytest.fixture
def servers_of_text():
    """A function that serves a text, in which ADDRESS is its URL, on loopback."""
    import threading
    from http.server import BaseHTTPRequestHandler, HTTPServer

    running = []

    def address_of(text):
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.end_headers()
                self.wfile.write(text.replace("ADDRESS", url).encode())

            def log_message(self, *args):
                pass

        server = HTTPServer(("127.0.0.1", 0), Handler)
        url = f"http://127.0.0.1:{server.server_port}/api.json"
        running.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return url

    yield address_of
    for server in running:
        server.shutdown()
        server.server_close()


def test_a_file_above_the_document_needs_a_root(reported):
    path = "oa/multi/api/api.yaml"

    closed = reported(path)
    opened = reported(path, root="oa/multi")

    assert [tool.name for tool in closed.tools] == ["ping"]
    assert "allow a folder that has both as `root`" in closed.rejected[0].why
    assert schemas(opened)["addUser"] == {"mail": {"type": "string"}}


def test_an_anchor_in_another_file_is_found(listed, tmp_path):
    (tmp_path / "parts.yaml").write_text("A: {$anchor: amount, type: number}")
    described = document({"properties": {"a": {"$ref": "parts.yaml#amount"}}})
    (tmp_path / "api.json").write_text(json.dumps(described))

    (found,) = schemas(listed("openapi", path="api.json")).values()

    assert found["a"] == {"type": "number"}


@pytest.mark.parametrize("target", ["../../secret.json", "../link.json", "../folder/secret.json"])
def test_nothing_outside_the_root_is_read_not_even_through_links(listed, tmp_path, target):
    (tmp_path / "secret.json").write_text('{"type": "string"}')
    api = tmp_path / "kit" / "api"
    api.mkdir(parents=True)
    (tmp_path / "kit" / "link.json").symlink_to(tmp_path / "secret.json")
    (tmp_path / "kit" / "folder").symlink_to(tmp_path)
    described = document({"properties": {"a": {"$ref": target}}})
    (api / "api.json").write_text(json.dumps(described))

    listing = listed("openapi", path="kit/api/api.json", root="kit")

    assert listing.tools == ()
    assert "secret.json outside the folder" in listing.rejected[0].why


def test_a_root_without_the_document_is_an_error(listed, tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "api.json").write_text(json.dumps(document({})))

    for root in ("other", "missing"):
        with pytest.raises(SourceError, match=r"`root` is .*, expected a folder that has"):
            listed("openapi", path="api.json", root=root)


def test_a_document_at_a_url_has_no_root():
    with pytest.raises(ValidationError, match="`root` is for a document at a `path`"):
        source_kind("openapi").options(type="openapi", url="https://x.example/a", root=".")


def test_a_watch_looks_at_the_files_below_the_root(tmp_path):
    (tmp_path / "api").mkdir()
    (tmp_path / "common.yaml").write_text("A: {}")
    described = document({"$ref": "../common.yaml#/A"})
    (tmp_path / "api" / "api.json").write_text(json.dumps(described))
    kind = source_kind("openapi")

    def files(**options):
        (watched,) = kind.watches(
            tmp_path, kind.options(type="openapi", path="api/api.json", **options)
        )
        return {path.name for path in watched.find()}

    assert files() == {"api.json"}
    assert files(root=".") == {"api.json", "common.yaml"}
