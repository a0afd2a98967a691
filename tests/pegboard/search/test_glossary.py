"""Expansion of abbreviations in requests."""

import pytest

from pegboard.search.glossary import spelled_out, usual_short_forms

GLOSSARY = {"pr": "pull request", "db": "database", "k8s": "Kubernetes"}


@pytest.mark.parametrize(
    ("request_", "expanded"),
    [
        ("close the PR", "close the PR (pull request)"),
        ("list PRs of the db", "list PRs of the db (pull request, database)"),
        ("the PR and its PR", "the PR and its PR (pull request)"),
        ("a k8s pod", "a k8s pod (Kubernetes)"),
        ("merge the pull request (PR)", "merge the pull request (PR)"),
        ("print the prose", "print the prose"),
        ("", ""),
    ],
)
def test_each_meaning_is_appended_to_the_request_once(request_, expanded):
    assert spelled_out(request_, GLOSSARY) == expanded


def test_built_in_abbreviations_are_lower_case_words_with_a_meaning():
    for term, text in usual_short_forms().items():
        assert term == term.casefold()
        assert term.isalnum()
        assert text.strip() == text != ""
