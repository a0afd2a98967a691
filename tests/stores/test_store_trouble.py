"""A store that refuses, is busy, silent, away or not there: a clear error that ends soon, and that holds no secret."""

import json
import time
import traceback

import pytest

import pegboard
from pegboard.cli import main
from pegboard.errors import ConfigurationError, StoreError
from pegboard.releases import ReleaseStore
from tasks.lake import Lake

SOON = 60
"""Far more seconds than it takes on an idle machine, far fewer than the stores' own minutes."""


@pytest.fixture
def opened(keys, monkeypatch):
    """The error of opening a board, and that of reading its lake, at an endpoint."""

    def opened(endpoint, uri="s3://bucket/board"):
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        errors = []
        for use in (lambda: pegboard.open(uri), lambda: Lake(uri).read_json("latest.json")):
            begun = time.monotonic()
            with pytest.raises(StoreError) as error:
                use()
            assert time.monotonic() - begun < SOON
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
    for message in opened(refusing(403, code, f"What was signed: {keys[1]}")):
        assert message.startswith(
            ("The store of the board at s3://bucket/board did not", "s3://bucket/board/lake/latest.json")
        )
        assert f"it refuses these credentials ({code}" in message
        assert step in message


def test_a_store_that_is_busy_is_said(opened, refusing):
    for message in opened(refusing(503, "SlowDown", "Please reduce your request rate.")):
        assert "it is out of order or asks to slow down (SlowDown: Please reduce your request rate.)" in message


def test_a_full_store_is_said(opened, refusing):
    for message in opened(
        refusing(507, "XMinioStorageFull", "Storage backend has reached its minimum free drive threshold.")
    ):
        assert "there is no space left (XMinioStorageFull" in message


def test_a_store_that_is_away_is_said(opened, port):
    for message in opened(f"http://127.0.0.1:{port()}"):
        assert "it cannot be reached (" in message
        assert "Check the address, the endpoint and the network" in message


def test_a_silent_store_is_waited_for_only_so_long(refusing, configured, keys):
    configuration = configured("s3://bucket/silent", aws_endpoint=refusing(None), open_timeout="2", read_timeout="1s",
                               client_max_retries="1")  # fmt: skip
    for use in (
        lambda: pegboard.open(configuration.uri),
        lambda: ReleaseStore(configuration.uri).create(),
        lambda: Lake(configuration.uri).exists("a"),
    ):
        begun = time.monotonic()
        with pytest.raises(StoreError, match=r"it does not answer in time \(no answer.*open_timeout"):
            use()
        assert time.monotonic() - begun < SOON


def test_a_bucket_that_is_not_there_is_said(opened, s3):
    for message in opened(s3.endpoint, "s3://nosuchbucket/board"):
        assert "there is no such bucket (NoSuchBucket: The specified bucket does not exist)" in message
    with pytest.raises(StoreError, match="there is no such bucket"):
        Lake("s3://nosuchbucket/board").write_json("latest.json", {})


def test_an_unfinished_configuration_of_the_store_is_said(configured, keys, monkeypatch):
    configuration = configured("s3://bucket/unfinished", aws_secret_access_key="${NOT_SET}")
    for use in (lambda: ReleaseStore(configuration.uri).all(), lambda: Lake(configuration.uri).exists("a")):
        with pytest.raises(
            ConfigurationError, match=r"aws_secret_access_key of s3://bucket/unfinished.*NOT_SET, which is not set"
        ):
            use()

    configuration = configured("s3://bucket/mistyped", aws_regio="x")
    with pytest.raises(ConfigurationError, match="'aws_regio' is not valid for store 'S3'"):
        Lake(configuration.uri).exists("a")
    with pytest.raises(ConfigurationError, match="open_timeout is 'soon': expected a number of seconds"):
        ReleaseStore("s3://bucket/board", {"open_timeout": "soon"}).all()


def test_a_session_token_of_the_environment_is_never_sent_with_other_keys(configured, keys, monkeypatch, refusing):
    monkeypatch.setenv("AWS_SESSION_TOKEN", "a-token-of-the-environment")
    own = {"aws_endpoint": refusing(403, "AccessDenied"), "aws_secret_access_key": "${THE_KEY}"}
    monkeypatch.setenv("THE_KEY", "another")
    foreign = configured("s3://bucket/foreign", aws_access_key_id="${THE_KEY}", **own).uri
    for use in (lambda: ReleaseStore(foreign).all(), lambda: Lake(foreign).read_text("a")):
        with pytest.raises(ConfigurationError, match="AWS_SESSION_TOKEN in the environment belongs to others"):
            use()

    same = configured("s3://bucket/same", aws_access_key_id="${AWS_ACCESS_KEY_ID}", **own).uri
    with pytest.raises(StoreError, match="it refuses these credentials"):
        Lake(same).read_text("a")


def test_doctor_looks_whether_the_store_can_be_used(configured, s3, keys, capsys, monkeypatch, refusing, workshop):
    def doctor(uri, endpoint):
        configured(uri, aws_endpoint=endpoint)
        code = main(["doctor", "-c", str(workshop.folder / "pegboard.toml"), "--json"])
        (row,) = [row for row in json.loads(capsys.readouterr().out)["checks"] if row["what"] == "board store"]
        return code, row["state"], row["say"]

    bucket = s3.bucket()
    code, state, say = doctor(f"s3://{bucket}/board", s3.endpoint)
    assert (code, state, say) == (0, "good", f"s3://{bucket}/board can be read, written and deleted in; 0 tables")
    assert s3.contents(bucket) == {}

    code, state, say = doctor("s3://locked/board", refusing(403, "AccessDenied"))
    assert (code, state) == (1, "wrong")
    assert "it refuses these credentials" in say


def test_users_passwords_and_signatures_in_an_address_are_never_shown(keys, monkeypatch, refusing):
    password, signature = keys[1][::-1].replace("/", "-"), "deadbeef"[::-1]
    said = f"http://me:{password}@host/x?X-Amz-Signature={signature}&sig={signature}"
    monkeypatch.setenv("AWS_ENDPOINT_URL", refusing(403, "AccessDenied", said.replace("&", "&amp;")))
    uri = f"s3://me:{password}@bucket/b"
    for use in (lambda: pegboard.open(uri), lambda: Lake(uri).read_text("x")):
        with pytest.raises(StoreError) as error:
            use()
        shown = "".join(traceback.format_exception(error.value))
        assert not [secret for secret in (password, signature) if secret in shown]
