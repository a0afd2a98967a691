"""Hostile OpenAPI documents: what fails for an operation costs the operation, and nothing grows
without bound.
"""

import json

import pytest

from catalogs.openapi.document import parse_yaml
from catalogs.openapi.references import References
from pegboard.errors import SourceError

FINE = {"responses": {"200": {"description": "ok"}}}


def document(paths, **schemas):
    """A document with these paths besides `/fine`, and schemas."""
    return {
        "openapi": "3.0.3",
        "info": {"title": "T", "version": "1"},
        "paths": {**paths, "/fine": {"get": FINE}},
        "components": {"schemas": schemas},
    }


def get(members):
    return {"get": FINE | members}


def query(schema):
    return get({"parameters": [{"name": "q", "in": "query", "schema": schema}]})


def body(schema):
    content = {"application/json": {"schema": schema}}
    return {"post": FINE | {"requestBody": {"required": True, "content": content}}}


def link(name):
    return {"$ref": f"#/components/schemas/S{name}"}


def many(number, schema):
    return {"type": "object", "properties": {f"p{n}": schema for n in range(number)}}


LARGE = {"type": "string", "description": "x" * 1_000_000}
LARGE_PARAMETER = {"name": "q", "in": "query", "description": "x" * 1_000_000, "schema": {}}
SURROGATE = "\ud800"


@pytest.mark.parametrize(
    ("hostile", "why"),
    [
        (document({"/b/{": query({})}), "brace"),
        (document({"/b/}x": query({})}), "brace"),
        (document({"b": query({})}), "does not begin with /"),
        (document({"/b": query(many(490, link(0)))}, S0=LARGE), "1,000,000 characters"),
        (
            document({"/b": {"get": FINE | {"parameters": [{"$ref": "#/x"}] * 490}}})
            | {"x": LARGE_PARAMETER},
            "repeated",
        ),
        (document({"/b": query(link(SURROGATE))}), "does not exist"),
        (document({"/b": query({"$ref": f"{SURROGATE}.json"})}), "invalid name"),
        (document({f"/b{SURROGATE}": query({})}), "UTF-8"),
        (document({"/b": query(many(1, {"title": SURROGATE}))}), "UTF-8"),
        (document({"/b": query({"$ref": "#/components/schemas/S0/0"})}, S0=[]), "not exist"),
        (document({"/b": query(link("0/" + "9" * 9_999))}, S0=[1]), "it refers to"),
        (document({"/b": query({"maximum": "DIGITS"})}), "a number of 5,000 digits"),
        (document({"/b": query("DEEP")}), "nested too deeply"),
        (document({"/b": get({"operationId": []})}), "operationId: Input should be a valid string"),
        (document({"/b": get({"parameters": {}})}), "parameters"),
        (document({"/b": get({"description": "x" * 10_000_000})}), "4,000,000 characters"),
        (document({"/b": get({"parameters": [link(0)]})}, S0=link(0)), "cycle"),
        (document({"/b": query({"$ref": "other.json"})}), "cannot be read"),
        (document({"/b": query({"$ref": "/etc/passwd"})}), "outside"),
        (document({"/b": query({"$ref": "file://host/x.json"})}), "only references inside"),
        (document({"/b": query({"$dynamicRef": "#x"})}), "dynamicRef"),
        (document({"/b": query({"$ref": 7})}), "expected text"),
        (document({"/b": query({"$ref": "http://[x"})}), "not a valid URI reference"),
    ],
)
def test_a_hostile_operation_is_rejected_and_the_others_are_listed(listed_document, hostile, why):
    text = json.dumps(hostile).replace('"DIGITS"', "9" * 5_000)
    text = text.replace('"DEEP"', '{"not":' * 500 + "{}" + "}" * 500)

    listing = listed_document(text)

    assert [tool.name for tool in listing.tools] == ["get_fine"]
    (row,) = listing.rejected
    assert why in row.why
    assert row.where.startswith("api.json ")


def test_schemas_that_every_level_refers_to_are_read_once(listed_document, monkeypatch):
    followed = []
    follow = References.follow
    monkeypatch.setattr(
        References, "follow", lambda self, *args: (followed.append(args), follow(self, *args))[1]
    )
    levels = {f"S{n}": {"allOf": [link(n + 1)] * 4} for n in range(19)}

    listing = listed_document(document({"/b": body(link(0))}, **levels, S19=many(1, {})))

    (tool,) = (tool for tool in listing.tools if tool.name == "post_b")
    assert list(tool.input_schema["properties"]) == ["p0"]
    assert len(followed) < 100


def test_5_000_levels_of_references_are_looked_up_once_each(listed_document, monkeypatch):
    looked_up = []
    lookup = References.lookup
    monkeypatch.setattr(
        References, "lookup", lambda self, key: (looked_up.append(key), lookup(self, key))[1]
    )
    levels = {f"S{n}": {"properties": {"next": link(n + 1)}} for n in range(5_000)}

    listing = listed_document(document({"/b": query(link(0))}, **levels, S5000={}))

    assert len(listing.tools) == 2
    assert len(set(looked_up)) == 5_001
    assert len(looked_up) < 11_000


@pytest.mark.parametrize("suffix", ["json", "yaml"])
def test_a_repeated_name_rejects_only_what_is_ambiguous(listed, tmp_path, suffix):
    text = json.dumps(
        document(
            {"/b1": {"get": FINE}, "/b2": {"get": FINE}, "/c": {"get": FINE, "put": FINE}}
            | {"/d": {"get": FINE | {"operationId": "d", "summary": "d"}}, "/e": query(link(0))},
            S0={},
            S1={},
        )
    )
    for twice in ('"/b1"', '"/b2"'), ('"get"', '"put"'), ('"operationId"', '"summary"'):
        text = text.replace(twice[1], twice[0])
    text = text.replace('"S1"', '"S0"')
    # `/c` has `get` twice; a brace makes it YAML for the reader if it does not begin the text.
    (tmp_path / f"api.{suffix}").write_text(text if suffix == "json" else f"# YAML\n{text}")

    listing = listed("openapi", path=f"api.{suffix}")

    assert [tool.name for tool in listing.tools] == ["get_fine"]
    assert {row.where.removeprefix(f"api.{suffix} "): row.why for row in listing.rejected} == {
        "/b1": "its path is repeated in the document; remove one",
        "/c": "it has the name 'get' twice in one object; remove one",
        "GET /d": "it has the name 'operationId' twice in one object; remove one",
        "GET /e": "it refers to 'S0', which is repeated; remove one",
    }


@pytest.mark.parametrize(
    "text", ['{"openapi": "3.0.3", "openapi": "3.1.0"}', "paths: {}\npaths: {}"]
)
def test_a_document_with_repeated_top_level_names_fails(listed_document, text):
    with pytest.raises(SourceError, match=r"is ambiguous: .* twice"):
        listed_document(text)


def test_yaml_is_read_as_json_and_not_as_yaml_1_1():
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


@pytest.mark.parametrize(
    "text", ["a: &a [*a]", "a: !!python/object/apply:os.system [ls]", "? [a]\n: b", "--- a\n--- b"]
)
def test_yaml_that_is_not_json_is_an_error(text):
    with pytest.raises(SourceError, match="here"):
        parse_yaml(text, "here")


@pytest.mark.parametrize("bracket", ["[", "{a: ", "- "])
def test_deeply_nested_yaml_fails_before_its_parser_becomes_slow(bracket):
    with pytest.raises(SourceError, match=r"not YAML: .*nesting depth at line"):
        parse_yaml(bracket * 100_000, "here")


LEVELS = "".join(f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10))


@pytest.mark.parametrize(
    "aliases",
    [
        f"a0: &a0 [x,x,x,x,x,x,x,x,x]\n{LEVELS}x-a: &a [*a9]",
        f"x-a: &a {'x' * 200_000}",
        "a0: &a0 []\n"
        + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 300))
        + "x-a: &a [*a299]",
    ],
    ids=["many", "long", "deep"],
)
def test_too_many_yaml_aliases_reject_only_their_operation(listed_document, aliases):
    fine = "/fine: {get: {responses: {'200': {description: ok}}}}"
    bad = f"/b: {{get: {{x-a: [{', '.join(['*a'] * 2_000)}], responses: {{}}}}}}"
    head = "openapi: 3.0.3\ninfo: {title: T, version: '1'}"

    listing = listed_document(f"{head}\n{aliases}\npaths:\n  {fine}\n  {bad}\n")

    assert [tool.name for tool in listing.tools] == ["get_fine"]
    assert [row.where for row in listing.rejected] == ["api.json GET /b"]
