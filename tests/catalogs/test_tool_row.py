"""A tool as a line of JSON, consistent with `pegboard.records`."""

import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catalogs.shared.tool_row import row_frame, tool_of, tool_row
from pegboard.canonical import canonical_json, digest
from pegboard.records import Dependency, Tool

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(TEXTS | st.just("required"), inner, max_size=3)
    ),
    max_leaves=8,
)
OBJECTS = st.dictionaries(TEXTS | st.just("required"), VALUES, max_size=4)
TOOLS = st.builds(
    Tool,
    id=TEXTS,
    catalog=TEXTS,
    agent=TEXTS,
    name=TEXTS,
    description=TEXTS,
    input_schema=OBJECTS,
    output_schema=st.none() | OBJECTS,
    annotations=OBJECTS,
    examples=st.lists(TEXTS, max_size=3).map(tuple),
    dependencies=st.lists(
        st.builds(
            Dependency,
            tool=TEXTS,
            type=st.just("tool-directly-depends-on"),
            parameter=st.none() | TEXTS,
            reason=TEXTS,
        ),
        max_size=2,
    ).map(tuple),
    tags=st.lists(TEXTS, max_size=3).map(tuple),
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(TOOLS)
def test_the_digest_of_a_row_equals_the_digest_of_the_tool(tool):
    row = tool_row(tool, "mcp-server")

    assert row["digest"] == digest(tool.digest, "mcp-server")
    assert row["input_schema"] == canonical_json(tool.input_schema)
    assert row["output_schema"] == (
        None if tool.output_schema is None else canonical_json(tool.output_schema)
    )
    assert row["annotations"] == canonical_json(tool.annotations)
    (read,) = row_frame([json.dumps(row).encode()]).to_dicts()
    assert digest(tool_of(read).digest, "mcp-server") == read["digest"] == row["digest"]
