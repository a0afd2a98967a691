"""What is bought and what is not: repairs, rejections, budgets, and later runs."""

import json
import re
from collections import Counter

import pytest

from pegboard.errors import BudgetExhausted, CompletionError, ConfigurationError
from pegboard.llm import ChatReply
from tasks.enrichment.enrichment_sets import read_agent_descriptions, read_tool_enrichments
from tasks.enrichment.prompts import BUILTIN_PROMPTS
from tasks.settings.enrichment import PRODUCTS
from tasks.steps.enrich import enrich_tools, estimate_tools

ENRICH = '[enrich]\nmodel = "openai/stub"\nquestions = 2\ntopics = 2\n'
QUESTIONS = 'products = ["questions"]\n'
SMALL_BUDGET = f"{QUESTIONS}max_tokens = 3000\nmax_reply_tokens = 200\nconcurrency = 1\n"
NEW_QUESTIONS = {"questions": ["How do I get this one into the ground?", "dig it in for me"]}
WORDS = [
    "alder", "birch", "cedar", "dahlia", "elm", "fern", "gorse", "hazel", "iris", "juniper",
    "kale", "lilac", "maple", "nettle", "oak", "pine", "quince", "rose", "sage", "thyme",
]  # fmt: skip


class Writer:
    """A completer that writes something valid about whatever it is shown, unless a script for its
    subject says otherwise.
    """

    name = "openai/stub"

    def __init__(self, **scripts):
        self.calls = []
        self.scripts = {subject: list(replies) for subject, replies in scripts.items()}

    async def complete(self, request):
        prompt = next(message.content for message in request.messages if message.role == "user")
        subject = re.search(r'"name":\s*"([^"]+)"', prompt)[1]
        product = request.schema_name
        self.calls.append((product, subject))
        script = self.scripts.get(subject, [])
        reply = script.pop(0) if script else good_reply(product, subject.replace("_", " "))
        if isinstance(reply, Exception):
            raise reply
        return ChatReply(
            text=reply if isinstance(reply, str) else json.dumps(reply), finish_reason="stop",
            model=self.name, prompt_tokens=100, completion_tokens=10, cost_usd=0.001, seconds=0.01,
        )  # fmt: skip


def good_reply(product, words):
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
        "agents": {"description": f"Keeps the garden of {words}, bed by bed, all year round."},
    }[product]


def planters(workshop, names):
    return [
        workshop.tool(f"{name}_planter", f"Plants the {name} outside.", depth="deep")
        for name in names
    ]


@pytest.fixture
def garden(workshop):
    """A function that configures an agent with a tool for each name."""

    def configure(names=WORDS, extra=""):
        workshop.servers({"garden": planters(workshop, names)})
        products = "" if "products" in extra else f"products = {json.dumps(PRODUCTS)}\n"
        return workshop.configure(ENRICH + products + extra)

    return configure


@pytest.fixture
def enrich(workshop):
    """A function that enriches what a configuration lists."""

    def run(configuration, writer):
        snapshots = digests(workshop, configuration)
        return enrich_tools(configuration, snapshots, writer)

    return run


def digests(workshop, configuration):
    run = workshop.run(configuration, until="snapshot")
    return {snapshot.catalog: snapshot.digest for snapshot in run.snapshots}


def test_every_product_is_bought_once_and_a_second_run_buys_nothing(workshop, garden, enrich):
    configuration = garden(extra="[enrich.price]\ninput = 1\noutput = 2\n")
    snapshots = digests(workshop, configuration)
    initial_estimate = estimate_tools(configuration, snapshots)
    writer = Writer()
    second_writer = Writer()
    first_result = enrich(configuration, writer)
    second_result = enrich(configuration, second_writer)
    final_estimate = estimate_tools(configuration, snapshots)

    products = dict.fromkeys(("description", "arguments", "questions", "topics"), 20)
    assert Counter(product for product, _ in writer.calls) == products | {"agents": 1}
    assert set(Counter(writer.calls).values()) == {1}
    tools = read_tool_enrichments(workshop.lake, first_result.path)
    agents = read_agent_descriptions(workshop.lake, first_result.path)
    oak = tools["kit/garden/oak_planter"]
    description = "Plants the oak planter in a garden bed. Use it to plant a oak planter."
    assert oak.description == description
    assert oak.arguments == {"depth": "How deep the hole is."}
    assert oak.topics == ("Planting oak planter", "Garden beds")
    assert agents["kit/garden"].startswith("Keeps the garden")
    assert second_writer.calls == []
    assert second_result.path == first_result.path
    assert initial_estimate["pending"] == 81
    assert initial_estimate["prompt_tokens"] > 81 * 200
    cost = initial_estimate["prompt_tokens"] * 1e-6 + initial_estimate["completion_tokens"] * 2e-6
    assert initial_estimate["cost_usd"] == pytest.approx(cost, rel=1e-3)
    assert (final_estimate["pending"], final_estimate["cost_usd"]) == (0, 0)
    assert final_estimate["products"]["topics"]["accepted"] == 20


def new_version(text):
    return text.replace('version = "1"', 'version = "mine-1"')


def reworded(text):
    return f"{text}\nBe brief.\n"


@pytest.mark.parametrize(
    ("names", "extra", "edit", "expected"),
    [
        # Added tools, and the description of their agent.
        (WORDS, "", None, {"thyme_planter": 4, "garden": 1}),
        # Another version of a prompt buys its product.
        (WORDS[:-1], "", new_version, dict.fromkeys([f"{word}_planter" for word in WORDS[:-1]], 1)),
        # Another context buys everything.
        (
            WORDS[:-1],
            'context = "A garden in Kent."\n',
            None,
            {**{f"{word}_planter": 4 for word in WORDS[:-1]}, "garden": 1},
        ),
    ],
)
def test_only_what_depends_on_a_change_is_bought_again(
    workshop, garden, enrich, names, extra, edit, expected
):
    enrich(garden(WORDS[:-1], "collision = 1\n"), Writer())
    if edit is not None:
        edit_prompt(workshop, "topics", edit)
    writer = Writer()

    enrich(garden(names, f"collision = 1\n{extra}"), writer)

    assert Counter(subject for _, subject in writer.calls) == expected


def test_options_are_part_of_a_replys_key_only_if_they_are_set(garden, enrich):
    enrich(garden(["oak"], QUESTIONS), Writer())
    same = Writer()
    other = Writer()

    enrich(garden(["oak"], f"{QUESTIONS}options = {{}}\n"), same)
    enrich(garden(["oak"], f'{QUESTIONS}options = {{reasoning_effort = "low"}}\n'), other)

    assert same.calls == []
    assert other.calls == [("questions", "oak_planter")]


def edit_prompt(workshop, name, edit):
    file = workshop.folder / f"prompts/{name}.md"
    file.parent.mkdir(exist_ok=True)
    file.write_text(edit((BUILTIN_PROMPTS / f"{name}.md").read_text("utf-8")), "utf-8")


def test_a_prompt_edited_under_its_version_and_a_missing_price_are_found_before_any_call(
    workshop, garden, enrich
):
    enrich(garden(WORDS[:-1]), Writer())
    for name in ("topics", "questions"):
        edit_prompt(workshop, name, reworded)
    configuration = garden(extra="budget_usd = 1\n")
    snapshots = digests(workshop, configuration)

    for step in (estimate_tools, enrich_tools):
        with pytest.raises(ConfigurationError, match="has 3 problems") as caught:
            step(configuration, snapshots)

        message = str(caught.value)
        assert message.count("version is still '1', and 19 of its replies") == 2
        assert "price of openai/stub is unknown" in message


def test_a_neighbour_is_described_again_only_within_the_collision_threshold(workshop, enrich):
    def bought(collision, description):
        extra = f'collision = {collision}\nproducts = ["description"]\n'
        digger = workshop.tool("oak_digger", description)
        workshop.servers({"garden": [*planters(workshop, ["oak"]), digger]})
        writer = Writer()
        enrich(workshop.configure(ENRICH + extra), writer)
        return sorted(subject for _, subject in writer.calls)

    both = ["oak_digger", "oak_planter"]
    at_night = "Digs a hole for an oak at night."
    assert bought(0.99, "Digs a hole for an oak.") == both
    assert bought(0.99, at_night) == ["oak_digger"]  # too far from the planter to matter
    assert bought(0.3, "Digs a hole for an oak outside.") == both  # counts as near now
    assert bought(0.3, "Digs a hole for an oak outside.") == []


@pytest.mark.parametrize(
    ("replies", "rejected"),
    [
        (["no JSON here"], {}),
        (["I'm sorry, I can't help with that."] * 2, {"refusal": 1}),
        (
            ['{"questions": ["Use sk-proj-abcdefghijklmnop1234567890 to water it"]}'] * 2,
            {"credential": 1},
        ),
    ],
)
def test_a_reply_is_repaired_once_and_every_step_is_in_the_ledger(
    workshop, garden, enrich, replies, rejected
):
    configuration = garden(["oak"], f'{QUESTIONS}incomplete = "publish"\n')
    result = enrich(configuration, Writer(oak_planter=replies))
    again = Writer()
    enrich(configuration, again)

    (ledger,) = workshop.lake.files("ledger")
    rows = workshop.lake.read(ledger)
    assert rows.get_column("step").to_list() == ["reply", "repair"]
    assert again.calls == []  # a rejected request is not bought again
    assert result.actual["accepted"] == ({} if rejected else {"questions": 1})
    assert result.actual["completed"] == {"questions": int(not rejected)}
    assert result.actual["rejected"] == ({"questions": rejected} if rejected else {})
    assert "abcdefghijklmnop" not in str(rows.to_dicts())
    files = [path for path in workshop.folder.rglob("*") if path.is_file()]
    assert not [path for path in files if b"abcdefghijklmnop1234567890" in path.read_bytes()]


def test_a_run_that_ended_before_its_repair_continues_there(workshop, garden, enrich):
    configuration = garden(["oak"], QUESTIONS)
    with pytest.raises(CompletionError, match="gone"):
        enrich(configuration, Writer(oak_planter=["no JSON", CompletionError("gone")]))
    resumed = Writer()
    enrich(configuration, resumed)
    assert resumed.calls == [("questions", "oak_planter")]
    ledgers = [workshop.lake.read(path) for path in workshop.lake.files("ledger")]
    steps = [step for rows in ledgers for step in rows.get_column("step").to_list()]
    assert sorted(steps) == ["repair", "reply"]


def test_a_failed_request_is_reported_and_the_others_are_there(garden, enrich):
    writer = Writer(oak_planter=[CompletionError("too long for this model", kind="length")])
    result = enrich(garden(["oak", "elm"], QUESTIONS), writer)
    problem = "questions of kit/garden/oak_planter was not generated: too long for this model"
    assert result.problems == (problem,)
    assert result.actual["accepted"] == {"questions": 1}


def test_a_budget_stops_the_run_and_the_next_run_continues(garden, enrich, workshop):
    limited_writer = Writer()
    next_writer = Writer()
    message = (
        r"does not fit into max_tokens = 3000: .* of 20 requests are completed\. Nothing was "
        r"published"
    )
    with pytest.raises(BudgetExhausted, match=message):
        enrich(garden(extra=SMALL_BUDGET), limited_writer)
    assert 0 < len(limited_writer.calls) < 20
    result = enrich(garden(extra=SMALL_BUDGET.replace("3000", "300000")), next_writer)
    assert len(limited_writer.calls) + len(next_writer.calls) == 20
    assert len(read_tool_enrichments(workshop.lake, result.path)) == 20


def test_with_incomplete_publish_earlier_questions_stay_until_new_ones_replace_them(
    workshop, garden, enrich
):
    first_result = enrich(garden(extra=QUESTIONS), Writer())
    old_texts = read_tool_enrichments(workshop.lake, first_result.path)
    edit_prompt(workshop, "questions", new_version)
    writer = Writer(**{f"{name}_planter": [NEW_QUESTIONS] for name in WORDS})

    result = enrich(garden(extra=f'{SMALL_BUDGET}incomplete = "publish"\n'), writer)

    new_texts = read_tool_enrichments(workshop.lake, result.path)
    replaced = {tool for tool in new_texts if new_texts[tool] != old_texts[tool]}
    assert new_texts.keys() == old_texts.keys()
    assert 0 < len(replaced) == len(writer.calls) < 20
    assert result.actual["completed"] == {"questions": len(replaced)}
    assert result.actual["kept"] == {"questions": 20 - len(replaced)}


@pytest.mark.parametrize("incomplete", ["stop", "publish"])
def test_a_release_is_not_made_of_replies_most_of_which_were_rejected(garden, enrich, incomplete):
    refused = {f"{name}_planter": ["I'm sorry, I can't help with that."] * 2 for name in WORDS[:11]}
    configuration = garden(extra=f'{QUESTIONS}incomplete = "{incomplete}"\n')
    message = "Most replies for questions were rejected: 11 of 20 (11 refusal)."

    if incomplete == "stop":
        for writer in (Writer(**refused), Writer()):  # the second run has nothing to ask
            with pytest.raises(CompletionError, match=re.escape(f"{message} Nothing was")):
                enrich(configuration, writer)
    else:
        assert enrich(configuration, Writer(**refused)).problems == (message,)


def test_an_overridden_description_is_not_bought(garden, enrich):
    override = '[overrides."kit/garden/oak_planter"]\ndescription = "Mine."\n'
    writer = Writer()
    enrich(garden(["oak"], override), writer)
    assert ("description", "oak_planter") not in writer.calls
    assert ("topics", "oak_planter") in writer.calls


def test_where_nothing_is_said_the_products_are_written_whose_effect_was_measured(workshop):
    configuration = workshop.configure('[enrich]\nmodel = "openai/stub"\n')
    assert configuration.enrich.products == ("description", "questions")


@pytest.mark.parametrize("names", [WORDS[:1], WORDS[:3]])
def test_an_invalid_reply_for_the_only_changed_tool_holds_one_build_and_its_old_text_stays(
    workshop, garden, enrich, names
):
    before = enrich(garden(names, QUESTIONS), Writer())
    tools = planters(workshop, names)
    tools[0]["description"] = "Plants the alder inside now."
    workshop.servers({"garden": tools})
    configuration = workshop.configure(ENRICH + QUESTIONS)
    invalid = Writer(alder_planter=["not JSON", "not JSON either"])

    with pytest.raises(CompletionError, match=r"No request for questions got a usable reply"):
        enrich(configuration, invalid)
    later = [enrich(configuration, Writer()) for _ in range(2)]

    assert len(invalid.calls) == 2
    texts = read_tool_enrichments(workshop.lake, before.path)
    for result in later:
        assert result.actual["rejected"] == {"questions": {"not-json": 1}}
        assert result.actual["outdated"] == {"questions": 1}
        assert result.problems == (
            "Texts about earlier versions of tools and agents were kept: 1 questions; the next "
            "build with replies replaces them",
        )
        assert read_tool_enrichments(workshop.lake, result.path) == texts
