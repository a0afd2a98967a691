"""Golden queries that the page saves: checked, whole lines, safe with several writers."""

import json
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from pegboard.errors import ConfigurationError
from pegboard.evaluation.golden import GoldenQuery, read_queries
from pegboard.serve import golden_file
from pegboard.serve.golden_file import add_golden_query

RATES = {"query": "what is the dollar worth today?", "tools": ["finance/finance/list_rates"]}


def post(body):
    return ("POST", "/v1/golden", {"json": body})


def test_a_query_is_saved_once_as_a_line_that_builds_read(board_uri, ask, tmp_path):
    file = tmp_path / "golden.jsonl"

    first, again, status = ask(
        board_uri, post(RATES), post(RATES), ("GET", "/v1/status"), golden=str(file)
    )

    assert (first.status_code, again.status_code) == (201, 200)
    assert (first.json()["saved"], again.json()["saved"]) == (True, False)
    [query] = read_queries(file)
    assert (query.query, query.tools, query.id) == (
        RATES["query"],
        tuple(RATES["tools"]),
        first.json()["id"],
    )
    assert status.json()["golden"] is True


def test_the_request_with_other_tools_is_refused_and_names_those_that_one_may_see(
    board_uri, ask, tmp_path
):
    file = tmp_path / "golden.jsonl"
    line = {**RATES, "tools": [*RATES["tools"], "kit/git/create_issue"]}
    file.write_text(json.dumps(line) + "\n", "utf-8")
    other = {**RATES, "tools": ["finance/finance/convert_currency"]}
    clients = {"anyone": {"allow": [{"catalog": "finance"}], "operator": True}}

    [response] = ask(board_uri, post(other), golden=str(file), clients=clients)

    assert response.status_code == 409
    assert "finance/finance/list_rates" in response.json()["error"]["what"]
    assert "create_issue" not in response.text
    assert str(tmp_path) not in response.text


def test_what_is_wrong_with_the_file_is_in_the_log_alone(board_uri, ask, tmp_path, caplog):
    file = tmp_path / "golden.jsonl"
    file.write_text("no JSON\n", "utf-8")

    [response] = ask(board_uri, post(RATES), golden=str(file))

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
        ({**RATES, "origin": "examples"}, 400),
    ],
)
def test_what_is_no_golden_query_of_visible_tools_is_not_saved(
    board_uri, ask, tmp_path, body, status
):
    file = tmp_path / "golden.jsonl"
    clients = {"anyone": {"allow": [{"catalog": "finance"}], "operator": True}}

    [response] = ask(board_uri, post(body), golden=str(file), clients=clients)

    assert response.status_code == status
    assert not file.exists()


def test_without_a_configured_file_nothing_is_saved(board_uri, ask):
    [response] = ask(board_uri, post(RATES))

    assert response.status_code == 403
    assert "golden =" in response.json()["error"]["next_step"]


def test_secrets_in_a_request_are_not_saved(board_uri, ask, tmp_path):
    file = tmp_path / "golden.jsonl"
    body = {**RATES, "query": "rates with key sk-abcdef1234567890abcdef12"}

    ask(board_uri, post(body), golden=str(file))

    assert "sk-abcdef" not in file.read_text("utf-8")


def add_many(file, writer):
    for number in range(25):
        add_golden_query(file, GoldenQuery(f"request {number % 20} of {writer}", ("a/b/c",)))
        add_golden_query(file, GoldenQuery(f"request {number} of all", ("a/b/c",)))


def test_writers_at_the_same_time_lose_and_repeat_nothing(tmp_path):
    file = tmp_path / "golden.jsonl"
    with ProcessPoolExecutor(3, mp_context=get_context("spawn")) as pool:
        list(pool.map(add_many, [file] * 3, range(3)))

    queries = [query.query for query in read_queries(file)]

    assert len(queries) == len(set(queries)) == 3 * 20 + 25


def test_a_last_line_without_its_end_is_not_run_into(tmp_path):
    file = tmp_path / "golden.jsonl"
    file.write_text('{"query": "tea", "tools": ["a/b/c"]}', "utf-8")

    assert add_golden_query(file, GoldenQuery("coffee", ("a/b/c",))) is None

    assert [json.loads(line)["query"] for line in file.read_text("utf-8").splitlines()] == [
        "tea",
        "coffee",
    ]


def test_a_line_that_cannot_be_written_whole_leaves_nothing(tmp_path, monkeypatch):
    file = tmp_path / "golden.jsonl"
    add_golden_query(file, GoldenQuery("tea", ("a/b/c",)))
    before = file.read_bytes()

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(golden_file.os, "fsync", full)

    with pytest.raises(ConfigurationError, match="cannot be written"):
        add_golden_query(file, GoldenQuery("coffee", ("a/b/c",)))

    assert file.read_bytes() == before
