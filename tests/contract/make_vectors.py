"""Make the board and the vectors by which a reader in any language is tried: `python -m
tests.contract.make_vectors`.

    board/tables      a published board of 24 tools, three catalogs and two indexes, with several
    releases
    vectors.json      channels and the versions they lead to; requests, and the tools and agents
    that have to be found; what tools
                      depend on

What has to be found is worked out here, in plain Python from the formulas of
docs/reference/table-contract.md, and not by asking `pegboard`. The vectors are of the hashing
encoder with 16 dimensions, so that there are many ties; requests are given as vectors and words,
so that no reader
needs it. The files are in the repository; make them again when the contract has a new version."""

import json
import math
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pegboard.encoders import load_encoder
from pegboard.search.text import tokenize
from pegboard.store.contract import CONTRACT
from pegboard.store.database import open_table
from pegboard.store.releases import Release
from tests.conftest import Workshop, tool

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

[graph]
infer = false
"""
SERVERS = {
    "git": [
        tool(
            "create_issue",
            "Opens an issue in a repository.",
            title="its headline",
            body="what is wrong",
        ),
        tool("listCommits", "Lists the commits of a branch.", branch="the branch's name"),
        tool("merge_branch", "Merges a branch into another.", source="from", target="into"),
        tool("delete_repository", "Deletes a repository for good."),
    ],
    "mirror": [  # word for word the tools of another agent: ties are ordered by id
        tool(
            "create_issue",
            "Opens an issue in a repository.",
            title="its headline",
            body="what is wrong",
        ),
        tool("merge_branch", "Merges a branch into another.", source="from", target="into"),
    ],
    "weather": [
        tool("get_forecast", "The weather forecast of a city.", city="the city", days="how many"),
        tool("getTides_v2", "High and low tide at a harbour.", harbour="its name"),
    ],
    "o'brien's": [
        tool(
            "order_lunch", "Orders lunch for the café, crème brûlée and naïve smörgåsbord included."
        )
    ],
    "天気": [
        tool("天気予報", "東京の天気予報を教えます。", 都市="都市の名前"),
        tool("жильё", "Ищет жильё в городе.", город="название города"),
        tool("मौसम", "शहर का मौसम बताता है।"),
    ],
    "empty": [tool("x", "")],
}
FUNCTIONS = [
    {
        "name": "convert_currency",
        "description": "Converts an amount of money from one currency to another.",
        "parameters": {
            "type": "object",
            "properties": {"amount": {"type": "number"}, "to": {"type": "string"}},
        },
    },
    *(
        {"name": name, "description": text, "parameters": {"type": "object"}}
        for name, text in (
            ("list_rates", "Lists the exchange rates of today."),
            ("close_ledger", "Closes the books of a month."),
            ("pay_invoice", "Pays an invoice, an invoice of any currency, and files the invoice."),
            ("find_invoice", "Finds an invoice."),
            ("tax_rates", "Lists the tax rates of a city."),
        )
    ),
]
REQUESTS = [
    {
        "name": "book_room",
        "description": "Books a meeting room.",
        "examples": ["where can ten people meet?", "room"],
        "needs": [
            {
                "name": "find_room",
                "dependence_type": "PARAMETER_DIRECTLY_DEPENDS_ON",
                "parameter_name": "room's id",
                "reason": "A room is booked by its id.",
            },
            {"name": "print_badge", "dependence_type": "TOOL_INDIRECTLY_DEPENDS_ON"},
            {"name": "nobody"},
        ],
    },
    {
        "name": "call_taxi",
        "description": "Calls a taxi.",
        "examples": ["I need a ride to the airport"],
        "needs": ["天気予報", "convert_currency", "kit/o'brien's/order_lunch"],
    },
    {
        "name": "water_plants",
        "description": "Waters the plants.",
        "examples": ["the ferns look thirsty", "water!"],
    },
    {
        "name": "find_room",
        "description": "Finds a free room.",
        "examples": ["is a room free?", "a room for lunch"],
    },
    {"name": "print_badge", "description": "Prints a visitor's badge."},
]
ASKED = (
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
DEPTH, VECTOR_SHARE = 100, 0.8
DIGITS = {"vector": 5, "text": 4, "hybrid": 5}
TOLERANCE = {"vector": 2e-5, "text": 2e-4, "hybrid": 5e-5}

Row = Mapping[str, Any]
Ranking = list[tuple[str, float]]


def publish(folder: Path) -> tuple[Workshop, dict[str, Release]]:
    """A board whose channel `live` names an older release than its newest."""
    workshop = Workshop(folder)
    releases: dict[str, Release] = {}
    for name, servers, functions in (
        ("first", {"git": SERVERS["git"]}, FUNCTIONS[:2]),
        ("second", SERVERS, FUNCTIONS),
        (
            "third",
            {**SERVERS, "git": [tool("create_issue", "Writes an invoice, of all things.")]},
            FUNCTIONS[::-1],
        ),
    ):
        workshop.servers(servers)
        workshop.write("functions.json", functions)
        workshop.write("requests.json", REQUESTS)
        configuration = workshop.configure(INDEXES, CATALOGS)
        run = workshop.run(configuration, encoder=ENCODER, allow_empty=True)
        assert run.release is not None, name
        releases[name] = run.release
    store = workshop.store
    future = "f" * 64
    store.add(replace(releases["third"], id=future[:12], digest=future, contract=CONTRACT + 96))
    store.promote(releases["second"].id)
    store.promote(releases["third"].id, "canary")
    store.promote(releases["first"].id, "old")
    store.promote(future[:12], "future")
    return workshop, {**releases, "future": store.get(future[:12])}


def rows_of(workshop: Workshop, release: Release, table: str) -> list[dict[str, Any]]:
    """The rows of a table of a release."""
    pin = release.tables[table]
    return (
        open_table(workshop.store.database, pin.table, workshop.uri, pin.version)
        .to_arrow()
        .to_pylist()
    )


def passes(row: Row, where: Mapping[str, Sequence[str]] | None) -> bool:
    """Whether a row has one of the values of every field."""
    return all(
        set(values) & set(row["tags"]) if name == "tags" else row[name] in values
        for name, values in (where or {}).items()
    )


def best(scored: Sequence[tuple[Row, float]], digits: int) -> Ranking:
    """Tools by their best row, equal scores by id."""
    found: dict[str, float] = {}
    for row, score in scored:
        found[row["tool"]] = max(round(score, digits), found.get(row["tool"], -math.inf))
    return sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))


def by_vector(
    rows: Sequence[Row], vector: Sequence[float], where: Mapping[str, Sequence[str]] | None
) -> Ranking:
    """By cosine."""
    scored = [
        (row, math.fsum(a * b for a, b in zip(row["vector"], vector, strict=True)))
        for row in rows
        if passes(row, where)
    ]
    return best(scored, DIGITS["vector"])


def by_text(
    rows: Sequence[Row], words: Sequence[str], where: Mapping[str, Sequence[str]] | None
) -> Ranking:
    """By BM25 over all rows of the table, those that the filter leaves out included."""
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
        if score > 0 and passes(row, where):
            scored.append((row, score))
    return best(scored, DIGITS["text"])


def by_both(vector: Ranking, text: Ranking, k: int) -> Ranking:
    """By the convex combination of both."""
    depth = max(DEPTH, 4 * k)
    vector, text = vector[:depth], text[:depth]
    top = max((score for _, score in vector), default=0.0) + 1
    most = max((score for _, score in text), default=0.0)
    cosine, bm25 = dict(vector), dict(text)
    last = vector[-1][1] if vector else -1.0
    scores = {
        one: round(
            VECTOR_SHARE * (cosine.get(one, last) + 1) / top
            + (1 - VECTOR_SHARE) * (bm25.get(one, 0.0) / most if most else 0.0),
            DIGITS["hybrid"],
        )
        for one in {**cosine, **bm25}
    }
    return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))


def requests_of(workshop: Workshop, channels: Mapping[str, Release]) -> list[dict[str, Any]]:
    """Every request with every mode, index and filter that makes sense, and what has to be
    found.
    """
    made: list[dict[str, Any]] = []
    for number, request in enumerate(ASKED):
        vector, words = ENCODER.encode([request])[0], tokenize(request)
        for channel, index, where, k in [
            ("live", "full", FILTERS[number % len(FILTERS)], 5),
            ("live", "fine", None, 3 + number % 3),
            ("live", "full", None, 100),
            ("canary" if number % 2 else "old", "full", None, 4),
        ]:
            rows = rows_of(workshop, channels[channel], f"emb_{index}")
            rankings = {
                "vector": by_vector(rows, vector.tolist(), where),
                "text": by_text(rows, words, where),
            }
            rankings["hybrid"] = by_both(rankings["vector"], rankings["text"], k)
            for mode, ranking in rankings.items():
                made.append(
                    {
                        "channel": channel,
                        "index": index,
                        "mode": mode,
                        "k": k,
                        "where": where,
                        "request": request,
                        "words": words,
                        "vector": vector.tolist(),
                        "expected": [{"id": one, "score": score} for one, score in ranking[:k]],
                    }
                )
    return made


def agents_of(workshop: Workshop, channels: Mapping[str, Release]) -> list[dict[str, Any]]:
    """Requests, and the agents that have to be found by their tools and by what they say of
    themselves.
    """
    made: list[dict[str, Any]] = []
    for number, request in enumerate(ASKED):
        channel, index, where, k = (
            ("live", "canary")[number % 2],
            ("full", "fine")[number % 3 == 0],
            FILTERS[number % len(FILTERS)],
            1 + number % 5,
        )
        vector = ENCODER.encode([request])[0].tolist()
        tools, agents = (
            rows_of(workshop, channels[channel], f"{table}_{index}") for table in ("emb", "agents")
        )
        owners = {row["tool"]: row["agent"] for row in tools} | {
            row["agent"]: row["agent"] for row in agents
        }
        own = (
            [row | {"tool": row["agent"]} for row in agents] if "tags" not in (where or {}) else []
        )
        found: dict[str, float] = {}
        for one, score in sorted(
            by_vector(tools, vector, where) + by_vector(own, vector, where),
            key=lambda pair: (-pair[1], pair[0]),
        ):
            found.setdefault(owners[one], score)
        expected = [{"id": one, "score": score} for one, score in list(found.items())[:k]]
        made.append(
            {
                "channel": channel,
                "index": index,
                "k": k,
                "where": where,
                "request": request,
                "vector": vector,
                "expected": expected,
            }
        )
    return made


def dependencies_of(workshop: Workshop, channels: Mapping[str, Release]) -> list[dict[str, Any]]:
    """Tools, and the tools that they need directly."""
    made: list[dict[str, Any]] = []
    for channel in ("live", "old"):
        rows = rows_of(workshop, channels[channel], "edges")
        for tool_id in ("desk/desk/book_room", "desk/desk/call_taxi", "kit/git/create_issue"):
            needed = sorted(
                (row for row in rows if row["source"] == tool_id), key=lambda row: row["place"]
            )
            said = ("target", "type", "parameter", "origin", "confidence")
            made.append(
                {
                    "channel": channel,
                    "tool": tool_id,
                    "expected": [{name: row[name] for name in said} for row in needed],
                }
            )
    return made


def forget(tables: Path, releases: Sequence[Release]) -> None:
    """Remove the versions that are neither pinned nor the newest; their manifests are most of a
    small board.
    """
    for folder in tables.glob("*.lance"):
        versions = {
            2**64 - 1 - int(file.stem): file for file in (folder / "_versions").glob("*.manifest")
        }
        pinned = {
            pin.version
            for one in releases
            for pin in one.tables.values()
            if f"{pin.table}.lance" == folder.name
        }
        for version in versions.keys() - pinned - {max(versions)}:
            versions[version].unlink()


def main() -> None:
    """Write both, anew."""
    with tempfile.TemporaryDirectory() as name:
        workshop, releases = publish(Path(name))
        channels = {channel.name: channel for channel in workshop.store.channels()}
        by_channel = {one: workshop.store.get(channel.release) for one, channel in channels.items()}
        newest = {
            table: workshop.store.database.open_table(table).version
            for table in ("tools", "agents")
        }
        assert newest["tools"] > by_channel["live"].tables["tools"].version, (
            "live has to be an older version"
        )
        vectors = {
            "contract": CONTRACT,
            "tolerance": TOLERANCE,
            "channels": {
                one: {
                    "release": channel.release,
                    "generation": channel.generation,
                    "readable": by_channel[one].contract <= CONTRACT,
                    "tables": {
                        table: {"table": pin.table, "version": pin.version, "rows": pin.rows}
                        for table, pin in by_channel[one].tables.items()
                    },
                }
                for one, channel in sorted(channels.items())
            },
            "agents": agents_of(workshop, by_channel),
            "dependencies": dependencies_of(workshop, by_channel),
            "requests": requests_of(workshop, by_channel),
        }
        shutil.rmtree(HERE / "board", ignore_errors=True)
        shutil.copytree(
            Path(workshop.uri) / "tables",
            HERE / "board" / "tables",
            ignore=shutil.ignore_patterns("_transactions", "_refs"),
        )
        forget(HERE / "board" / "tables", list(by_channel.values()))
    asked = {name: vectors.pop(name) for name in ("agents", "dependencies", "requests")}
    text = json.dumps(vectors, ensure_ascii=False, indent=1)[:-2]
    for name, several in asked.items():
        lines = ",\n  ".join(json.dumps(one, ensure_ascii=False) for one in several)
        text += f',\n "{name}": [\n  {lines}\n ]'
    (HERE / "vectors.json").write_text(f"{text}\n}}\n", "utf-8")
    print(
        f"{len(releases)} releases, "
        + ", ".join(f"{len(several)} {name}" for name, several in asked.items())
    )


if __name__ == "__main__":
    main()
