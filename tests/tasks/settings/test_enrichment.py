"""[enrich], [untrusted] and [overrides] of a pegboard.toml."""

import pytest

from pegboard.errors import ConfigurationError
from tasks.settings.enrichment import USUAL_PRODUCTS


def configure(workshop, text):
    workshop.servers({"git": [workshop.tool("a", "Does a.")]})
    return workshop.configure(text)


def test_without_the_table_no_llm_is_asked(workshop):
    assert configure(workshop, "").enrich is None


def test_a_model_is_all_that_has_to_be_said(workshop):
    settings = configure(workshop, '[enrich]\nmodel = "openai/gpt-4o-mini"').enrich
    assert settings.products == USUAL_PRODUCTS
    assert "dependencies" not in USUAL_PRODUCTS
    assert (settings.mode, settings.incomplete, settings.budget_usd) == ("live", "stop", None)


def test_products_are_made_in_their_order_however_they_are_written(workshop):
    settings = configure(
        workshop, '[enrich]\nmodel = "m"\nproducts = ["topics", "questions", "topics"]'
    ).enrich
    assert settings.products == ("questions", "topics")


def test_dependencies_are_judged_where_that_is_asked_for(workshop):
    settings = configure(
        workshop, '[enrich]\nmodel = "m"\nproducts = ["agents", "dependencies", "topics"]'
    ).enrich
    assert settings.products == ("topics", "dependencies", "agents")


def test_all_problems_are_told_at_once(workshop):
    with pytest.raises(ConfigurationError) as caught:
        configure(
            workshop,
            '[enrich]\nmodle = "m"\nproducts = ["summary"]\nbudget_usd = -1\napi_key_env = '
            '"sk-123"\nlanguage = "English"\n'
            '[untrusted]\nflagged = "drop"\n[overrides."kit/git/a"]\n',
        )
    said = str(caught.value)
    for place in (
        "enrich.model: it is missing",
        "enrich.modle: there is no such setting",
        "enrich.products.0",
        "enrich.budget_usd",
        "enrich.api_key_env: expected the name of an environment variable",
        "enrich.language",
        "untrusted.flagged",
        "overrides.kit/git/a: expected description, examples, arguments, tags or skip",
    ):
        assert place in said


def test_a_batch_has_no_fallbacks(workshop):
    with pytest.raises(ConfigurationError, match="a batch goes to one provider"):
        configure(workshop, '[enrich]\nmodel = "m"\nmode = "batch"\nfallbacks = ["n"]')
