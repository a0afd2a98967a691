"""The filter: questions of another tool are dropped and say whose they are, good ones stay, and no
description may hide its tool.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from pegboard.encoders.hashing import HashingEncoder
from pegboard.errors import CompletionError
from pegboard.records import Enrichment
from tasks.enrichment.enrichment_sets import read_enrichments, write_enrichments
from tasks.filter import filter_enrichments
from tasks.snapshot import take_snapshot

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
LOCAL = "local/minilm-tools-v1"
CATALOG = '[catalogs.shop]\ntype = "records"\npath = "tools.json"\nagent = "desk"\n'


class Shop:
    """A catalog of the tools above, or others, and the filter over it."""

    def __init__(self, workshop, encoder="hashing/256"):
        self.workshop, self.encoder = workshop, encoder

    def filter(self, enrichments, tools=TOOLS, agents=None, enrich="", encoder=None):
        rows = [
            {"name": name, "description": text, "examples": examples}
            for name, (text, examples) in tools.items()
        ]
        self.workshop.write("tools.json", rows)
        configuration = self.workshop.configure(
            f'[enrich]\nmodel = "openai/none"\n{enrich}\n'
            f'[[indexes]]\nencoder = "{encoder or self.encoder}"\n',
            f'{CATALOG}columns.examples = "examples"',
        )
        self.snapshot = take_snapshot(configuration, "shop", allow_removal=True).digest
        ids = {
            f"shop/desk/{name}": one if isinstance(one, Enrichment) else Enrichment(questions=one)
            for name, one in enrichments.items()
        }
        generated = write_enrichments(self.workshop.lake, "generated", ids, agents or {})
        return filter_enrichments(configuration, {"shop": self.snapshot}, generated)

    def left(self, filtered):
        tools, _ = read_enrichments(self.workshop.lake, filtered.enrichments.path)
        return {key.removeprefix("shop/desk/"): one for key, one in tools.items()}

    def questions(self, filtered):
        return {name: one.questions for name, one in self.left(filtered).items()}

    def judged(self, filtered):
        """The judged questions: tool, number, reason and winner, by name, and rank."""
        return [
            {**row, **{key: row[key].removeprefix("shop/desk/") for key in ("tool", "winner")}}
            for row in self.workshop.lake.read(filtered.path).to_dicts()
        ]


@pytest.fixture
def shop(workshop):
    return Shop(workshop)


def test_questions_that_find_their_tool_stay_and_another_tools_are_dropped_with_the_winner(shop):
    mixed = {
        **GOOD,
        "book_room": (GOOD["book_room"][0], "call a taxi to the opera", GOOD["book_room"][1]),
        "translate": (SNOW, "call a taxi", "list commits of last week"),
    }

    filtered = shop.filter(mixed)

    assert shop.questions(filtered) == GOOD
    assert (filtered.questions, filtered.kept, filtered.k) == (12, 8, 3)
    judged = shop.judged(filtered)
    assert [
        (row["tool"], row["number"], row["reason"], row["winner"])
        for row in judged
        if not row["kept"]
    ] == [
        ("book_room", 1, "not-found", "call_taxi"),
        ("translate", 0, "not-found", "get_forecast"),
        ("translate", 1, "not-found", "call_taxi"),
        ("translate", 2, "not-found", "list_commits"),
    ]
    assert all((row["rank"] <= row["k"] == 3) == row["kept"] for row in judged)
    assert not any(row["winner"] for row in judged if row["kept"])


def test_with_the_embedded_model_questions_in_other_words_are_kept_and_strays_are_dropped(workshop):
    shop = Shop(workshop, LOCAL)
    strays = ("will there be snow in Oslo?", "order a cab", "commits of last week")

    filtered = shop.filter({**PARAPHRASED, "translate": strays})

    assert shop.questions(filtered) == PARAPHRASED
    winners = [row["winner"] for row in shop.judged(filtered) if row["tool"] == "translate"]
    assert winners == ["get_forecast", "call_taxi", "list_commits"]


def test_a_question_cannot_find_its_tool_by_itself(shop):
    """Repeated five times, or once as the catalog's own request, it is dropped with all copies."""
    copies = {"book_room": (SNOW,) * 5}
    copies["call_taxi"] = ("I need a ride to the airport", "call me a taxi")

    filtered = shop.filter(copies)

    assert [(row["tool"], row["reason"]) for row in shop.judged(filtered)] == [
        ("book_room", "not-found"),
        *[("book_room", "repeated")] * 4,
        ("call_taxi", "repeated"),
        ("call_taxi", ""),
    ]
    assert shop.questions(filtered) == {"call_taxi": ("call me a taxi",)}


def test_the_catalogs_own_requests_are_never_judged(shop):
    tools = {**TOOLS, "book_room": (TOOLS["book_room"][0], [SNOW])}

    filtered = shop.filter(GOOD, tools)

    assert all(row["question"] != SNOW for row in shop.judged(filtered))


def test_other_products_pass_and_empty_enrichments_are_left_out(shop):
    whole = Enrichment(arguments={"to": "where"}, questions=(SNOW,), topics=("cabs",))

    filtered = shop.filter(
        {"call_taxi": whole, "send_mail": (SNOW,), "gone": whole}, agents={"shop/desk": "A desk."}
    )

    assert shop.left(filtered) == {"call_taxi": replace(whole, questions=())}
    assert (filtered.enrichments.tools, filtered.enrichments.agents) == (1, 1)
    assert filtered.enrichments.path.startswith("enriched/")


@pytest.mark.parametrize(
    "names",
    [[], ["call_taxi"], ["call_taxi", "translate"], ["call_taxi", "translate", "get_tides"]],
)
def test_in_a_catalog_of_up_to_three_tools_every_question_is_kept(shop, names):
    enrichments = {"call_taxi": (SNOW, "call a taxi")} if names else {}

    filtered = shop.filter(enrichments, {name: TOOLS[name] for name in names})

    assert filtered.questions == filtered.kept == 2 * bool(names)
    assert filtered.k == 3


def test_twins_do_not_drop_each_others_questions_and_equal_tools_are_tied(shop):
    twins = {f"taxi_{letter}": ("Calls a taxi to an address.", []) for letter in "ab"}
    questions = dict.fromkeys(twins, ("call a taxi to the opera", "send a taxi to my hotel"))
    ten = {"taxi" + "_" * n: ("", []) for n in range(10)} | {"send_mail": TOOLS["send_mail"]}

    assert shop.questions(shop.filter(questions, {**TOOLS, **twins})) == questions
    (question,) = shop.judged(shop.filter({"taxi": ("order a taxi",)}, ten))
    assert question["rank"] == 1


def test_a_release_is_not_made_of_questions_most_of_which_do_not_find_their_tool(shop):
    unlike = [tuple(texts[number] for texts in GOOD.values()) for number in (0, 1)]
    again = tuple(f"please {text}" for text in unlike[0])
    questions = {"play_music": unlike[0], "send_mail": unlike[1], "translate": again}

    with pytest.raises(CompletionError, match=r"of 12 were dropped\. Nothing was published"):
        shop.filter(questions)
    with pytest.raises(CompletionError, match="of 12 were dropped"):  # from the lake
        shop.filter(questions)
    filtered = shop.filter(questions, enrich='incomplete = "publish"')

    assert filtered.problem.startswith("Most generated questions do not find their tool")
    assert filtered.kept < 6


def test_a_description_by_which_requests_find_their_tool_less_well_is_reverted(shop):
    away = Enrichment(
        "Lists commits, issues and branches of a repository.",
        avoid="Not for mail.",
        topics=("cabs",),
    )
    better = Enrichment("Says how warm it will be and whether it will rain in a city on some day.")
    unchecked = Enrichment("Plans holidays in the mountains.", avoid="Not for cars.")
    same = Enrichment("High and low tide at a harbour, soon.")
    tools = {**TOOLS, "call_taxi": (TOOLS["call_taxi"][0], ["to an address, please"])}
    others = {"get_forecast": better, "send_mail": unchecked, "get_tides": same}

    filtered = shop.filter({"call_taxi": away, **others}, tools)

    assert shop.left(filtered) == {"call_taxi": Enrichment(topics=("cabs",)), **others}
    (reverted,) = filtered.reverted
    assert (reverted.tool, reverted.requests, reverted.original) == ("shop/desk/call_taxi", 1, 1.0)
    assert reverted.regenerated < 1
    assert filtered.descriptions == 4
    assert str(reverted) in filtered.reports


def test_a_wider_limit_keeps_more_questions(shop):
    one = shop.filter({"book_room": (SNOW,)})

    assert one.kept == 0
    assert shop.filter({"book_room": (SNOW,)}, enrich="keep_within = 1").kept == 1


def test_the_same_enrichments_are_filtered_once(shop, workshop, monkeypatch):
    def unreachable(encoder, texts):
        raise ConnectionError("there was nothing to encode")

    questions = {**GOOD, "translate": (SNOW, "play the blues")}
    first = shop.filter(questions)
    judged = shop.judged(first)
    for kind in ("json", "parquet"):
        Path(workshop.uri, "lake", first.path).with_suffix(f".{kind}").unlink()

    with monkeypatch.context() as patch:
        patch.setattr(HashingEncoder, "encode", unreachable)
        for _ in range(2):  # from the stored vectors, then from the stored result
            assert shop.filter(questions) == first
    assert shop.judged(first) == judged
    assert (first.questions, first.kept, first.k) == (10, 8, 3)
    assert shop.filter(questions, encoder="hashing/16").path != first.path


def test_a_credential_is_neither_encoded_nor_stored_with_the_ranks(shop, monkeypatch):
    secret, texts, encode = "sk-proj-4f9aA81bTq7kLm20Zx81", [], HashingEncoder.encode

    def listening(encoder, batch):
        texts.extend(batch)
        return encode(encoder, batch)

    monkeypatch.setattr(HashingEncoder, "encode", listening)

    tools = {**TOOLS, "call_api": (f"Calls with {secret}.", [f"call it with {secret}"])}
    question = f"use {secret} to call the API"
    enrichment = Enrichment(f"Calls the API with {secret}.", questions=(question,))

    filtered = shop.filter({"call_api": enrichment}, tools)

    assert any("[credential]" in text for text in texts)
    assert secret not in f"{texts} {shop.judged(filtered)}"
