"""The filter: questions of another tool are dropped and say whose they are, good ones stay, and no
description may hide its tool.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from pegboard.records import Enrichment
from tasks.enrichment.enrichment_sets import read_enrichments, write_enrichments
from tasks.enrichment.neighbours import head_text
from tasks.enrichment.vectors import vectors_of
from tasks.filter import filter_enrichments
from tasks.lake.snapshot_rows import load_snapshot
from tasks.snapshot import take_snapshot

METATOOL = Path(__file__).parents[3] / "shared" / "benchmarks" / "metatool"

TOOLS = {
    "get_forecast": ("The weather forecast of a city.", ["will it rain in Oslo tomorrow?"]),
    "get_tides": ("High and low tide at a harbour.", ["when is high tide in Bremen?"]),
    "convert_currency": (
        "Converts an amount of money from one currency to another.",
        ["what are 20 dollars in euros?"],
    ),
    "book_room": ("Books a meeting room in the office.", []),
    "call_taxi": ("Calls a taxi to an address.", ["I need a ride to the airport"]),
    "create_issue": ("Opens an issue in a source code repository.", []),
    "list_commits": ("Lists the commits of a branch in a repository.", []),
    "translate": ("Translates a text into another language.", ["how do you say thanks in Polish?"]),
    "send_mail": ("Sends an e-mail.", []),
    "play_music": ("Plays a song or an album.", ["put on some jazz"]),
}
GOOD = {
    "get_forecast": (
        "how warm is the weather in Rome by the forecast?",
        "forecast of the rain in the city tonight",
    ),
    "book_room": (
        "reserve a meeting room for ten people at three",
        "is there a free room in the office on Monday?",
    ),
    "call_taxi": ("call a taxi to the central station", "send a taxi to my hotel address"),
    "list_commits": (
        "which commits are on the main branch?",
        "list the history of a release branch",
    ),
}
"""Questions that share words with their tool and with no other."""
PARAPHRASED = {
    "get_forecast": (
        "how warm will it be in Rome on Friday?",
        "do I need an umbrella in Paris tonight?",
    ),
    "book_room": (
        "reserve a room for ten people at three",
        "is there a free meeting room on Monday?",
    ),
    "call_taxi": ("order a cab to the central station", "send a taxi to my hotel"),
    "list_commits": (
        "what was committed to main last week?",
        "show the history of the release branch",
    ),
}
"""Questions that a model of language connects with their tool."""
SNOW = "is there snow in the weather forecast of Oslo?"


class Shop:
    """A catalog of the tools above, or others, and the filter over it."""

    def __init__(self, workshop, encoder):
        self.workshop, self.encoder = workshop, encoder

    def filter(self, written, tools=None, agents=None, enrich="", encoder=None):
        tools = TOOLS if tools is None else tools
        rows = [
            {"name": name, "description": text, "examples": asked}
            for name, (text, asked) in tools.items()
        ]
        self.workshop.write("tools.json", rows)
        catalogs = (
            '[catalogs.shop]\ntype = "records"\npath = "tools.json"\nagent = '
            '"desk"\ncolumns.examples = "examples"'
        )
        configuration = self.workshop.configure(
            f'[enrich]\nmodel = "openai/none"\n{enrich}', catalogs
        )
        self.snapshot = take_snapshot(configuration, "shop").digest
        ids = {f"shop/desk/{name}": one for name, one in written.items()}
        bought = write_enrichments(self.workshop.lake, "generated", ids, agents or {})
        return filter_enrichments(
            configuration, {"shop": self.snapshot}, bought, encoder or self.encoder
        )

    def left(self, filtered):
        tools, _ = read_enrichments(self.workshop.lake, filtered.enrichments.path)
        return {key.removeprefix("shop/desk/"): one for key, one in tools.items()}

    def judged(self, filtered):
        rows = self.workshop.lake.read(filtered.path).to_dicts()
        return [row | {"tool": row["tool"].removeprefix("shop/desk/")} for row in rows]


@pytest.fixture
def shop(workshop, encoder):
    return Shop(workshop, encoder)


def asked(questions):
    return {name: Enrichment(questions=tuple(texts)) for name, texts in questions.items()}


def test_questions_that_find_their_tool_stay_in_their_order(shop):
    filtered = shop.filter(asked(GOOD))

    assert {name: one.questions for name, one in shop.left(filtered).items()} == GOOD
    assert (filtered.questions, filtered.kept, filtered.k, filtered.reports) == (8, 8, 3, ())
    assert all(
        row["kept"] and row["rank"] <= 3 and not row["winner"] for row in shop.judged(filtered)
    )


def test_another_tools_questions_are_dropped_and_say_whose_they_are(shop):
    mixed = {
        **GOOD,
        "book_room": (GOOD["book_room"][0], "call a taxi to the opera", GOOD["book_room"][1]),
        "translate": (SNOW, "call a taxi", "list commits of last week"),
    }

    filtered = shop.filter(asked(mixed))

    assert shop.left(filtered)["book_room"].questions == GOOD["book_room"]
    assert "translate" not in shop.left(filtered)
    dropped = [row for row in shop.judged(filtered) if not row["kept"]]
    assert [(row["tool"], row["number"], row["reason"]) for row in dropped] == [
        ("book_room", 1, "not-found"),
        ("translate", 0, "not-found"),
        ("translate", 1, "not-found"),
        ("translate", 2, "not-found"),
    ]
    winners = ["call_taxi", "get_forecast", "call_taxi", "list_commits"]
    assert [row["winner"] for row in dropped] == [f"shop/desk/{name}" for name in winners]
    assert all(row["rank"] > row["k"] == 3 for row in dropped)
    assert (filtered.questions, filtered.kept) == (12, 8)


def test_a_tool_whose_questions_mostly_fail_is_reported_with_what_they_find(shop):
    wrong = (
        "snow in Oslo: get forecast",
        "a song by an artist",
        "weather of a city",
        "reserve meeting room",
    )

    (report,) = shop.filter(asked({"book_room": wrong, **{"call_taxi": GOOD["call_taxi"]}})).hidden

    assert (report.tool, report.dropped, report.questions, report.collides) == (
        "shop/desk/book_room",
        3,
        4,
        False,
    )
    assert (report.competitor, report.times) == ("shop/desk/get_forecast", 2)
    assert str(report).startswith(
        "shop/desk/book_room: 3 of 4 questions do not find it, and 2 of those find "
        "shop/desk/get_forecast"
    )
    assert "say at its source or in an override what this one is for" in str(report)


def test_with_the_embedded_model_questions_in_other_words_are_kept_and_strays_are_dropped(
    workshop, real_encoder
):
    shop = Shop(workshop, real_encoder)
    strays = ("will there be snow in Oslo?", "order a cab", "commits of last week")

    filtered = shop.filter(asked({**PARAPHRASED, "translate": strays}))

    assert {name: one.questions for name, one in shop.left(filtered).items()} == PARAPHRASED
    winners = [
        row["winner"].rpartition("/")[2]
        for row in shop.judged(filtered)
        if row["tool"] == "translate"
    ]
    assert winners == ["get_forecast", "call_taxi", "list_commits"]


def test_one_failing_question_is_not_worth_a_report(shop):
    filtered = shop.filter(asked({"book_room": (SNOW,)}))

    assert (filtered.kept, filtered.reports) == (0, ())


def test_a_question_cannot_find_its_tool_by_itself(shop):
    """Said five times in a row, or once as the catalog's own request, it is left out with all its
    copies.
    """
    stray = SNOW

    filtered = shop.filter(
        asked(
            {
                "book_room": (stray,) * 5,
                "call_taxi": ("I need a ride to the airport", "call me a taxi"),
            }
        )
    )

    reasons = [(row["tool"], row["reason"]) for row in shop.judged(filtered)]
    assert reasons == [
        ("book_room", "not-found"),
        *[("book_room", "repeated")] * 4,
        ("call_taxi", "repeated"),
        ("call_taxi", ""),
    ]
    assert shop.left(filtered)["call_taxi"].questions == ("call me a taxi",)
    assert filtered.reports == ()


def test_the_catalogs_own_requests_are_never_judged(shop):
    tools = {**TOOLS, "book_room": (TOOLS["book_room"][0], [SNOW])}

    filtered = shop.filter(asked(GOOD), tools)

    assert all(row["question"] != SNOW for row in shop.judged(filtered))


def test_what_is_not_a_question_passes_through_and_what_is_empty_is_gone(shop):
    whole = Enrichment(arguments={"to": "where"}, questions=(SNOW,), topics=("cabs",))
    only_bad = Enrichment(questions=(SNOW,))

    filtered = shop.filter(
        {"call_taxi": whole, "send_mail": only_bad, "gone": whole}, agents={"shop/desk": "A desk."}
    )

    assert shop.left(filtered) == {
        "call_taxi": Enrichment(arguments={"to": "where"}, topics=("cabs",))
    }
    assert (filtered.enrichments.tools, filtered.enrichments.agents) == (1, 1)
    assert filtered.enrichments.path.startswith("enriched/")


@pytest.mark.parametrize(
    "names", [["call_taxi"], ["call_taxi", "translate"], ["call_taxi", "translate", "get_tides"]]
)
def test_in_a_catalog_of_up_to_three_tools_every_question_is_kept(shop, names):
    filtered = shop.filter(
        asked({"call_taxi": (SNOW, "call a taxi")}), {name: TOOLS[name] for name in names}
    )

    assert (filtered.questions, filtered.kept, filtered.k) == (2, 2, 3)


def test_an_empty_catalog_and_nothing_bought_are_no_trouble(shop):
    assert shop.filter({}).questions == 0
    assert shop.filter({}, {}).to_dict()["enrichments"]["tools"] == 0


def test_twins_do_not_drop_each_others_questions(shop):
    tools = {**TOOLS, **{f"taxi_{letter}": ("Calls a taxi to an address.", []) for letter in "ab"}}
    written = {
        f"taxi_{letter}": ("call a taxi to the opera", "send a taxi to my hotel") for letter in "ab"
    }

    filtered = shop.filter(asked(written), tools)

    assert {name: one.questions for name, one in shop.left(filtered).items()} == written


def test_equal_tools_are_tied_not_better(shop):
    """Ten tools say exactly the same; a question of one of them finds them all alike, so its rank
    is the first.
    """
    tools = {
        "taxi": ("", []),
        **{"taxi" + "_" * n: ("", []) for n in range(1, 10)},
        "send_mail": ("Sends an e-mail.", []),
    }

    filtered = shop.filter(asked({"taxi": ("order a taxi",)}), tools)

    assert [row["rank"] for row in shop.judged(filtered)] == [1]


def test_a_collision_is_said_as_such(shop):
    words = (
        "Orders a ride, for people with luggage, between any two of: hotel, airport, station, "
        "office, home."
    )
    double = {f"taxi{'_' * n}": (words, ["order a taxi", "call a cab"]) for n in range(4)}
    tools = {**double, "cab": (words, []), **TOOLS}

    (report,) = shop.filter(asked({"cab": ("order a taxi ride", "call a taxi")}), tools).hidden

    assert report.collides
    assert report.competitor.startswith("shop/desk/taxi")
    assert "does not say what sets it apart" in str(report)


def test_a_description_by_which_requests_find_their_tool_less_well_is_reverted(shop):
    away = Enrichment(
        "Lists commits, issues and branches of a repository.",
        avoid="Not for mail.",
        topics=("cabs",),
    )
    better = Enrichment("Says how warm it will be and whether it will rain in a city on some day.")
    unchecked = Enrichment("Plans holidays in the mountains.", avoid="Not for cars.")
    tools = {**TOOLS, "call_taxi": (TOOLS["call_taxi"][0], ["to an address, please"])}

    filtered = shop.filter(
        {"call_taxi": away, "get_forecast": better, "send_mail": unchecked}, tools
    )

    left = shop.left(filtered)
    assert left == {
        "call_taxi": Enrichment(topics=("cabs",)),
        "get_forecast": better,
        "send_mail": unchecked,
    }
    (report,) = filtered.reverted
    assert (report.tool, report.requests, report.original) == ("shop/desk/call_taxi", 1, 1.0)
    assert report.regenerated < 1
    assert filtered.descriptions == 3
    assert str(report) in filtered.reports


def test_a_description_that_makes_no_difference_stays(shop):
    same = Enrichment("Calls a taxi to an address, soon.")

    filtered = shop.filter({"call_taxi": same})

    assert shop.left(filtered) == {"call_taxi": same}


def test_more_places_keep_more(shop):
    stray = {"book_room": (SNOW,)}

    assert shop.filter(asked(stray)).kept == 0
    assert shop.filter(asked(stray), enrich="keep_within = 1").kept == 1


def test_the_same_writings_are_filtered_once_and_alike(shop, workshop, hashing):
    class Gone:
        name, dimensions, fingerprint = (
            "stub/gone",
            shop.encoder.dimensions,
            shop.encoder.fingerprint,
        )

        def encode(self, texts):
            raise ConnectionError("there was nothing to encode")

    written = asked({**GOOD, "translate": (SNOW, "play the blues")})
    first = shop.filter(written)
    frame = shop.judged(first)
    for kind in ("json", "parquet"):
        Path(workshop.uri, "lake", first.path).with_suffix(f".{kind}").unlink()

    again = shop.filter(written, encoder=Gone())
    found = shop.filter(written, encoder=Gone())

    assert again == first
    assert found == first
    assert shop.judged(again) == frame
    assert json.loads(json.dumps(first.to_dict())) == first.to_dict()
    assert first.to_dict()["questions"] == {"written": 10, "kept": 8, "dropped": 2, "k": 3}
    assert shop.filter(written, encoder=hashing()).path != first.path


def test_no_credential_is_encoded_or_kept_with_the_ranks(shop, workshop):
    secret = "sk-proj-4f9aA81bTq7kLm20Zx81"
    seen = []

    class Listening:
        name, dimensions, fingerprint = "stub/listening", shop.encoder.dimensions, "listening"

        def encode(self, texts):
            seen.extend(texts)
            return shop.encoder.encode(texts)

    tools = {**TOOLS, "call_api": (f"Calls with {secret}.", [f"call it with {secret}"])}
    written = {
        "call_api": Enrichment(
            f"Calls the API with {secret}.", questions=(f"use {secret} to call the API",)
        )
    }

    filtered = shop.filter(written, tools, encoder=Listening())

    assert any("[credential]" in text for text in seen)
    assert secret not in "".join(seen)
    assert secret not in str(shop.judged(filtered))


def pairs(file, limit=None):
    """The (tool, request) pairs of a file of MetaTool, the first so many of each tool."""
    found = {}
    for line in (METATOOL / file).read_text("utf-8").splitlines():
        record = json.loads(line)
        found.setdefault(record["tool"], []).append(record["query"].strip())
    return {name: texts[:limit] for name, texts in sorted(found.items())}


@pytest.mark.slow
@pytest.mark.skipif(
    not METATOOL.is_dir(), reason="the benchmark files are not beside this checkout"
)
def test_on_metatool_the_filter_helps_an_index_of_spoiled_questions(workshop, real_encoder):
    """Of five questions of each tool, 60 % are another tool's; `benchmarks/performance/filter.py`
    has the whole table.
    """
    random, shop = np.random.default_rng(0), Shop(workshop, real_encoder)
    tools = {
        name: (text, [])
        for name, text in json.loads((METATOOL / "plugin_des.json").read_text("utf-8")).items()
    }
    own, requests = pairs("example_queries.jsonl", 5), pairs("single_tool_queries.jsonl", 3)
    strange = [text for texts in own.values() for text in texts]
    spoiled = {
        name: list(
            dict.fromkeys(
                text if random.random() < 0.4 else str(random.choice(strange)) for text in texts
            )
        )
        for name, texts in own.items()
    }

    filtered = shop.filter(asked(spoiled), tools)

    kept = {name: one.questions for name, one in shop.left(filtered).items()}
    listing = load_snapshot(workshop.lake, "shop", shop.snapshot)
    heads = {tool.name: head_text(tool, listing.agents[0]) for tool in listing.tools}
    queries = [(name, text) for name, texts in requests.items() for text in texts]
    texts = [*heads.values(), *strange, *(text for _, text in queries)]
    vectors = dict(zip(texts, vectors_of(workshop.lake, real_encoder, texts), strict=True))

    def recall_at_5(questions):
        sums = np.array(
            [
                sum(vectors[text] for text in (heads[name], *questions.get(name, ())))
                for name in heads
            ]
        )
        scores = (
            np.array([vectors[text] for _, text in queries])
            @ (sums / np.linalg.norm(sums, axis=1)[:, None]).T
        )
        answers = scores[np.arange(len(queries)), [list(heads).index(name) for name, _ in queries]]
        return ((scores > answers[:, None]).sum(axis=1) < 5).mean()

    assert filtered.kept < filtered.questions
    assert recall_at_5(kept) > recall_at_5(spoiled) + 0.01
