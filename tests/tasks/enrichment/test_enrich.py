"""Buying what the ledger lacks: what is bought again and what is not, repairs, rejections,
budgets.
"""

import json
import re
from collections import Counter

import pytest

from pegboard.errors import BudgetExhausted, CompletionError, ConfigurationError
from pegboard.llm import ChatReply
from tasks.enrich import enrich_tools, estimate_tools
from tasks.enrichment.enrichment_sets import read_enrichments
from tasks.enrichment.models import Models
from tasks.enrichment.prompts import BUILTIN_PROMPTS
from tasks.enrichment.request_builder import EnrichOptions

ENRICH = '[enrich]\nmodel = "openai/stub"\nquestions = 2\ntopics = 2\n'
WORDS = [
    "alder",
    "birch",
    "cedar",
    "dahlia",
    "elm",
    "fern",
    "gorse",
    "hazel",
    "iris",
    "juniper",
    "kale",
    "lilac",
    "maple",
    "nettle",
    "oak",
    "pine",
    "quince",
    "rose",
    "sage",
    "thyme",
]


class Writer:
    """A completer that writes something valid about whatever it is shown, unless a script for its
    subject says otherwise.
    """

    def __init__(self, **scripts):
        self.name = "openai/stub"
        self.asked = []
        self.scripts = {subject: list(replies) for subject, replies in scripts.items()}
        self.cost = 0.001

    async def complete(self, request):
        first = next(message.content for message in request.messages if message.role == "user")
        subject = re.search(r'"name":\s*"([^"]+)"', first)[1]
        product = request.schema_name
        self.asked.append((product, subject))
        script = self.scripts.get(subject, [])
        said = script.pop(0) if script else good(product, subject)
        if isinstance(said, Exception):
            raise said
        text = said if isinstance(said, str) else json.dumps(said)
        return ChatReply(
            text=text,
            finish_reason="stop",
            model=self.name,
            prompt_tokens=100,
            completion_tokens=10,
            cost_usd=self.cost,
            seconds=0.01,
        )


def good(product, subject):
    words = subject.replace("_", " ")
    return {
        "description": {
            "does": f"Plants the {words} in a garden bed.",
            "use_when": f"Use it to plant a {words}.",
            "avoid": [],
        },
        "arguments": {"arguments": [{"name": "depth", "note": "How deep the hole is."}]},
        "questions": {
            "questions": [
                f"Where can the {words} go this spring?",
                f"put three {words} plants by the wall",
            ]
        },
        "topics": {"topics": [f"Planting {words}", "Garden beds"]},
        "agents": {
            "description": f"Plants and keeps the garden of {words}, bed by bed, all year round."
        },
    }[product]


def tools_of(workshop, names, said="Plants the {} outside."):
    return [workshop.tool(f"{name}_planter", said.format(name), depth="deep") for name in names]


def garden(workshop, names=WORDS, extra=""):
    workshop.servers({"garden": tools_of(workshop, names)})
    return workshop.configure(ENRICH + extra)


def enriched(workshop, configuration, writer, **enrich_options):
    run = workshop.run(configuration, until="snapshot")
    identities = {one.catalog: one.digest for one in run.snapshots}
    return enrich_tools(
        configuration, identities, EnrichOptions(**enrich_options), Models([writer], [None], len)
    )


def test_every_product_of_every_tool_and_agent_is_bought_once(workshop):
    writer = Writer()
    result = enriched(workshop, garden(workshop), writer)
    assert Counter(product for product, _ in writer.asked) == {
        "description": 20, "arguments": 20, "questions": 20, "topics": 20, "agents": 1
    }  # fmt: skip
    assert set(Counter(writer.asked).values()) == {1}
    tools, agents = read_enrichments(workshop.lake, result.enrichments.path)
    assert (
        tools["kit/garden/oak_planter"].description
        == "Plants the oak planter in a garden bed. Use it to plant a oak planter."
    )
    assert tools["kit/garden/oak_planter"].arguments == {"depth": "How deep the hole is."}
    assert tools["kit/garden/oak_planter"].topics == ("Planting oak planter", "Garden beds")
    assert agents["kit/garden"].startswith("Plants and keeps the garden")


def test_a_second_run_buys_nothing_and_gathers_the_same(workshop):
    first = enriched(workshop, garden(workshop), Writer())
    again = Writer()
    second = enriched(workshop, garden(workshop), again)
    assert again.asked == []
    assert second.enrichments == first.enrichments


def test_a_changed_tool_is_written_about_anew_and_no_other(workshop):
    enriched(workshop, garden(workshop, extra="collision = 1\n"), Writer())
    tools = tools_of(workshop, WORDS)
    tools[0]["description"] = "Answers letters from the tax office."
    workshop.servers({"garden": tools})
    writer = Writer()
    enriched(workshop, workshop.configure(ENRICH + "collision = 1\n"), writer)
    assert sorted(writer.asked) == [
        (product, "alder_planter")
        for product in ("arguments", "description", "questions", "topics")
    ]


def test_a_neighbour_is_described_anew_only_if_the_newcomer_is_nearer_than_the_collision_threshold(
    workshop,
):
    def run(collision, description, **enrich_options):
        configuration = f'collision = {collision}\nproducts = ["description"]\n'
        writer = Writer()
        tools = [*tools_of(workshop, ["oak"]), workshop.tool("oak_digger", description)]
        workshop.servers({"garden": tools})
        enriched(workshop, workshop.configure(ENRICH + configuration), writer, **enrich_options)
        return sorted(subject for _, subject in writer.asked)

    assert run(0.99, "Digs a hole for an oak.") == ["oak_digger", "oak_planter"]
    assert run(0.99, "Digs a hole for an oak at night.") == [
        "oak_digger"
    ]  # too far from the oak to matter
    assert run(0.99, "Digs a hole for an oak at night.", refresh_neighbours=True) == ["oak_planter"]
    assert run(0.3, "Digs a hole for an oak outside.") == [
        "oak_digger",
        "oak_planter",
    ]  # counts as near now
    assert run(0.3, "Digs a hole for an oak outside.") == []


def test_adding_tools_buys_those_and_their_agents_description(workshop):
    enriched(workshop, garden(workshop, WORDS[:-1], "collision = 1\n"), Writer())
    writer = Writer()
    enriched(workshop, garden(workshop, WORDS, "collision = 1\n"), writer)
    assert Counter(subject for _, subject in writer.asked) == {"thyme_planter": 4, "garden": 1}


def test_a_prompt_with_another_version_buys_exactly_what_it_makes(workshop):
    enriched(workshop, garden(workshop), Writer())
    (workshop.folder / "prompts").mkdir()
    text = (
        (BUILTIN_PROMPTS / "topics.md")
        .read_text("utf-8")
        .replace('version = "1"', 'version = "mine-1"')
    )
    (workshop.folder / "prompts/topics.md").write_text(text, "utf-8")
    writer = Writer()
    enriched(workshop, garden(workshop), writer)
    assert Counter(product for product, _ in writer.asked) == {"topics": 20}


def test_another_model_or_context_buys_everything_anew(workshop):
    enriched(workshop, garden(workshop, ["oak"]), Writer())
    writer = Writer()
    enriched(workshop, garden(workshop, ["oak"], 'context = "A garden in Kent."\n'), writer)
    assert len(writer.asked) == 5


def test_tools_with_the_same_content_share_one_reply(workshop):
    workshop.servers({name: tools_of(workshop, ["oak"]) for name in ("north", "south")})
    writer = Writer()
    result = enriched(workshop, workshop.configure(ENRICH + 'products = ["questions"]\n'), writer)
    assert writer.asked == [("questions", "oak_planter")]
    assert sorted(read_enrichments(workshop.lake, result.enrichments.path)[0]) == [
        "kit/north/oak_planter",
        "kit/south/oak_planter",
    ]


def test_a_reply_that_does_not_validate_is_asked_for_once_more_and_then_used(workshop):
    writer = Writer(oak_planter=["no JSON here"])
    result = enriched(workshop, garden(workshop, ["oak"], 'products = ["questions"]\n'), writer)
    assert writer.asked == [("questions", "oak_planter")] * 2
    assert result.actual["accepted"] == {"questions": 1}


def test_a_reply_that_does_not_validate_twice_is_rejected_counted_and_not_bought_again(workshop):
    writer = Writer(oak_planter=["I'm sorry, I can't help with that."] * 2)
    configuration = garden(workshop, ["oak", "elm"], 'products = ["questions"]\n')
    result = enriched(workshop, configuration, writer)
    assert result.actual["rejected"] == {"questions": {"refusal": 1}}
    assert list(read_enrichments(workshop.lake, result.enrichments.path)[0]) == [
        "kit/garden/elm_planter"
    ]
    raws = workshop.lake.read(workshop.lake.files("ledger")[0], ["raw"]).get_column("raw").to_list()
    assert raws.count("I'm sorry, I can't help with that.") == 2

    again = Writer()
    enriched(workshop, configuration, again)
    assert again.asked == []
    enriched(workshop, configuration, again, retry_rejected=True)
    assert again.asked == [("questions", "oak_planter")]


def test_thinking_first_takes_two_calls_and_both_are_kept(workshop):
    writer = Writer(oak_planter=["An oak is a large tree. People ask where to put it."])
    result = enriched(
        workshop, garden(workshop, ["oak"], 'products = ["questions"]\nthink = true\n'), writer
    )
    assert (
        writer.asked == [("reply", "oak_planter"), ("questions", "oak_planter")]
        or len(writer.asked) == 2
    )
    assert result.actual["accepted"] == {"questions": 1}
    assert workshop.lake.read(workshop.lake.files("ledger")[0]).get_column("step").to_list() == [
        "think",
        "reply",
    ]


def test_a_run_that_was_cut_off_before_its_repair_repairs_and_asks_nothing_twice(workshop):
    configuration = garden(workshop, ["oak"], 'products = ["questions"]\n')
    cut = Writer(oak_planter=["no JSON here", CompletionError("gone", kind="request")])
    enriched(workshop, configuration, cut)
    resumed = Writer()
    enriched(workshop, configuration, resumed)
    assert resumed.asked == [("questions", "oak_planter")]
    steps = [
        step
        for path in workshop.lake.files("ledger")
        for step in workshop.lake.read(path).get_column("step").to_list()
    ]
    assert sorted(steps) == ["repair", "reply"]


def test_what_cannot_be_had_is_told_and_the_rest_is_there(workshop):
    writer = Writer(oak_planter=[CompletionError("too long for this model", kind="length")])
    result = enriched(
        workshop, garden(workshop, ["oak", "elm"], 'products = ["questions"]\n'), writer
    )
    assert result.problems == (
        "questions of kit/garden/oak_planter was not generated: too long for this model",
    )
    assert result.actual["accepted"] == {"questions": 1}


def test_a_budget_stops_the_run_says_how_far_it_got_and_the_next_run_goes_on(workshop):
    extra = 'products = ["questions"]\nmax_tokens = 3000\nmax_reply_tokens = 200\nconcurrency = 1\n'
    writer = Writer()
    with pytest.raises(
        BudgetExhausted,
        match=r"does not fit into max_tokens = 3000: .* of 20 requests are completed\. Nothing was "
        r"published",
    ):
        enriched(workshop, garden(workshop, extra=extra), writer)
    assert 0 < len(writer.asked) < 20
    rest = Writer()
    result = enriched(workshop, garden(workshop, extra=extra.replace("3000", "300000")), rest)
    assert len(writer.asked) + len(rest.asked) == 20
    assert result.enrichments.tools == 20


def test_a_budget_may_publish_what_there_is(workshop):
    extra = (
        'products = ["questions"]\nmax_tokens = 3000\nmax_reply_tokens = 200\nconcurrency = '
        '1\nincomplete = "publish"\n'
    )
    result = enriched(workshop, garden(workshop, extra=extra), Writer())
    assert 0 < result.enrichments.tools < 20
    assert "max_tokens = 3000" in result.stopped


def test_verdicts_on_dependencies_are_part_of_the_enrichment(workshop):
    order = workshop.tool("search_orders", "Searches orders by text.", text="a text")
    cancel = workshop.tool("cancel_order", "Cancels an order.", order_id="the id of the order")
    workshop.servers({"shop": [order, cancel]})
    verdict = {"number": 1, "needed": True, "direct": True, "reason": "A search says the id."}
    writer = Writer(cancel_order=[{"candidates": [verdict]}])
    configuration = workshop.configure(ENRICH + 'products = ["dependencies"]\n')
    result = enriched(workshop, configuration, writer)
    tools, _ = read_enrichments(workshop.lake, result.enrichments.path)
    (dependency,) = tools["kit/shop/cancel_order"].dependencies
    assert dependency["tool"] == "kit/shop/search_orders"


def test_a_budget_in_dollars_needs_a_price(workshop):
    configuration = garden(workshop, extra="budget_usd = 1\n")
    run = workshop.run(configuration, until="snapshot")
    with pytest.raises(
        ConfigurationError, match=r"price of openai/stub is unknown.*\[enrich.price\]"
    ):
        enrich_tools(configuration, {one.catalog: one.digest for one in run.snapshots})


def test_a_wrong_key_ends_the_run_at_once_and_nothing_is_published(workshop):
    writer = Writer(
        **{f"{name}_planter": [CompletionError("no key", kind="key", status=401)] for name in WORDS}
    )
    with pytest.raises(
        CompletionError, match=r"no key\. 0 of 20 requests are completed\. Nothing was published"
    ):
        enriched(
            workshop, garden(workshop, extra='products = ["questions"]\nconcurrency = 2\n'), writer
        )
    assert len(writer.asked) <= 2


def test_what_a_person_wrote_is_not_written_again(workshop):
    configuration = garden(
        workshop, ["oak"], '[overrides."kit/garden/oak_planter"]\ndescription = "Mine."\n'
    )
    writer = Writer()
    enriched(workshop, configuration, writer)
    assert ("description", "oak_planter") not in writer.asked


def test_the_plan_says_what_would_be_bought_and_afterwards_what_is_held(workshop):
    configuration = garden(workshop, extra="[enrich.price]\ninput = 1\noutput = 2\n")
    run = workshop.run(configuration, until="snapshot")
    identities = {one.catalog: one.digest for one in run.snapshots}
    before = estimate_tools(configuration, identities).to_dict()
    assert (before["pending"], before["calls"]) == (81, 81)
    assert before["cost_usd"] == pytest.approx(
        before["prompt_tokens"] * 1e-6 + before["completion_tokens"] * 2e-6, rel=1e-3
    )
    assert before["prompt_tokens"] > 81 * 200

    enriched(workshop, configuration, Writer())
    after = estimate_tools(configuration, identities).to_dict()
    assert (after["pending"], after["cost_usd"], after["products"]["topics"]["accepted"]) == (
        0,
        0,
        20,
    )


def test_a_prompt_that_was_reworded_under_the_same_version_buys_nothing_and_is_pointed_out(
    workshop,
):
    enriched(workshop, garden(workshop, ["oak"]), Writer())
    (workshop.folder / "prompts").mkdir()
    mine = workshop.folder / "prompts/topics.md"
    mine.write_text((BUILTIN_PROMPTS / "topics.md").read_text("utf-8") + "\nBe brief.\n", "utf-8")
    writer = Writer()
    result = enriched(workshop, garden(workshop, ["oak"]), writer)
    assert writer.asked == []
    assert [
        str(mine) in problem and "Change the version" in problem for problem in result.problems
    ] == [True]


def test_a_credential_in_a_reply_is_neither_kept_nor_shown_again(workshop):
    leak = '{"questions": ["Use sk-proj-abcdefghijklmnop1234567890 to water it"]}'
    writer = Writer(oak_planter=[leak, leak])
    result = enriched(workshop, garden(workshop, ["oak"], 'products = ["questions"]\n'), writer)
    assert result.actual["rejected"] == {"questions": {"credential": 1}}
    everything = b"".join(
        path.read_bytes() for path in workshop.folder.rglob("*") if path.is_file()
    )
    assert b"abcdefghijklmnop1234567890" not in everything
    assert all(
        "abcdefghijklmnop" not in str(workshop.lake.read(path).to_dicts())
        for path in workshop.lake.files("ledger")
    )
