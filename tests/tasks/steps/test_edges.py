"""The dependencies of a release: its rows, when they are composed, and which are written."""

import shutil

import pytest

from pegboard.cli.main import main
from pegboard.store.diff import Changes, diff_releases
from pegboard.store.verify import verify_release
from pegboard.store.writing import open_table
from tasks.lake.row_sets import read_rows
from tasks.steps.edges import compose_edges

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


BOOK = "desk/desk/book_flight"


class Travel:
    """A catalog whose tools declare what they need."""

    def __init__(self, workshop, encoder):
        self.workshop = workshop
        self.encoder = encoder

    def publish(self, needs, graph=DECLARED, indexes="", text="Does {}."):
        return self.workshop.run(self.configure(needs, graph, indexes, text), encoder=self.encoder)

    def configure(self, needs, graph=DECLARED, indexes="", text="Does {}."):
        rows = [
            {"name": name, "description": text.format(name), "needs": needed}
            for name, needed in needs.items()
        ]
        self.workshop.write("tools.json", rows)
        return self.workshop.configure(indexes + graph, CATALOG)

    def rows(self, release):
        pin = release.tables["edges"]
        store = self.workshop.store
        table = open_table(store.database, pin.table, self.workshop.uri, pin.version)
        return {row["key"]: row for row in table.search().with_row_id(True).to_list()}


@pytest.fixture
def travel(workshop, hashing):
    return Travel(workshop, hashing(16))


@pytest.fixture(scope="module")
def shared_first(tmp_path_factory, workshop_type, hashing):
    workshop = workshop_type(tmp_path_factory.mktemp("travel"))
    return workshop.uri, Travel(workshop, hashing(16)).publish(TRAVEL).release


@pytest.fixture
def first(workshop, shared_first):
    """The release with the tools of TRAVEL, the only one of the workshop's board."""
    uri, release = shared_first
    shutil.copytree(uri, workshop.uri)
    return release


def pairs(rows):
    return {(row["source"].split("/")[-1], row["target"].split("/")[-1]) for row in rows.values()}


def test_declared_dependencies_are_edges_between_tools_of_the_release(travel):
    need = {"name": "find", "parameter_name": "flight's id", "reason": "By id."}
    need["dependence_type"] = "parameter-directly-depends-on"

    run = travel.publish({"book": [need], "find": []})

    (row,) = travel.rows(run.release).values()
    assert row["key"] == "desk/desk/book#desk/desk/find#parameter-directly-depends-on#flight's id"
    assert {
        "source": "desk/desk/book",
        "target": "desk/desk/find",
        "parameter": "flight's id",
        "reason": "By id.",
        "origin": "declared",
        "confidence": 1.0,
        "evidence": "",
    }.items() <= row.items()
    assert run.edges.origins == {"declared": 1}
    assert run.release.manifest["counts"]["edges"] == 1


def test_a_dependency_on_an_unknown_tool_is_reported_and_is_not_an_edge(travel, snapshots):
    needs = {"book": ["nobody", "book"], "find": []}
    run = travel.publish(needs)
    configuration = travel.configure(needs)
    again = compose_edges(configuration, snapshots(configuration))

    assert (run.release.tables["edges"].rows, again) == (0, run.edges)
    assert run.edges.to_dict()["unresolved"] == [
        "desk/desk/book: no tool has the name or id 'nobody'",
        "desk/desk/book: it names the tool itself",
    ]


def test_only_differing_edges_are_written_and_those_of_removed_tools_are_deleted(travel, first):
    before = travel.rows(first)
    changed = {name: needed for name, needed in TRAVEL.items() if name != "cancel"}

    second = travel.publish(changed | {"find_city": ["pay"]}).release
    after = travel.rows(second)

    assert pairs(before) == {
        (name, needed) for name, several in TRAVEL.items() for needed in several
    }
    assert pairs(after) == pairs(before) - {("cancel", "book_flight")} | {("find_city", "pay")}
    assert [row["place"] for _, row in sorted(after.items())] == [0, 1, 0, 0]
    unchanged = before.keys() & after.keys()
    assert len(unchanged) == 3
    assert all(after[key]["_rowid"] == before[key]["_rowid"] for key in unchanged)
    assert travel.rows(first) == before


@pytest.mark.parametrize(
    ("graph", "origins"),
    [
        ("", {"declared": 1, "inferred": 3}),
        ("[graph]\nmin_confidence = 0.7\n", {"declared": 1, "inferred": 2}),
        (DECLARED, {"declared": 1}),
    ],
)
def test_tools_with_declared_dependencies_get_no_inferred_ones_and_weak_edges_are_left_out(
    workshop, snapshots, graph, origins
):
    takes = {
        "search_orders": ["text"],
        "get_stock_ticker": ["company"],
        "cancel_order": ["order_id"],
        "refund": ["order_id", "stock_ticker"],
        "ship": ["order_id"],
    }
    rows = [
        {
            "name": name,
            "needs": ["get_stock_ticker"] * (name == "ship"),
            "parameters": {
                "properties": {one: {"type": "string"} for one in names},
                "required": names,
            },
        }
        for name, names in takes.items()
    ]
    workshop.write("tools.json", rows)
    catalog = CATALOG.replace('"needs"', '"needs", parameters = "parameters"')
    configuration = workshop.configure(graph, catalog)

    assert compose_edges(configuration, snapshots(configuration)).origins == origins


def test_a_board_without_dependencies_has_an_empty_table_of_edges(travel, first, workshop):
    second, third = (travel.publish(needs).release for needs in (dict.fromkeys(TRAVEL, ()), TRAVEL))

    assert [one.tables["edges"].rows for one in (first, second, third)] == [4, 0, 4]
    assert third.tables["edges"].checksum == first.tables["edges"].checksum
    assert verify_release(workshop.store, second).problems == ()


def test_a_diff_names_added_removed_and_changed_dependencies(travel, first, workshop, capsys):
    needs = TRAVEL | {
        "cancel": [{"name": "book_flight", "reason": "By its number."}],
        "book_flight": ["pay", "find_city"],
    }
    new = travel.publish(needs).release
    direct = "(tool-directly-depends-on)"

    assert diff_releases(workshop.store, first, new).edges == {
        BOOK: Changes((f"desk/desk/find_city {direct}",), (f"desk/desk/find_flight {direct}",)),
        "desk/desk/cancel": Changes(changed=(f"{BOOK} {direct}",)),
    }
    assert diff_releases(workshop.store, new, new).edges == {}
    assert main(["releases", "diff", "--board", workshop.uri]) == 0
    assert f"  desk/desk/cancel: ~{BOOK} {direct}" in capsys.readouterr().out.splitlines()


def test_an_override_sets_changes_or_forbids_one_edge(workshop, snapshots):
    search = workshop.tool("search_orders", "Searches orders.", text="words")
    workshop.servers(
        {
            "shop": [
                search,
                workshop.tool("cancel", order_id="which"),
                workshop.tool("ship", order_id="which"),
                workshop.tool("pay", order_id="which"),
            ]
        }
    )

    def edges(overrides=""):
        configuration = workshop.configure(overrides)
        done = compose_edges(configuration, snapshots(configuration))
        rows = read_rows(
            workshop.lake, done.path, ["source", "target", "parameter", "type", "origin"]
        )
        short = {
            (source.rpartition("/")[2], target.rpartition("/")[2], *rest)
            for source, target, *rest in rows.iter_rows()
        }
        return short, done.unresolved

    edge = ("search_orders", "order_id", "parameter-indirectly-depends-on", "inferred")
    inferred = {(name, *edge) for name in ("cancel", "ship", "pay")}
    assert edges() == (inferred, ())

    overridden, problems = edges(
        '[overrides."kit/shop/cancel"]\n'
        'dependencies = [{ tool = "search_orders", forbid = true }]\n'
        '[overrides."kit/shop/ship"]\n'
        'dependencies = [{ tool = "kit/shop/pay" }, { tool = "post_office" }]\n'
        '[overrides."kit/shop/pay"]\n'
        'dependencies = [{ tool = "search_orders", parameter = "order_id", reason = "So." }]\n'
    )

    assert overridden == {
        ("ship", *edge),
        ("ship", "pay", None, "tool-directly-depends-on", "declared"),
        ("pay", "search_orders", "order_id", "parameter-directly-depends-on", "declared"),
    }
    (problem,) = problems
    assert problem.startswith("kit/shop/ship: its override names the tool 'post_office'")
