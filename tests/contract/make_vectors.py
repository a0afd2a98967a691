"""Make the board and the vectors by which a reader in any language is tested: `python -m
tests.contract.make_vectors`.

    board/tables   a published board of 24 tools, three catalogs, two indexes and several releases
    vectors.json   channels and the versions they lead to; requests with the expected tools and
                   agents; what tools depend on

The expected hits are computed in plain Python from the formulas of
docs/reference/table-contract.md, not by `pegboard`; that of the hybrid search is in `read_parquet`.
The vectors are of the hashing encoder with 16 dimensions, so that there are many ties; requests are
given as vectors and words, so that no reader needs it. The files are in the repository; make them
again when the contract has a new version.
"""

import json
import math
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from pegboard.encoders import load_encoder
from pegboard.ranker.actions import request_actions
from pegboard.search.glossary import spelled_out
from pegboard.search.text import identifier_words, query_words, tokenize
from pegboard.store.contract import CONTRACT
from pegboard.store.database import open_table
from pegboard.store.releases import Channel, Release
from tests.conftest import Workshop, tool
from tests.contract.read_parquet import ranked

HERE = Path(__file__).parent
ENCODER = load_encoder("hashing/16")
CATALOGS = """
[catalogs.kit]
type = "mcp-dump"
path = "servers.json"

[catalogs.finance]
type = "functions"
path = "functions.json"
tags = ["money", "office"]

[catalogs.desk]
type = "records"
path = "requests.json"
agent = "desk"
agent_kind = "agent"
tags = ["office"]

[catalogs.desk.columns]
examples = "examples"
dependencies = "needs"
"""
INDEXES = """
[[indexes]]
name = "full"

[[indexes]]
name = "fine"
shape = "multi"
language = "none"

[graph]
infer = false
"""
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
DEPTH = 100
DIGITS = {"vector": 5, "text": 4, "hybrid": 5}
TOLERANCE = {"vector": 2e-5, "text": 2e-4, "hybrid": 1e-4}

Row = Mapping[str, Any]
Ranking = list[tuple[str, float]]


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
    store, future = workshop.store, "f" * 64
    store.add(replace(releases["third"], id=future[:12], digest=future, contract=CONTRACT + 96))
    channels = {"live": "second", "canary": "third", "old": "first"}
    for channel, name in channels.items():
        store.promote(releases[name].id, channel)
    store.promote(future[:12], "future")
    return workshop, {**releases, "future": store.get(future[:12])}


def rows_of(workshop: Workshop, release: Release, table: str) -> list[Row]:
    """Return the rows of a table of a release."""
    pin = release.tables[table]
    opened = open_table(workshop.store.database, pin.table, workshop.uri, pin.version)
    return opened.to_arrow().to_pylist()


def passes(row: Row, where: Mapping[str, Sequence[str]] | None) -> bool:
    """Return whether a row has one of the values of every field."""
    return all(
        set(values) & set(row["tags"]) if name == "tags" else row[name] in values
        for name, values in (where or {}).items()
    )


def best(scored: Sequence[tuple[Row, float]], digits: int) -> Ranking:
    """Rank tools by their best row, equal scores by id."""
    scores: dict[str, float] = {}
    for row, score in scored:
        scores[row["tool"]] = max(round(score, digits), scores.get(row["tool"], -math.inf))
    return ordered(scores)


def ordered(scores: Mapping[str, float]) -> Ranking:
    """Return the ranking of these scores: equal ones by id."""
    return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))


def by_vector(
    rows: Sequence[Row], vector: Sequence[float], where: Mapping[str, Sequence[str]] | None
) -> Ranking:
    """Rank by cosine."""
    scored = [(row, dot(row["vector"], vector)) for row in rows if passes(row, where)]
    return best(scored, DIGITS["vector"])


def by_text(
    rows: Sequence[Row], words: Sequence[str], where: Mapping[str, Sequence[str]] | None
) -> Ranking:
    """Rank by BM25 over all rows of the table, those that the filter leaves out included."""
    scored = bm25_of(rows, words)
    passing = [(row, score) for row, score in scored if score > 0 and passes(row, where)]
    return best(passing, DIGITS["text"])


def bm25_of(rows: Sequence[Row], words: Sequence[str]) -> list[tuple[Row, float]]:
    """Return BM25 of every row."""
    counts = [Counter(row["tokens"].split()) for row in rows]
    average = sum(count.total() for count in counts) / len(rows)
    scored: list[tuple[Row, float]] = []
    for row, count in zip(rows, counts, strict=True):
        score = 0.0
        for word in dict.fromkeys(words):
            having = sum(word in other for other in counts)
            idf = math.log(1 + (len(rows) - having + 0.5) / (having + 0.5))
            length = 1.2 * (1 - 0.75 + 0.75 * count.total() / average)
            score += idf * count[word] * 2.2 / (count[word] + length)
        scored.append((row, score))
    return scored


def dot(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the cosine of two vectors of length 1."""
    return math.fsum(a * b for a, b in zip(first, second, strict=True))


def expected(ranking: Ranking, k: int) -> list[dict[str, Any]]:
    """Return the first k of a ranking, as they stand in the vectors."""
    return [{"id": identity, "score": score} for identity, score in ranking[:k]]


def named_agents(rows: Sequence[Row], words: Sequence[str]) -> list[str]:
    """Return the agents whose name has a word of a request."""
    names = {row["agent"]: row["agent"].partition("/")[2] for row in rows}
    return sorted(
        agent for agent, name in names.items() if set(tokenize(identifier_words(name))) & set(words)
    )


def requests_of(workshop: Workshop, channels: Mapping[str, Release]) -> list[dict[str, Any]]:
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
            rows = rows_of(workshop, channels[channel], f"emb_{index}")
            language = channels[channel].manifest["indexes"][index]["language"]
            words = query_words(meant, language)
            rankings = {
                "vector": by_vector(rows, vector, where),
                "text": by_text(rows, words, where),
            }
            actions = sorted(request_actions(request))
            given = {
                **{"request": request, "words": words, "actions": actions, "vector": vector},
                "named_agents": named_agents(rows, words),
            }
            ranker = channels[channel].manifest["indexes"][index]["ranker"]
            depth = max(DEPTH, 4 * k)
            found = dict([*rankings["vector"][:depth], *rankings["text"][:depth]])
            rankings["hybrid"] = ranked(list(found), pl.DataFrame(rows), given, ranker)
            for mode, ranking in rankings.items():
                target = {"channel": channel, "index": index, "mode": mode, "k": k, "where": where}
                requests.append({**target, **given, "expected": expected(ranking, k)})
    return requests


def agents_of(workshop: Workshop, channels: Mapping[str, Release]) -> list[dict[str, Any]]:
    """Return requests, and the agents to retrieve by their tools and their own descriptions."""
    requests: list[dict[str, Any]] = []
    for number, request in enumerate(REQUESTS):
        channel, index = ("live", "canary")[number % 2], ("full", "fine")[number % 3 == 0]
        where, k = FILTERS[number % len(FILTERS)], 1 + number % 5
        meant = spelled_out(request, channels["live"].manifest["glossary"])
        vector = ENCODER.encode([meant])[0].tolist()
        tools, agents = (
            rows_of(workshop, channels[channel], f"{table}_{index}") for table in ("emb", "agents")
        )
        owners = {row["tool"]: row["agent"] for row in tools}
        own = [{**row, "tool": row["agent"]} for row in agents if "tags" not in (where or {})]
        scores: dict[str, float] = {}
        for entity, score in ordered(dict(by_vector([*tools, *own], vector, where))):
            scores.setdefault(owners.get(entity, entity), score)
        target = {"channel": channel, "index": index, "k": k, "where": where}
        ranking = expected(list(scores.items()), k)
        requests.append({**target, "request": request, "vector": vector, "expected": ranking})
    return requests


def dependencies_of(workshop: Workshop, channels: Mapping[str, Release]) -> list[dict[str, Any]]:
    """Return tools, and the tools that they depend on directly."""
    names = ("target", "type", "parameter", "origin", "confidence")
    dependencies: list[dict[str, Any]] = []
    for channel in ("live", "old"):
        rows = rows_of(workshop, channels[channel], "edges")
        for source in ("desk/desk/book_room", "desk/desk/call_taxi", "kit/git/create_issue"):
            edges = [row for row in rows if row["source"] == source]
            edges.sort(key=lambda row: row["place"])
            targets = [{name: edge[name] for name in names} for edge in edges]
            dependencies.append({"channel": channel, "tool": source, "expected": targets})
    return dependencies


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
    with tempfile.TemporaryDirectory() as name:
        workshop, releases = publish(Path(name))
        channels = sorted(workshop.store.channels(), key=lambda channel: channel.name)
        by_channel = {one.name: workshop.store.get(one.release) for one in channels}
        newest = workshop.store.database.open_table("tools").version
        assert newest > by_channel["live"].tables["tools"].version, "live has to be older"
        vectors = {
            "contract": CONTRACT,
            "tolerance": TOLERANCE,
            "channels": {one.name: describe(one, by_channel[one.name]) for one in channels},
        }
        cases = {
            "agents": agents_of(workshop, by_channel),
            "dependencies": dependencies_of(workshop, by_channel),
            "requests": requests_of(workshop, by_channel),
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
