"""What the commands print of an LLM that fails, and the exit code."""

import json

from tests.openai_server import LITELLM_WARNINGS, failure
from tests.scripted_llm import scripted_llm

pytestmark = LITELLM_WARNINGS

ENRICH = 'products = ["questions"]\nattempts = 1\n'


def test_a_failing_llm_ends_a_build_with_7_and_kept_texts_are_counted(command, workshop):
    def configure(llm, description, extra=""):
        workshop.servers({"git": [workshop.tool("create_issue", description)]})
        address = f'[enrich]\nmodel = "openai/m"\napi_base = "{llm.url}"\n'
        workshop.configure(f"{address}{ENRICH}{extra}")

    with scripted_llm() as llm:
        configure(llm, "Opens an issue.")
        first, *_ = command("build", "--quiet")
        answer, llm.server.default = llm.server.default, lambda _: failure(500)
        configure(llm, "Opens an issue, now.")
        stopped, _, problem = command("build", "--quiet")
        configure(llm, "Opens an issue, now.", 'incomplete = "publish"\n')
        published, out, warning = command("build", "--quiet")
        strict, *_ = command("build", "--quiet", "--strict")
        llm.server.default = answer
        _, again, _ = command("build", "--quiet", "--json")

    assert (first, stopped, published, strict) == (0, 7, 0, 7)
    assert "No request for questions got a usable reply (1 failed). Last error: " in problem
    assert "questions: 0 written before, 0 completed, 1 kept of an earlier version" in out
    assert "Texts about earlier versions of tools and agents were kept: 1 questions" in warning
    assert json.loads(again)["enrichment"]["actual"]["outdated"] == {}


def test_a_plan_says_that_a_budget_is_too_low(command, workshop):
    workshop.servers({"git": [workshop.tool("create_issue", "Opens an issue.")]})
    limit = "max_tokens = 100\n[enrich.price]\ninput = 1\noutput = 2\n"
    workshop.configure(f'[enrich]\nmodel = "openai/m"\n{ENRICH}{limit}')

    code, out, _ = command("plan", "--quiet")

    assert code == 0
    assert "\n  max_tokens = 100 is too low: " in out
