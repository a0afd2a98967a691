"""The dependencies of a release: which rows there are, when they are made, and which of them are
written.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pegboard.cli.main import main
from pegboard.records import Enrichment
from pegboard.store.database import open_table
from pegboard.store.diff import EdgeChanges, diff_releases
from pegboard.store.verify import verify_release
from tasks.edges import compose_edges
from tasks.enrichment.enrichment_sets import write_enrichments
from tasks.maintain import IndexSizes
from tasks.settings.configuration import load_configuration
from tasks.stage import stage_tables

CATALOG = (
    '[catalogs.desk]\ntype = "records"\npath = "tools.json"\nagent = "desk"\ncolumns = '
    '{dependencies = "needs"}\n'
)
DECLARED = "[graph]\ninfer = false\n"
TRAVEL = {
    "find_flight": ["find_city"],
    "book_flight": ["find_flight", "pay"],
    "pay": [],
    "find_city": [],
    "cancel": ["book_flight"],
}


def tools(workshop, needs):
    workshop.write(
        "tools.json",
        [
            {"name": name, "description": f"Does {name}.", "needs": needed}
            for name, needed in needs.items()
        ],
    )


def published(workshop, hashing, needs, graph=DECLARED, indexes=""):
    tools(workshop, needs)
    return workshop.run(workshop.configure(indexes + graph, CATALOG), encoder=hashing(16))


def rows_of(workshop, release):
    pin = release.tables["edges"]
    rows = (
        open_table(workshop.store.database, pin.table, workshop.uri, pin.version)
        .search()
        .with_row_id(True)
        .to_list()
    )
    return {row["key"]: row for row in rows}


def pairs(rows):
    return {(row["source"].split("/")[-1], row["target"].split("/")[-1]) for row in rows.values()}


def test_what_catalogs_declare_are_edges_between_tools_of_the_release(workshop, hashing):
    needs = {
        "book": [
            {
                "name": "find",
                "parameter": "flight's id",
                "type": "parameter-directly-depends-on",
                "reason": "By id.",
            }
        ],
        "find": [],
    }

    run = published(workshop, hashing, needs)

    (row,) = rows_of(workshop, run.release).values()
    assert row["key"] == "desk/desk/book#desk/desk/find#parameter-directly-depends-on#flight's id"
    assert {
        name: row[name]
        for name in ("source", "target", "parameter", "reason", "origin", "confidence", "evidence")
    } == {
        "source": "desk/desk/book",
        "target": "desk/desk/find",
        "parameter": "flight's id",
        "reason": "By id.",
        "origin": "declared",
        "confidence": 1.0,
        "evidence": "",
    }
    assert (run.edges.origins, run.plan.edges, run.release.manifest["counts"]["edges"]) == (
        {"declared": 1},
        {"declared": 1},
        1,
    )


def test_the_order_of_a_catalog_is_kept_whatever_was_written_first(workshop, hashing):
    needs = {"book": ["pay", "find"], "find": [], "pay": [], "ask": []}
    published(workshop, hashing, needs)
    release = published(workshop, hashing, needs | {"book": ["ask", "pay", "find"]}).release

    rows = rows_of(workshop, release).values()
    assert [row["target"] for row in sorted(rows, key=lambda row: row["place"])] == [
        "desk/desk/ask",
        "desk/desk/pay",
        "desk/desk/find",
    ]


def test_a_dependency_on_no_tool_is_no_edge_and_is_told(workshop, hashing):
    run = published(workshop, hashing, {"book": ["nobody", "book"], "find": []})
    again = compose_edges(
        load_configuration(workshop.folder / "pegboard.toml"),
        {one.catalog: one.digest for one in run.snapshots},
    )

    assert (run.release.tables["edges"].rows, again) == (0, run.edges)
    assert run.edges.to_dict()["unresolved"] == [
        "desk/desk/book: no tool has the name or id 'nobody'",
        "desk/desk/book: it names the tool itself",
    ]


def test_only_edges_that_differ_are_written_and_those_of_removed_tools_go(workshop, hashing):
    first = published(workshop, hashing, TRAVEL).release
    before = rows_of(workshop, first)
    changed = {name: needed for name, needed in TRAVEL.items() if name != "cancel"} | {
        "find_city": ["pay"]
    }

    second = published(workshop, hashing, changed).release
    after = rows_of(workshop, second)

    assert pairs(before) == {
        ("find_flight", "find_city"),
        ("book_flight", "find_flight"),
        ("book_flight", "pay"),
        ("cancel", "book_flight"),
    }
    assert [row["place"] for _, row in sorted(after.items())] == [0, 1, 0, 0]
    assert pairs(after) == pairs(before) - {("cancel", "book_flight")} | {("find_city", "pay")}
    kept = before.keys() & after.keys()
    assert len(kept) == 3
    assert {key: after[key]["_rowid"] for key in kept} == {
        key: before[key]["_rowid"] for key in kept
    }
    assert rows_of(workshop, first) == before


def test_a_tool_that_only_says_something_else_leaves_the_table_as_it_is(workshop, hashing):
    first = published(workshop, hashing, TRAVEL).release
    workshop.write(
        "tools.json",
        [
            {"name": name, "description": f"Truly does {name}.", "needs": needed}
            for name, needed in TRAVEL.items()
        ],
    )

    second = workshop.run(workshop.configure(DECLARED, CATALOG), encoder=hashing(16)).release

    assert second.id != first.id
    assert second.tables["edges"] == first.tables["edges"]


def test_nothing_changed_makes_no_edge_again_and_writes_nothing(workshop, hashing):
    path = published(workshop, hashing, TRAVEL).edges.path
    workshop.lake.write_json(f"{path}-unresolved.json", ["as it was left"])
    files = {
        path: path.stat().st_mtime_ns for path in Path(workshop.uri).rglob("*") if path.is_file()
    }

    again = published(workshop, hashing, TRAVEL)

    assert again.release is None
    assert (again.edges.rows, again.edges.unresolved) == (4, ("as it was left",))
    assert {
        path: path.stat().st_mtime_ns for path in Path(workshop.uri).rglob("*") if path.is_file()
    } == files


def test_other_settings_make_the_edges_again(workshop, hashing):
    needs = TRAVEL | {"cancel": []}
    sets = {
        published(workshop, hashing, needs, graph).edges.path
        for graph in (DECLARED, "", "[graph]\nmin_confidence = 0.9\n")
    }

    assert len(sets) == 3


def test_a_board_whose_tools_need_nothing_any_more_has_an_empty_table(workshop, hashing):
    first = published(workshop, hashing, TRAVEL).release
    second = published(workshop, hashing, dict.fromkeys(TRAVEL, ())).release
    third = published(workshop, hashing, TRAVEL).release

    assert [one.tables["edges"].rows for one in (first, second, third)] == [4, 0, 4]
    assert third.tables["edges"].checksum == first.tables["edges"].checksum
    assert verify_release(workshop.store, second).problems == ()


def test_staging_edges_again_changes_nothing(workshop, hashing):
    run = published(workshop, hashing, TRAVEL)

    assert stage_tables(workshop.uri, run.spec) == run.pins


@pytest.mark.parametrize(
    ("where", "values", "problem"),
    [
        (
            "target = 'desk/desk/pay'",
            {"target": "desk/desk/nobody"},
            "edges: 1 row: between tools that are not both in 'tools'",
        ),
        (
            "target = 'desk/desk/pay'",
            {"target": "desk/desk/nobody"},
            "edges: 1 row: without the key that follows",
        ),
        (
            "target = 'desk/desk/pay'",
            {"reason": "Because."},
            "edges: 1 row: without the digest that follows",
        ),
        (
            "target = 'desk/desk/pay'",
            {"evidence": "Rumours."},
            "edges: 1 row: without the checksum that follows",
        ),
        ("true", {"confidence": 1.5}, "edges: 4 rows: with a confidence that is not from 0 to 1"),
        (
            "true",
            {"confidence": float("nan")},
            "edges: 4 rows: with a confidence that is not from 0 to 1",
        ),
        ("true", {"origin": "guessed"}, "edges: 4 rows: of an origin that there is not"),
        ("true", {"type": "likes"}, "edges: 4 rows: of a type that there is not"),
    ],
)
def test_verify_finds_a_spoilt_edge(workshop, hashing, where, values, problem):
    release = published(workshop, hashing, TRAVEL).release
    assert verify_release(workshop.store, release).problems == ()
    table = workshop.store.database.open_table("edges")
    sql = {name: "CAST('NaN' AS DOUBLE)" for name, value in values.items() if value != value}
    table.update(where=where, values_sql=sql) if sql else table.update(where=where, values=values)
    version = open_table(workshop.store.database, "edges", workshop.uri).version
    spoilt = replace(
        release,
        tables={**release.tables, "edges": replace(release.tables["edges"], version=version)},
    )

    found = verify_release(workshop.store, spoilt).problems

    assert [one for one in found if one.startswith(problem)]


def test_an_edge_that_is_lost_is_found(workshop, hashing):
    release = published(workshop, hashing, TRAVEL).release
    workshop.store.database.open_table("edges").delete("target = 'desk/desk/pay'")
    version = open_table(workshop.store.database, "edges", workshop.uri).version
    fewer = replace(
        release,
        tables={**release.tables, "edges": replace(release.tables["edges"], version=version)},
    )

    assert (
        "edges: it has 3 rows, the release pins 4" in verify_release(workshop.store, fewer).problems
    )


def test_a_difference_names_what_tools_came_to_need(workshop, hashing, capsys):
    old = published(workshop, hashing, TRAVEL).release
    needs = TRAVEL | {
        "cancel": [{"name": "book_flight", "reason": "By its number."}],
        "book_flight": ["pay", "find_city"],
    }
    new = published(workshop, hashing, needs).release
    direct = "(tool-directly-depends-on)"

    found = diff_releases(workshop.store, old, new, neighbours=0)
    assert found.edges == {
        "desk/desk/book_flight": EdgeChanges(
            (f"desk/desk/find_city {direct}",), (f"desk/desk/find_flight {direct}",)
        ),
        "desk/desk/cancel": EdgeChanges(changed=(f"desk/desk/book_flight {direct}",)),
    }
    assert diff_releases(workshop.store, new, new).edges == {}
    assert main(["releases", "diff", "--board", workshop.uri]) == 0
    assert (
        f"  desk/desk/cancel: ~desk/desk/book_flight {direct}"
        in capsys.readouterr().out.splitlines()
    )
    main(["releases", "diff", "--board", workshop.uri, "--tool", "desk/desk/book_flight", "--json"])
    assert json.loads(capsys.readouterr().out)["edges"]["removed"] == [
        f"desk/desk/find_flight {direct}"
    ]


def test_every_index_has_a_table_of_agents_which_goes_with_it(workshop, hashing):
    two = '[[indexes]]\nname = "full"\n[[indexes]]\nname = "fine"\nshape = "multi"\n'
    first = published(workshop, hashing, TRAVEL, indexes=two)
    second = published(workshop, hashing, TRAVEL, indexes='[[indexes]]\nname = "full"\n')

    assert first.release.tables.keys() == {
        "tools",
        "agents",
        "edges",
        "emb_full",
        "agents_full",
        "emb_fine",
        "agents_fine",
    }
    assert second.release.tables.keys() == {"tools", "agents", "edges", "emb_full", "agents_full"}
    assert second.release.tables["agents_full"] == first.release.tables["agents_full"]
    assert second.encoded == 0
    assert first.release.tables["agents_full"].digest == first.release.tables["agents_fine"].digest


def test_a_large_table_of_agents_has_the_indices_of_the_columns_that_it_has(workshop, hashing):
    servers = {f"server {number}": [workshop.tool("one")] for number in range(60)}
    workshop.servers(servers)
    run = workshop.run(workshop.configure(DECLARED), "embed", encoder=hashing(8))

    pins = stage_tables(workshop.uri, run.spec, sizes=IndexSizes(in_memory=50, flat_partition=20))
    again = stage_tables(workshop.uri, run.spec, sizes=IndexSizes(in_memory=50, flat_partition=20))

    assert pins["agents_full"].search["filters"] == ["agent", "catalog", "kind"]
    assert pins["emb_full"].search["filters"] == ["tool", "agent", "catalog", "kind", "tags"]
    assert again == pins


def test_a_tool_that_is_left_out_is_in_no_edge(workshop, hashing):
    from tasks.revise import revise_snapshots

    tools(workshop, TRAVEL)
    skipped = '[overrides."desk/desk/pay"]\nskip = true\n'
    configuration = workshop.configure(DECLARED + skipped, CATALOG)
    run = workshop.run(configuration, "snapshot")
    revised = revise_snapshots(configuration, {one.catalog: one.digest for one in run.snapshots})

    edges = compose_edges(configuration, revised.digests)

    assert edges.rows == 3
    assert edges.unresolved == ("desk/desk/book_flight: no tool has the name or id 'pay'",)


def test_what_a_model_said_of_an_inferred_edge_counts_and_other_writings_make_no_edge_again(
    workshop,
):
    user = {"user_id": {"type": "string", "description": "the id of the user"}}
    workshop.servers(
        {
            "people": [
                {
                    "name": "delete_user",
                    "description": "Deletes a user.",
                    "inputSchema": {"type": "object", "properties": user},
                },
                {
                    "name": "find_user",
                    "description": "Finds a user by name and returns the user id.",
                    "inputSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
                    "outputSchema": {"type": "object", "properties": user},
                },
            ]
        }
    )
    configuration = workshop.configure("[graph]\nmin_confidence = 0.0\n")
    snapshots = {
        one.catalog: one.digest for one in workshop.run(configuration, "snapshot").snapshots
    }

    def made(verdict=None, **written):
        said = {
            "tool": "kit/people/find_user",
            "parameter": "user_id",
            "needed": verdict,
            "direct": True,
            "reason": "Its id.",
        }
        written = Enrichment(dependencies=() if verdict is None else (said,), **written)
        tools = {"kit/people/delete_user": written}
        return compose_edges(
            configuration, snapshots, write_enrichments(workshop.lake, "enriched", tools, {}).path
        )

    plain = compose_edges(configuration, snapshots)
    assert plain.origins == {"inferred": 1}
    assert made(description="Removes someone.") == plain
    assert made(verdict=True).origins == {"judged": 1}
    assert made(verdict=False).origins == {}
