"""A store that refuses, is busy, silent, away or not there: a clear error after few attempts, and
no secret in it.

A call that did not give up would hang: pytest-timeout is the guard, and no test measures seconds.
"""

import json
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count

import pytest

import pegboard
from pegboard.cli.main import main
from pegboard.errors import ConfigurationError
from pegboard.store.releases import ReleaseStore
from tasks.lake.files import Lake

PATIENT = {"open_timeout": "500", "read_timeout": "500s", "client_max_retries": "1"}
"""However slow this machine is, it is the store's answer that ends a call."""
HASTY = {"open_timeout": "0.5", "read_timeout": "1s", "client_max_retries": "1"}
number = count()


@pytest.fixture
def board_uri_at(keys, monkeypatch, configured):
    """Configure a board in a bucket at an endpoint; returns its address."""

    def board_uri_at(endpoint, **storage):
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        return configured(f"s3://bucket/{next(number)}", **(storage or PATIENT)).uri

    return board_uri_at


@pytest.fixture
def at_once():
    """Call something with each of several values, all at the same time: Lance asks a store that
    fails again and again, with pauses.
    """

    def at_once(call, *values):
        with ThreadPoolExecutor(len(values[0])) as pool:
            return list(pool.map(call, *values))

    return at_once


REFUSALS = [
    (403, "InvalidAccessKeyId", "it refuses these credentials (", "Check the keys"),
    (403, "AccessDenied", "it refuses these credentials (", "they may list, read, write"),
    (403, "SignatureDoesNotMatch", "it refuses these credentials (", "Check the keys"),
    (503, "SlowDown", "it is out of order or asks to slow down (", "Try again in a while"),
    (507, "XMinioStorageFull", "there is no space left (", "Free some space"),
]


def test_a_stores_refusal_is_explained_and_quoted(
    configured, keys, at_once, board_and_lake_fail, refusing
):
    reason = f"the server's reason, with {keys[1]}"
    uris = [
        configured(
            f"s3://bucket/{code}", aws_endpoint=refusing(status, code, reason), **PATIENT
        ).uri
        for status, code, *_ in REFUSALS
    ]

    messages = at_once(board_and_lake_fail, uris)

    for uri, (board, lake), (_, code, meaning, step) in zip(uris, messages, REFUSALS, strict=True):
        assert board.startswith(f"The store of the board at {uri} failed: ")
        assert lake.startswith(f"{uri}/lake/latest.json")
        for message in (board, lake):
            assert f"{meaning}{code}: the server's reason" in message
            assert step in message


def test_requests_to_a_busy_store_are_retried_only_a_few_times(keys, monkeypatch, refusing, fails):
    monkeypatch.setenv("AWS_ENDPOINT_URL", refusing(503, "SlowDown"))
    uri = "s3://bucket/busy"
    attempts = 5
    for most, call in (
        (6 * attempts, lambda: pegboard.open(uri)),  # Lance itself asks six times
        (attempts, lambda: Lake(uri).read_json("latest.json")),
    ):
        refusing.requests.clear()
        fails(call)
        assert 0 < len(refusing.requests) <= most


def test_an_unreachable_store_is_reported(board_uri_at, board_and_lake_fail, port):
    uri = board_uri_at(f"http://127.0.0.1:{port()}")

    for message in board_and_lake_fail(uri, r"it cannot be reached \("):
        assert "Check the address, the endpoint and the network" in message


def test_a_store_that_does_not_answer_times_out(refusing, configured, keys, at_once, fails):
    uri = configured("s3://bucket/silent", aws_endpoint=refusing(None), **HASTY).uri
    calls = (
        lambda: pegboard.open(uri),
        lambda: ReleaseStore(uri).create(),
        lambda: Lake(uri).exists("a"),
    )

    at_once(fails, calls, [r"it does not answer in time \(no answer.*open_timeout"] * 3)


@pytest.mark.slow
def test_a_missing_bucket_is_reported(
    s3, keys, monkeypatch, configured, fails, board_and_lake_fail
):
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3.endpoint)
    uri = configured("s3://nosuchbucket/board", **PATIENT).uri

    board_and_lake_fail(uri, r"there is no such bucket \(NoSuchBucket: The specified bucket does")
    fails(lambda: Lake(uri).write_json("latest.json", {}), "there is no such bucket")


def test_an_unfinished_configuration_of_the_store_is_reported(configured, keys, fails):
    uri = configured("s3://bucket/unfinished", aws_secret_access_key="${NOT_SET}").uri
    mistyped = configured("s3://bucket/mistyped", aws_regio="x").uri
    worded = configured("s3://bucket/worded", client_max_retries="two").uri
    for call, match in (
        (ReleaseStore(uri).all, "aws_secret_access_key of s3://bucket/unfinished.*NOT_SET, which"),
        (lambda: Lake(uri).exists("a"), "NOT_SET, which is not set"),
        (
            lambda: Lake(mistyped).exists("a"),
            r"unknown \(.*'aws_regio' is not valid for store 'S3'\).*\[board.storage\]",
        ),
        (lambda: Lake(worded).exists("a"), "retries is 'two': expected a whole number, such as 4"),
        (
            ReleaseStore("s3://bucket/board", {"open_timeout": "soon"}).all,
            "open_timeout is 'soon': expected a number of seconds",
        ),
    ):
        fails(call, match, ConfigurationError)


@pytest.mark.slow
def test_doctor_reads_writes_and_deletes_in_the_store_and_leaves_nothing(
    configured, keys, workshop, capsys, s3
):
    bucket = s3.bucket()
    configured(f"s3://{bucket}/board", aws_endpoint=s3.endpoint)

    code = main(["doctor", "-c", str(workshop.folder / "pegboard.toml"), "--json"])

    checks = json.loads(capsys.readouterr().out)["checks"]
    (row,) = [check for check in checks if check["what"] == "board store"]
    assert (code, row["state"]) == (0, "good")
    assert row["say"] == f"s3://{bucket}/board can be read, written and deleted in; 0 tables"
    assert s3.contents(bucket) == {}


def test_googles_account_is_read_from_options_and_environment(
    tmp_path, refusing, configured, monkeypatch, at_once, fails
):
    places = ("environment", "configuration", "argument")
    for place in places:
        # A service account that needs no token, for a storage that names the place.
        fields = dict.fromkeys(("client_email", "private_key", "private_key_id"), "")
        fields["gcs_base_url"] = refusing(403, "AccessDenied", f"the one of the {place}")
        (tmp_path / place).write_text(json.dumps({**fields, "disable_oauth": True}))
    environment, configuration, argument = (str(tmp_path / place) for place in places)
    monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT", environment)
    monkeypatch.setenv("ACCOUNT", configuration)
    uris = [
        configured("gs://environment/board").uri,
        configured("gs://configuration/board", service_account="${ACCOUNT}").uri,
    ]
    given = ReleaseStore("gs://argument/board", {"google_service_account": argument})
    calls = [*(partial(pegboard.open, uri) for uri in uris), given.all]
    calls += [partial(Lake(uri).read_json, "latest.json") for uri in uris]
    matches = [
        rf"it refuses these credentials \(AccessDenied: the one of the {place}"
        for place in (*places, *places[:2])
    ]

    at_once(fails, calls, matches)


def test_missing_credentials_are_reported_with_the_variables_to_set(
    monkeypatch, board_and_lake_fail
):
    no_credentials = "there are no credentials for it .*"
    board_and_lake_fail("az://container/b", f"{no_credentials}AZURE_STORAGE_ACCOUNT_NAME")
    monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT", "/none/account.json")
    match = f"{no_credentials}/none/account.json.*GOOGLE_SERVICE_ACCOUNT"
    board_and_lake_fail("gs://bucket/board", match)
