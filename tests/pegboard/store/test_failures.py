"""A store that refuses, is busy, silent, away or not there: a clear error after few attempts, and
no secret in it.

A call that did not give up would hang: pytest-timeout is the guard, and no test measures seconds.
"""

import json
import traceback

import pytest

import pegboard
from pegboard.cli.main import main
from pegboard.errors import ConfigurationError, StoreError
from pegboard.store.releases import ReleaseStore
from tasks.lake.files import Lake

PATIENT = {"open_timeout": "500", "read_timeout": "500s", "client_max_retries": "1"}
"""However slow this machine is, it is the store's answer that ends a call."""


@pytest.fixture
def opened(keys, monkeypatch, configured):
    """The error of opening a board, unless told not to, and that of reading its lake, at an
    endpoint.
    """

    def opened(endpoint, uri="s3://bucket/board", board=True):
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        configured(uri, **PATIENT)
        errors = []
        uses = (lambda: pegboard.open(uri), lambda: Lake(uri).read_json("latest.json"))
        for use in uses if board else uses[1:]:
            with pytest.raises(StoreError) as error:
                use()
            shown = "".join(traceback.format_exception(error.value))
            assert not [secret for secret in keys if secret in shown]
            errors.append(str(error.value))
        return errors

    return opened


@pytest.mark.parametrize(
    ("code", "step"),
    [
        ("InvalidAccessKeyId", "Check the keys"),
        ("AccessDenied", "they may list, read, write and delete"),
        ("SignatureDoesNotMatch", "Check the keys"),
    ],
)
def test_refused_credentials_are_said(opened, refusing, keys, code, step):
    for message in opened(
        refusing(403, code, f"What was signed: {keys[1]}"), board=code == "AccessDenied"
    ):
        assert message.startswith(
            (
                "The store of the board at s3://bucket/board did not",
                "s3://bucket/board/lake/latest.json",
            )
        )
        assert f"it refuses these credentials ({code}" in message
        assert step in message


def test_a_store_that_is_busy_is_said(opened, refusing):
    for message in opened(refusing(503, "SlowDown", "Please reduce your request rate.")):
        assert (
            "it is out of order or asks to slow down (SlowDown: Please reduce your request rate.)"
            in message
        )


def test_by_default_a_store_that_is_busy_is_asked_a_few_times_only(keys, monkeypatch, refusing):
    monkeypatch.setenv("AWS_ENDPOINT_URL", refusing(503, "SlowDown"))
    uri, attempts = "s3://bucket/busy", 5
    for most, use in (
        (6 * attempts, lambda: pegboard.open(uri)),  # Lance itself asks six times
        (attempts, lambda: Lake(uri).read_json("latest.json")),
    ):
        refusing.requests.clear()
        with pytest.raises(StoreError):
            use()
        assert 0 < len(refusing.requests) <= most


def test_a_full_store_is_said(opened, refusing):
    for message in opened(
        refusing(
            507,
            "XMinioStorageFull",
            "Storage backend has reached its minimum free drive threshold.",
        )
    ):
        assert "there is no space left (XMinioStorageFull" in message


def test_a_store_that_is_away_is_said(opened, port):
    for message in opened(f"http://127.0.0.1:{port()}"):
        assert "it cannot be reached (" in message
        assert "Check the address, the endpoint and the network" in message


def test_a_silent_store_is_waited_for_only_so_long(refusing, configured, keys):
    configuration = configured(
        "s3://bucket/silent",
        aws_endpoint=refusing(None),
        open_timeout="0.5",
        read_timeout="1s",
        client_max_retries="1",
    )
    for use in (
        lambda: pegboard.open(configuration.uri),
        lambda: ReleaseStore(configuration.uri).create(),
        lambda: Lake(configuration.uri).exists("a"),
    ):
        with pytest.raises(
            StoreError, match=r"it does not answer in time \(no answer.*open_timeout"
        ):
            use()


@pytest.mark.slow
def test_a_bucket_that_is_not_there_is_said(opened, s3):
    for message in opened(s3.endpoint, "s3://nosuchbucket/board"):
        assert (
            "there is no such bucket (NoSuchBucket: The specified bucket does not exist)" in message
        )
    with pytest.raises(StoreError, match="there is no such bucket"):
        Lake("s3://nosuchbucket/board").write_json("latest.json", {})


def test_an_unfinished_configuration_of_the_store_is_said(configured, keys, monkeypatch):
    configuration = configured("s3://bucket/unfinished", aws_secret_access_key="${NOT_SET}")
    for use in (
        lambda: ReleaseStore(configuration.uri).all(),
        lambda: Lake(configuration.uri).exists("a"),
    ):
        with pytest.raises(
            ConfigurationError,
            match=r"aws_secret_access_key of s3://bucket/unfinished.*NOT_SET, which is not set",
        ):
            use()

    configuration = configured("s3://bucket/mistyped", aws_regio="x")
    with pytest.raises(ConfigurationError, match="'aws_regio' is not valid for store 'S3'"):
        Lake(configuration.uri).exists("a")
    with pytest.raises(
        ConfigurationError, match="open_timeout is 'soon': expected a number of seconds"
    ):
        ReleaseStore("s3://bucket/board", {"open_timeout": "soon"}).all()


def test_a_session_token_of_the_environment_is_never_sent_with_other_keys(
    configured, keys, monkeypatch, refusing
):
    monkeypatch.setenv("AWS_SESSION_TOKEN", "a-token-of-the-environment")
    own = {"aws_endpoint": refusing(403, "AccessDenied"), "aws_secret_access_key": "${THE_KEY}"}
    monkeypatch.setenv("THE_KEY", "another")
    foreign = configured("s3://bucket/foreign", aws_access_key_id="${THE_KEY}", **own).uri
    for use in (lambda: ReleaseStore(foreign).all(), lambda: Lake(foreign).read_text("a")):
        with pytest.raises(
            ConfigurationError, match="AWS_SESSION_TOKEN in the environment belongs to others"
        ):
            use()

    same = configured("s3://bucket/same", aws_access_key_id="${AWS_ACCESS_KEY_ID}", **own).uri
    with pytest.raises(StoreError, match="it refuses these credentials"):
        Lake(same).read_text("a")


@pytest.fixture
def doctor(configured, keys, workshop, capsys):
    """The exit code of the doctor, and the state of the board's store and what it says of it."""

    def doctor(uri, endpoint):
        configured(uri, aws_endpoint=endpoint)
        code = main(["doctor", "-c", str(workshop.folder / "pegboard.toml"), "--json"])
        (row,) = [
            row
            for row in json.loads(capsys.readouterr().out)["checks"]
            if row["what"] == "board store"
        ]
        return code, row["state"], row["say"]

    return doctor


@pytest.mark.slow
def test_doctor_reads_writes_and_deletes_in_the_store_and_leaves_nothing(doctor, s3):
    bucket = s3.bucket()
    code, state, say = doctor(f"s3://{bucket}/board", s3.endpoint)
    assert (code, state, say) == (
        0,
        "good",
        f"s3://{bucket}/board can be read, written and deleted in; 0 tables",
    )
    assert s3.contents(bucket) == {}


def test_doctor_finds_a_store_that_refuses(doctor, refusing):
    code, state, say = doctor("s3://locked/board", refusing(403, "AccessDenied"))
    assert (code, state) == (1, "wrong")
    assert "it refuses these credentials" in say


def test_users_passwords_and_signatures_in_an_address_are_never_shown(keys, monkeypatch, refusing):
    password, signature = keys[1][::-1].replace("/", "-"), "deadbeef"[::-1]
    said = f"http://me:{password}@host/x?X-Amz-Signature={signature}&sig={signature}"
    monkeypatch.setenv(
        "AWS_ENDPOINT_URL", refusing(403, "AccessDenied", said.replace("&", "&amp;"))
    )
    uri = f"s3://me:{password}@bucket/b"
    for use in (lambda: pegboard.open(uri), lambda: Lake(uri).read_text("x")):
        with pytest.raises(StoreError) as error:
            use()
        shown = "".join(traceback.format_exception(error.value))
        assert not [secret for secret in (password, signature) if secret in shown]
