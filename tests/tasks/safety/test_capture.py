"""Stuffed tools and copies of other agents' tools, as the manifest of a release names them."""

from dataclasses import replace
from pathlib import Path

import pytest

from flows.reindex import reindex
from pegboard.records import Tool
from tasks.safety.capture import (
    CLONE,
    NEAR_COPY,
    STUFFING,
    clones,
    near_copies,
    shingle_rows,
)
from tasks.steps.suspicious import warnings_of

CASES = Path(__file__).parents[4] / "shared" / "cases" / "ingest"
NOUNS = [
    "door",
    "window",
    "roof",
    "fence",
    "bicycle",
    "lamp",
    "table",
    "chair",
    "bottle",
    "carpet",
    "mirror",
    "kettle",
]
VERBS = {"paint": "Paints", "clean": "Cleans"}
# Words of other tools' descriptions, none of the stuffed tool's own.
GENERIC = ["what does a customer need?", "at the home of a customer", "a customer", "the customer"]


def honest():
    return [
        {
            "name": f"{verb}_{noun}",
            "description": f"{text} the {noun} of a customer at home.",
            "examples": [f"{verb} my {noun}", f"please {verb} a {noun}", f"the {noun}: {verb} it"],
        }
        for verb, text in VERBS.items()
        for noun in NOUNS
    ]


@pytest.fixture
def suspicious(workshop):
    """A function that publishes an honest catalog, then another one, and returns the suspicious
    tools of the manifest.
    """

    def publish(*rows, trust="full"):
        catalogs = "".join(
            f'[catalogs.{name}]\ntype = "records"\npath = "{name}.json"\nagent = "{name}"\n'
            f'trust = "{trust}"\ncolumns.examples = "examples"\n'
            for name in ("good", "other")
        )
        good, other = catalogs.split("[catalogs.other]")
        workshop.write("good.json", honest())
        workshop.run(workshop.configure(catalogs=good))
        workshop.write("other.json", list(rows))
        run = workshop.run(workshop.configure(catalogs=f"{good}[catalogs.other]{other}"))
        return run.release.manifest.get("suspicious", {})

    return publish


def flags(suspicious_tools):
    return {tool: [row["flag"] for row in rows] for tool, rows in suspicious_tools.items()}


def test_only_a_tool_with_unrelated_examples_is_flagged_as_stuffed(suspicious):
    stuffed = {"name": "assist", "description": "Archives old ledgers.", "examples": GENERIC}

    flagged = suspicious(stuffed)

    assert flags(flagged) == {"other/other/assist": [STUFFING]}
    assert set(flagged["other/other/assist"][0]["examples"]) <= set(GENERIC)


def test_a_catalog_of_limited_trust_cannot_stuff_a_tool_with_examples(suspicious):
    stuffed = {"name": "assist", "description": "Archives old ledgers.", "examples": GENERIC}

    assert suspicious(stuffed, trust="limited") == {}


def test_a_copy_is_flagged_and_names_its_original(suspicious):
    copy = {
        "name": "paint_door_pro",
        "description": "Fast! Paints the door of a customer at home, and reliably.",
    }

    assert suspicious(copy | {"examples": []}) == {
        "other/other/paint_door_pro": [
            {"flag": NEAR_COPY, "of": "good/good/paint_door", "similarity": 1.0}
        ]
    }


@pytest.mark.parametrize(
    ("name", "text", "parameters", "copied"),
    [
        ("lock", "Locks it.", ["door"], True),
        ("lock", "", ["door"], True),
        ("lock", "Locks it!", ["window"], False),
        ("shut", "Locks it.", ["door"], False),
    ],
)
def test_a_short_tool_is_a_copy_if_name_description_and_parameters_are_equal(
    name, text, parameters, copied
):
    def tool(agent, name, text, parameters):
        schema = {"type": "object", "properties": {key: {} for key in parameters}}
        return Tool(f"kit/{agent}/{name}", "kit", f"kit/{agent}", name, text, schema)

    original = tool("good", "lock", text and "Locks it.", ["door"])
    fresh = tool("other", name, text, parameters)

    flagged = dict(near_copies(shingle_rows([original, fresh]), {fresh.id}))

    assert flagged == (
        {fresh.id: {"flag": NEAR_COPY, "of": original.id, "similarity": 1.0}} if copied else {}
    )


def test_equal_texts_of_one_agent_and_boilerplate_are_not_copies():
    def tool(agent, name, text):
        return Tool(f"kit/{agent}/{name}", "kit", f"kit/{agent}", name, text)

    same = "Returns one page of the records that match."
    siblings = [tool("a", name, same) for name in ("one", "two")]
    boilerplate = [tool(f"agent{number}", "list", same) for number in range(30)]

    assert list(near_copies(shingle_rows(siblings), {row.id for row in siblings})) == []
    assert list(near_copies(shingle_rows(boilerplate), {row.id for row in boilerplate})) == []


VARIANTS = ["{}", "Quickly: {}", "{} For you.", "When somebody says: {} (option 4)"]


def wordings(count, variants=VARIANTS):
    """Tools of one agent whose descriptions repeat each request in several near-copies."""
    requests = [
        f"Could you please carry the {noun}{number} of my {noun} to the yard of neighbour {number}"
        for number in range(-(-count // len(NOUNS) // len(variants)))
        for noun in NOUNS
    ]
    texts = [variant.format(request) for request in requests for variant in variants][:count]
    return [
        Tool(f"kit/a/t{number}", "kit", "kit/a", f"t{number}", text)
        for number, text in enumerate(texts)
    ]


@pytest.mark.parametrize("variants", [VARIANTS, [f"{{}} Option {n}." for n in range(30)]])
def test_clones_are_flagged_if_they_are_most_of_the_new_tools_of_a_catalog(variants):
    tools = wordings(120, variants)

    flagged = dict(clones(shingle_rows(tools), {tool.id for tool in tools}))

    assert set(flagged) == {tool.id for tool in tools}
    assert flagged["kit/a/t0"] == {"flag": CLONE, "clones": 120}


@pytest.mark.parametrize(("copies", "others"), [(40, 0), (80, 100)])
def test_families_of_operations_are_not_clones(copies, others):
    text = "Reads record {0} of archive {0} and returns its title, author and year {0}."
    distinct = [
        Tool(f"kit/a/r{number}", "kit", "kit/a", f"read_{number}x", text.format(f"{number}x"))
        for number in range(others)
    ]
    tools = [*wordings(copies), *distinct]

    assert list(clones(shingle_rows(tools), {tool.id for tool in tools})) == []


def test_warnings_name_tool_reason_and_next_step_for_a_bounded_number_of_tools():
    copies = {
        f"other/agent_{number:02}/tool": [
            {"flag": NEAR_COPY, "of": f"good/good/tool_{number}", "similarity": 1.0}
        ]
        for number in range(13)
    }

    first_warning, *_, last_warning = warnings_of(copies)

    assert "other/agent_00/tool is suspicious" in first_warning
    assert "it repeats the description of good/good/tool_0" in first_warning
    assert "trust = " in first_warning
    assert last_warning.startswith("3 more tools")
    assert warnings_of({"a/b/c": [{"flag": "unapproved", "fields": {}}]}) == []
    assert warnings_of({}) == []


def copy_of(original):
    return [{"flag": NEAR_COPY, "of": original, "similarity": 1.0}]


def test_health_checks_of_many_services_are_warned_of_once():
    checks = [f"kit/service_{number}/health" for number in range(8)]
    flagged = {tool: copy_of(checks[0 if tool != checks[0] else 1]) for tool in checks}

    (warning,) = warnings_of(flagged)

    assert warning.startswith(
        "8 tools of 8 agents are suspicious: they repeat each other: kit/service_0/health, "
    )
    assert "kit/service_4/health and 3 others. Look at them" in warning


def test_one_server_with_two_accounts_is_warned_of_once():
    flagged = {
        f"kit/{account}/tool_{number}": copy_of(f"kit/{other}/tool_{number}")
        for number in range(12)
        for account, other in (("home", "work"), ("work", "home"))
    }

    (warning,) = warnings_of(flagged)

    assert warning.startswith("24 tools of 2 agents are suspicious: they repeat each other: ")


def test_copies_of_a_published_tool_name_it_and_keep_their_other_reasons():
    flagged = {f"new/{name}/pay": copy_of("bank/bank/pay") for name in "ab"}
    flagged["new/a/pay"] = [*flagged["new/a/pay"], {"flag": CLONE, "clones": 30}]

    group, other = warnings_of(flagged)

    assert "they repeat the descriptions of bank/bank/pay: new/a/pay, new/b/pay. Look" in group
    assert other.startswith("new/a/pay is suspicious: it is one of 30 near-copies")


def test_reported_services_with_the_same_health_check_are_warned_of_once(workshop):
    if not CASES.is_dir():
        pytest.skip("the inputs from public reports are not here")
    catalogs = "".join(
        f'[catalogs.{name}]\ntype = "openapi"\npath = "{CASES}/health/{name}.yaml"\n'
        for name in "ab"
    )

    outcome = reindex(workshop.configure(catalogs=catalogs))

    (warning,) = warnings_of(outcome["suspicious"])
    assert "2 tools of 2 agents" in warning
    assert "a/a/health_a, b/b/health_b" in warning


def test_comparing_tools_in_chunks_finds_the_same_copies(monkeypatch):
    rows = shingle_rows(
        replace(tool, id=f"kit/{agent}/{tool.name}", agent=f"kit/{agent}")
        for agent in ("good", "other")
        for tool in wordings(8)
    )
    tools = set(rows.get_column("tool"))
    copies = dict(near_copies(rows, tools))

    monkeypatch.setattr("tasks.safety.capture.AT_ONCE", 3)

    assert copies.keys() == tools
    assert dict(near_copies(rows, tools)) == copies
