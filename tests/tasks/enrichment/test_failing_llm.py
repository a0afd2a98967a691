"""An LLM that fails within a run: exit code, what is live, which texts tools have, what is paid.

The server is real and on loopback; waits are recorded instead of slept.
"""

import json
import re
from functools import partial

import pytest

from flows.build import BuildOptions, build
from pegboard.errors import CompletionError
from pegboard.llm.client import MAX_FAILURES, Client
from tasks.steps.plan import live_release
from tests.openai_server import LITELLM_WARNINGS, chat, failure, hang
from tests.scripted_llm import scripted_llm

pytestmark = LITELLM_WARNINGS

DAY = 86_400
CONCURRENCY = 4
ATTEMPTS = 2
SETTINGS = f"""
products = ["questions"]
questions = 2
concurrency = {CONCURRENCY}
attempts = {ATTEMPTS}
"""
ANSWERS = {
    "400": failure(400, "Unsupported value"),
    "401": failure(401),
    "404": failure(404),
    "429": failure(429),
    "429 for a day": failure(429, Retry_After=str(DAY)),
    "500": failure(500),
    "503": failure(503),
    "no body": (200, {}, {"id": "1"}),
    "hangs": hang,
    "prose": chat("Sure! Here is what you asked for."),
    "other JSON": chat('{"answer": []}'),
    "spent": chat(None, "length"),
    "no response_format": failure(400, "'response_format' is not supported by this model"),
}


class Garden:
    """A board of tools about plants whose LLM answers as it is told to.

    Attributes:
        season: a word in every reply, by which texts of one time are told from later ones.
        failing: what answers instead, or None.
    """

    def __init__(self, workshop, llm, count):
        self.workshop = workshop
        self.llm = llm
        self.count = count
        self.season = "spring"
        self.failing = None
        llm.server.default = self.answer
        self.list_tools()

    def answer(self, body):
        if self.failing is not None:
            return self.failing
        name = re.search(r'"name":\s*"([^"]+)"', body["messages"][-1]["content"])[1]
        plant = name.replace("_", " ")
        product = body["response_format"]["json_schema"]["name"]
        if product == "agents":
            text = f"Keeps a garden in {self.season}, bed by bed, all year round."
            return chat(json.dumps({"description": text}))
        questions = [f"Where can I do {plant} in {self.season}?", f"{plant} by the {self.season}"]
        return chat(json.dumps({"questions": questions}))

    def list_tools(self, changed=(), **arguments):
        """Write the catalog; `changed` are the numbers of tools whose description has a comma."""
        tools = [
            self.workshop.tool(
                f"plant_bed_{number}",
                f"Plants bed {number}{',' * (number in changed)} outside.",
                **arguments,
            )
            for number in range(self.count)
        ]
        self.workshop.servers({"garden": tools})

    def build(self, extra=""):
        address = f'[enrich]\nmodel = "openai/m"\napi_base = "{self.llm.url}"\n'
        return build(self.workshop.configure(f"{address}{SETTINGS}{extra}"))

    def live(self):
        state, _ = live_release(self.workshop.store, "live")
        return state.release if state else None

    def questions(self):
        """The questions of every tool of the live release that has any."""
        pin = self.workshop.store.get(self.live()).tables["tools"]
        rows = self.workshop.store.read_rows(pin, ["id", "enrichment"]).to_pylist()
        texts = {row["id"]: json.loads(row["enrichment"] or "{}") for row in rows}
        return {tool: text["questions"] for tool, text in texts.items() if "questions" in text}


@pytest.fixture
def waits(monkeypatch):
    """The waits of every client in order; none is slept."""
    waited = []

    async def record(seconds):
        waited.append(seconds)

    monkeypatch.setattr("tasks.enrichment.models.Client", partial(Client, sleep=record))
    return waited


@pytest.fixture
def garden(workshop, waits):
    """A function that returns a garden with so many tools."""
    with scripted_llm() as llm:
        yield partial(Garden, workshop, llm)


@pytest.mark.parametrize("count", [1, 50])
@pytest.mark.parametrize("how", ANSWERS)
def test_a_first_build_whose_requests_all_fail_publishes_nothing(garden, waits, how, count):
    board = garden(count)
    board.failing = ANSWERS[how]

    with pytest.raises(CompletionError, match="Nothing was published") as caught:
        board.build("timeout = 0.2\n" if how == "hangs" else "")

    assert caught.value.exit_code == 7
    assert board.live() is None
    max_requests = ATTEMPTS * min(count, MAX_FAILURES + 2 * CONCURRENCY)
    if how in ("prose", "other JSON"):  # a reply and its repair for each tool
        max_requests = 2 * count
    assert 1 <= len(board.llm.server.bodies) <= max_requests
    assert all(seconds < DAY / 2 for seconds in waits)


@pytest.mark.parametrize("how", ["400", "401", "429 for a day", "500", "prose", "spent"])
def test_a_changed_tool_keeps_its_texts_until_new_ones_replace_them(garden, how):
    board = garden(5)
    board.build()
    release = board.live()
    spring = board.questions()
    board.list_tools(changed=[3])
    board.season, board.failing = "autumn", ANSWERS[how]

    with pytest.raises(CompletionError, match="Nothing was published"):
        board.build()
    assert board.live() == release
    outcome = board.build('incomplete = "publish"\n')

    assert outcome["outcome"] == "published"
    assert board.questions() == spring
    actual = outcome["enrichment"]["actual"]
    assert (actual["outdated"], actual["completed"]) == ({"questions": 1}, {})
    assert "earlier versions of tools and agents were kept: 1 questions" in str(outcome["problems"])


def test_new_texts_replace_kept_ones_as_soon_as_the_llm_answers(garden):
    board = garden(5)
    board.build()
    spring = board.questions()
    board.list_tools(changed=[3])
    board.season, board.failing = "autumn", ANSWERS["500"]
    board.build('incomplete = "publish"\n')
    board.failing = None

    outcome = board.build()

    questions = board.questions()
    assert [tool for tool in spring if questions[tool] != spring[tool]] == [
        "kit/garden/plant_bed_3"
    ]
    assert "autumn" in str(questions["kit/garden/plant_bed_3"])
    assert outcome["enrichment"]["actual"]["outdated"] == {}
    assert outcome["problems"] == []


def test_texts_are_gone_when_the_configuration_asks_for_none(garden, workshop):
    board = garden(5)
    board.build()

    build(workshop.configure())

    assert board.questions() == {}


def test_notes_on_arguments_that_are_gone_are_not_kept(garden):
    board = garden(5)
    notes = [{"name": name, "note": f"The {name} of it."} for name in ("depth", "width")]
    board.list_tools(depth="deep", width="wide")
    board.failing = chat(json.dumps({"arguments": notes}))
    products = 'products = ["arguments"]\n'
    extra = SETTINGS.replace('products = ["questions"]\n', products)
    address = f'[enrich]\nmodel = "openai/m"\napi_base = "{board.llm.url}"\n'
    build(board.workshop.configure(address + extra))
    board.list_tools(width="very wide")
    board.failing = ANSWERS["500"]

    build(board.workshop.configure(f'{address}{extra}incomplete = "publish"\n'))

    pin = board.workshop.store.get(board.live()).tables["tools"]
    rows = board.workshop.store.read_rows(pin, ["enrichment"]).to_pylist()
    assert {row["enrichment"] for row in rows} == {'{"arguments":{"width":"The width of it."}}'}


def test_a_failure_that_is_due_to_one_tool_does_not_hold_back_the_others(garden):
    board = garden(5)
    board.build()
    board.list_tools(changed=[3])
    board.failing = failure(400, "was filtered", "content_filter")

    outcome = board.build()

    assert outcome["outcome"] == "published"
    assert "questions of kit/garden/plant_bed_3 was not generated" in outcome["problems"][0]


def test_a_wait_within_the_bound_is_waited_for(garden, waits):
    board = garden(5)
    board.llm.server.script = [failure(429, Retry_After="100")]

    outcome = board.build()

    assert outcome["outcome"] == "published"
    assert max(waits) == 100


@pytest.mark.parametrize(("max_wait", "stops"), [(99, True), (100, False)])
def test_a_retry_after_beyond_max_wait_ends_the_run_and_names_the_wait(
    garden, waits, max_wait, stops
):
    board = garden(50)
    if stops:
        board.failing = failure(429, Retry_After="100")
        message = r"asks to wait 100 s, and max_wait is 99 s: .* raise max_wait"
        with pytest.raises(CompletionError, match=message):
            board.build(f"max_wait = {max_wait}\n")
        assert waits == []
        assert len(board.llm.server.bodies) <= CONCURRENCY
    else:
        board.llm.server.script = [failure(429, Retry_After="100")]
        assert board.build(f"max_wait = {max_wait}\n")["outcome"] == "published"


def test_a_wait_of_a_day_ends_the_run_and_the_message_gives_it_in_hours(garden, waits):
    board = garden(5)
    board.failing = ANSWERS["429 for a day"]

    with pytest.raises(CompletionError, match=r"asks to wait 86400 s \(24 h\)"):
        board.build()

    assert waits == []


def test_a_spent_reply_budget_names_its_setting_and_is_not_paid_twice(garden):
    board = garden(5)
    board.failing = ANSWERS["spent"]

    for _ in range(2):
        message = r"5 spent.*max_reply_tokens is 1000\. .*raise max_reply_tokens"
        with pytest.raises(CompletionError, match=message):
            board.build()
        assert len(board.llm.server.bodies) == 5

    board.failing = None
    assert board.build("max_reply_tokens = 4000\n")["outcome"] == "published"


def test_a_raised_limit_asks_again_only_for_what_was_cut_off(garden):
    board = garden(5)
    board.llm.server.script = [ANSWERS["spent"]]
    board.build()
    requests = len(board.llm.server.bodies)

    board.build("max_reply_tokens = 4000\n")

    assert len(board.llm.server.bodies) == requests + 1
    assert len(board.questions()) == 5


def test_a_run_stops_after_ten_replies_in_a_row_without_text(garden):
    board = garden(50)
    board.failing = ANSWERS["spent"]

    with pytest.raises(CompletionError, match=r"10 replies in a row spent .*max_reply_tokens"):
        board.build()

    assert len(board.llm.server.bodies) <= MAX_FAILURES + 2 * CONCURRENCY


def test_a_refused_response_format_names_the_remedy_and_ends_the_run(garden):
    board = garden(50)
    board.failing = ANSWERS["no response_format"]

    with pytest.raises(CompletionError, match='Set structured = "text" under'):
        board.build()

    assert len(board.llm.server.bodies) <= 2 * CONCURRENCY


def test_a_plan_names_a_budget_below_the_estimate_before_any_request(garden):
    board = garden(5)
    limits = "[enrich.price]\ninput = 1000\noutput = 1000\n"

    def planned(extra):
        address = f'[enrich]\nmodel = "openai/m"\napi_base = "{board.llm.url}"\n'
        configuration = board.workshop.configure(f"{address}{SETTINGS}{extra}")
        return build(configuration, BuildOptions(dry_run=True))["enrichment"]["estimate"]

    enough = planned(f"budget_usd = 100\nmax_tokens = 100000\n{limits}")
    little = planned(f"budget_usd = 0.5\nmax_tokens = 300\n{limits}")

    assert enough["over_budget"] == []
    usd, tokens = little["over_budget"]
    assert usd == f"budget_usd = 0.5 is too low: {little['cost_usd']:.4f} USD are estimated"
    assert tokens.startswith("max_tokens = 300 is too low: ")
    assert board.llm.server.bodies == []
