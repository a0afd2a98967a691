"""Make the board and the vectors by which a reader in any language is tested: `python -m
tests.contract.make_vectors`.

    board/tables   a published board of 24 tools, three catalogs, two indexes and several releases
    vectors.json   channels and the versions they lead to; requests with the expected tools and
                   agents; what tools depend on

The expected hits are computed by `read_parquet`, from the formulas of
docs/reference/table-contract.md alone, not by `pegboard`. The vectors are of the hashing encoder
with 16 dimensions, so that there are many ties; requests are given as vectors and words, so that no
reader needs it. The files are in the repository; make them again when the contract has a new
version.
"""

import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from pegboard.encoders import load_encoder
from pegboard.ranker.actions import request_actions
from pegboard.search.glossary import spelled_out
from pegboard.store.contract import CONTRACT
from pegboard.store.releases import Channel, Release, ReleaseStore
from pegboard.text.words import identifier_words, query_words, tokenize
from tests import conftest
from tests.conftest import Workshop, tool
from tests.contract import read_parquet

HERE = Path(__file__).parent
ENCODER = load_encoder("hashing/16")
CATALOGS = f'{conftest.CATALOGS}dependencies = "needs"\n'
INDEXES = f'{conftest.INDEXES}language = "none"\n\n[graph]\ninfer = false\n'
ISSUE = tool(
    "create_issue", "Opens an issue in a repository.", title="its headline", body="what is wrong"
)
MERGE = tool("merge_branch", "Merges a branch into another.", source="from", target="into")
LUNCH = "Orders lunch for the café, crème brûlée and naïve smörgåsbord included."
SERVERS = {
    "git": [
        ISSUE,
        tool("listCommits", "Lists the commits of a branch.", branch="the branch's name"),
        MERGE,
        tool("delete_repository", "Deletes a repository for good."),
    ],
    "mirror": [ISSUE, MERGE],  # the tools of another agent: ties are ordered by id
    "weather": [
        tool("get_forecast", "The weather forecast of a city.", city="the city", days="how many"),
        tool("getTides_v2", "High and low tide at a harbour.", harbour="its name"),
    ],
    "o'brien's": [tool("order_lunch", LUNCH)],
    "天気": [
        tool("天気予報", "東京の天気予報を教えます。", 都市="都市の名前"),
        tool("жильё", "Ищет жильё в городе.", город="название города"),
        tool("मौसम", "शहर का मौसम बताता है।"),
    ],
    "empty": [tool("x", "")],
}


def function(name: str, description: str, **types: str) -> dict[str, Any]:
    """A function as OpenAI declares it; `types` are of its arguments."""
    properties = {argument: {"type": kind} for argument, kind in types.items()}
    parameters = {"type": "object", **({"properties": properties} if properties else {})}
    return {"name": name, "description": description, "parameters": parameters}


def record(name: str, description: str, *examples: str, **columns: Any) -> dict[str, Any]:
    """A row of the catalog `desk`."""
    row = {"name": name, "description": description}
    return {**row, **({"examples": list(examples)} if examples else {}), **columns}


FUNCTIONS = [
    function(
        "convert_currency",
        "Converts an amount of money from one currency to another.",
        amount="number",
        to="string",
    ),
    function("list_rates", "Lists the exchange rates of today."),
    function("close_ledger", "Closes the books of a month."),
    function("pay_invoice", "Pays an invoice, an invoice of any currency, and files the invoice."),
    function("find_invoice", "Finds an invoice."),
    function("tax_rates", "Lists the tax rates of a city."),
]
ROOM_NEEDS = [
    {
        "name": "find_room",
        "dependence_type": "PARAMETER_DIRECTLY_DEPENDS_ON",
        "parameter_name": "room's id",
        "reason": "A room is booked by its id.",
    },
    {"name": "print_badge", "dependence_type": "TOOL_INDIRECTLY_DEPENDS_ON"},
    {"name": "nobody"},
]
TAXI_NEEDS = ["天気予報", "convert_currency", "kit/o'brien's/order_lunch"]
RECORDS = [
    record(
        "book_room",
        "Books a meeting room.",
        *("where can ten people meet?", "room"),
        needs=ROOM_NEEDS,
    ),
    record("call_taxi", "Calls a taxi.", "I need a ride to the airport", needs=TAXI_NEEDS),
    record("water_plants", "Waters the plants.", "the ferns look thirsty", "water!"),
    record("find_room", "Finds a free room.", "is a room free?", "a room for lunch"),
    record("print_badge", "Prints a visitor's badge."),
]
REQUESTS = (
    "open an issue in the repository",
    "how much is 30 dollars in another currency?",
    "merge the branch into main",
    "東京の天気",
    "жильё в городе",
    "शहर का मौसम",
    "CAFÉ lunch, crème brûlée",
    "list list LIST rates of the city",
    "invoice",
    "room",
    "getTides_v2",
    "del a repo of the weather mirror",
    "is it not about me?",
    "zzz unknown",
)
FILTERS: tuple[dict[str, list[str]] | None, ...] = (
    None,
    {"agent": ["kit/git", "kit/mirror"]},
    {"catalog": ["finance", "desk"]},
    {"tags": ["office"], "kind": ["agent"]},
    {"agent": ["kit/o'brien's"]},
    {"tags": ["money", "x' OR 1=1 --"]},
    {"kind": []},
)
TOLERANCE = {"vector": 2e-5, "text": 2e-4, "hybrid": 1e-4}


def publish(folder: Path) -> tuple[Workshop, dict[str, Release]]:
    """Publish a board whose channel `live` names an older release than its newest."""
    workshop = Workshop(folder)
    invoice = tool("create_issue", "Writes an invoice, of all things.")
    states = {
        "first": ({"git": SERVERS["git"]}, FUNCTIONS[:2]),
        "second": (SERVERS, FUNCTIONS),
        "third": ({**SERVERS, "git": [invoice]}, FUNCTIONS[::-1]),
    }
    releases: dict[str, Release] = {}
    for name, (servers, functions) in states.items():
        workshop.servers(servers)
        workshop.write("functions.json", functions)
        workshop.write("requests.json", RECORDS)
        configuration = workshop.configure(INDEXES, CATALOGS)
        run = workshop.run(configuration, encoder=ENCODER, allow_removal=True)
        assert run.release is not None, name
        releases[name] = run.release
    store = workshop.store
    future = "f" * 64
    store.add(replace(releases["third"], id=future[:12], digest=future, contract=CONTRACT + 96))
    channels = {"live": "second", "canary": "third", "old": "first"}
    for channel, name in channels.items():
        store.promote(releases[name].id, channel)
    store.promote(future[:12], "future")
    return workshop, {**releases, "future": store.get(future[:12])}


def write_parquet(store: ReleaseStore, release: Release, folder: Path) -> Path:
    """Write a release as docs/how-to/read-a-board.md does; returns its folder."""
    (out := folder / release.id).mkdir(exist_ok=True)
    (out / "release.json").write_text(json.dumps(release.to_dict()), "utf-8")
    for name, pin in release.tables.items():
        pq.write_table(store.read_rows(pin), out / f"{name}.parquet")
    return out


def expected(ranking: read_parquet.Ranking) -> list[dict[str, Any]]:
    """Return a ranking as it stands in the vectors."""
    return [{"id": identity, "score": score} for identity, score in ranking]


def named_agents(export: Path, index: str, words: Sequence[str]) -> list[str]:
    """Return the agents whose name has a word of a request."""
    agents = read_parquet.rows_of(export, f"emb_{index}").get_column("agent").unique()
    names = {agent: agent.partition("/")[2] for agent in agents}
    return sorted(
        agent for agent, name in names.items() if set(tokenize(identifier_words(name))) & set(words)
    )


def requests_of(
    exports: Mapping[str, Path], channels: Mapping[str, Release]
) -> list[dict[str, Any]]:
    """Return every request with every mode, index and filter that makes sense, and its hits."""
    requests: list[dict[str, Any]] = []
    for number, request in enumerate(REQUESTS):
        meant = spelled_out(request, channels["live"].manifest["glossary"])
        vector = ENCODER.encode([meant])[0].tolist()
        for channel, index, where, k in (
            ("live", "full", FILTERS[number % len(FILTERS)], 5),
            ("live", "fine", None, 3 + number % 3),
            ("live", "full", None, 100),
            ("canary" if number % 2 else "old", "full", None, 4),
        ):
            export = exports[channel]
            words = query_words(meant, channels[channel].manifest["indexes"][index]["language"])
            actions = sorted(request_actions(request))
            given = {
                **{"request": request, "words": words, "actions": actions, "vector": vector},
                "named_agents": named_agents(export, index, words),
            }
            for mode in TOLERANCE:
                target = {"channel": channel, "index": index, "mode": mode, "k": k, "where": where}
                ranking = read_parquet.tools(export, {**target, **given})
                requests.append({**target, **given, "expected": expected(ranking)})
    return requests


def agents_of(exports: Mapping[str, Path], channels: Mapping[str, Release]) -> list[dict[str, Any]]:
    """Return requests, and the agents to retrieve by their tools and their own descriptions."""
    requests: list[dict[str, Any]] = []
    for number, request in enumerate(REQUESTS):
        channel = ("live", "canary")[number % 2]
        index = ("full", "fine")[number % 3 == 0]
        where = FILTERS[number % len(FILTERS)]
        k = 1 + number % 5
        meant = spelled_out(request, channels["live"].manifest["glossary"])
        vector = ENCODER.encode([meant])[0].tolist()
        target = {"channel": channel, "index": index, "k": k, "where": where}
        case = {**target, "request": request, "vector": vector}
        requests.append({**case, "expected": expected(read_parquet.agents(exports[channel], case))})
    return requests


def dependencies_of(exports: Mapping[str, Path]) -> list[dict[str, Any]]:
    """Return tools, and the tools that they depend on directly."""
    cases = [
        {"channel": channel, "tool": source}
        for channel in ("live", "old")
        for source in ("desk/desk/book_room", "desk/desk/call_taxi", "kit/git/create_issue")
    ]
    return [
        {**case, "expected": read_parquet.dependencies(exports[case["channel"]], case)}
        for case in cases
    ]


def remove_unpinned(tables: Path, releases: Sequence[Release]) -> None:
    """Remove the versions that are neither pinned nor the newest: most of a small board."""
    pins = [pin for release in releases for pin in release.tables.values()]
    for folder in tables.glob("*.lance"):
        files = (folder / "_versions").glob("*.manifest")
        versions = {2**64 - 1 - int(file.stem): file for file in files}
        pinned = {pin.version for pin in pins if f"{pin.table}.lance" == folder.name}
        for version in versions.keys() - pinned - {max(versions)}:
            versions[version].unlink()


def describe(channel: Channel, release: Release) -> dict[str, Any]:
    """Return where a channel leads to."""
    pins = {
        table: {"table": pin.table, "version": pin.version, "rows": pin.rows}
        for table, pin in release.tables.items()
    }
    readable = release.contract <= CONTRACT
    names = {"release": channel.release, "generation": channel.generation}
    return {**names, "readable": readable, "tables": pins}


def main() -> None:
    """Write both, anew."""
    with tempfile.TemporaryDirectory() as folder:
        workshop, releases = publish(Path(folder))
        channels = sorted(workshop.store.channels(), key=lambda channel: channel.name)
        by_channel = {channel.name: workshop.store.get(channel.release) for channel in channels}
        newest = workshop.store.database.open_table("tools").version
        assert newest > by_channel["live"].tables["tools"].version, "live has to be older"
        vectors = {
            "contract": CONTRACT,
            "tolerance": TOLERANCE,
            "channels": {
                channel.name: describe(channel, by_channel[channel.name]) for channel in channels
            },
        }
        exports = {
            name: write_parquet(workshop.store, release, Path(folder))
            for name, release in by_channel.items()
            if release.contract <= CONTRACT
        }
        cases = {
            "agents": agents_of(exports, by_channel),
            "dependencies": dependencies_of(exports),
            "requests": requests_of(exports, by_channel),
        }
        shutil.rmtree(HERE / "board", ignore_errors=True)
        ignored = shutil.ignore_patterns("_transactions", "_refs")
        shutil.copytree(Path(workshop.uri) / "tables", HERE / "board" / "tables", ignore=ignored)
        remove_unpinned(HERE / "board" / "tables", list(by_channel.values()))
    text = json.dumps(vectors, ensure_ascii=False, indent=1)[:-2]
    for name, several in cases.items():
        lines = ",\n  ".join(json.dumps(case, ensure_ascii=False) for case in several)
        text += f',\n "{name}": [\n  {lines}\n ]'
    (HERE / "vectors.json").write_text(f"{text}\n}}\n", "utf-8")
    counts = ", ".join(f"{len(several)} {name}" for name, several in cases.items())
    print(f"{len(releases)} releases, {counts}")


if __name__ == "__main__":
    main()
