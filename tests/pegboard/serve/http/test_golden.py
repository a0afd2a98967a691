"""Golden queries that the page saves."""

import pytest

from pegboard.evaluation.golden import read_queries

RATES = {"query": "what is the dollar worth today?", "tools": ["finance/finance/list_rates"]}
FINANCE = {"anyone": {"allow": [{"catalog": "finance"}], "operator": True}}


@pytest.fixture
def save(board_uri, ask, tmp_path):
    """A function: the responses to queries, saved one after the other, and the file."""
    file = tmp_path / "golden.jsonl"

    def saved(*bodies, before="", **serve):
        if before:
            file.write_text(before, "utf-8")
        requests = [("POST", "/v1/golden", {"json": body}) for body in bodies]
        return ask(board_uri, *requests, golden=str(file), **serve), file

    return saved


def test_a_golden_query_is_saved_once_and_without_secrets(save):
    """The file may end without a line break. A query counts as saved whatever its tools."""
    more = {**RATES, "tools": [*RATES["tools"], "finance/finance/convert_currency"]}
    secret = {**RATES, "query": "rates with key sk-abcdef1234567890abcdef12"}

    (saved, repeated, other), file = save(
        RATES, more, secret, before='{"query": "tea", "tools": ["a/b/c"]}'
    )

    assert [saved.status_code, repeated.status_code, other.status_code] == [201, 200, 201]
    assert (saved.json()["saved"], repeated.json()["saved"]) == (True, False)
    _, query, _ = read_queries(file)
    assert (query.query, query.tools) == (RATES["query"], tuple(RATES["tools"]))
    assert "sk-abcdef" not in file.read_text("utf-8")


def test_problems_of_the_golden_file_are_only_in_the_log(save, tmp_path, caplog):
    [response], file = save(RATES, before="no JSON\n")

    assert response.status_code == 503
    assert str(tmp_path) not in response.text
    assert str(file) in caplog.text


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({**RATES, "tools": ["finance/finance/gone"]}, 404),
        ({**RATES, "tools": ["kit/git/create_issue"]}, 404),
        ({**RATES, "tools": []}, 400),
        ({**RATES, "query": "  "}, 400),
    ],
)
def test_a_golden_query_with_invalid_or_hidden_tools_is_refused(save, body, status):
    [response], file = save(body, clients=FINANCE)

    assert response.status_code == status
    assert not file.exists()


def test_without_a_configured_file_nothing_is_saved(board_uri, ask):
    [response] = ask(board_uri, ("POST", "/v1/golden", {"json": RATES}))

    assert response.status_code == 403
    assert "golden =" in response.json()["error"]["next_step"]
