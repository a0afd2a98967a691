"""Short forms are spelled out in requests."""

import pytest

from pegboard.search.glossary import spelled_out, usual_short_forms

GLOSSARY = {"pr": "pull request", "db": "database", "k8s": "Kubernetes"}


@pytest.mark.parametrize(
    ("request_", "meant"),
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
def test_what_a_word_stands_for_follows_the_request_once(request_, meant):
    assert spelled_out(request_, GLOSSARY) == meant


def test_the_usual_short_forms_are_words_in_lower_case_and_stand_for_texts():
    for term, text in usual_short_forms().items():
        assert term == term.casefold()
        assert term.isalnum()
        assert text.strip() == text != ""
