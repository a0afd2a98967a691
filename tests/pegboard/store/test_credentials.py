"""Credentials of an object store that are renewed while a board is open."""

import asyncio
import logging

import httpx
import pytest

import pegboard
from pegboard.errors import BoardNotFound, StoreError
from pegboard.serve.gateway import Gateway
from pegboard.serve.http.app import create_app
from pegboard.serve.settings import GatewaySettings
from pegboard.store.database import missing_tables
from pegboard.store.storage import remember_options
from tests.s3_folder import serve_folder

OLD = "AKIAOLDOLDOLDOLDOLD1"
NEW = "AKIANEWNEWNEWNEWNEW1"
TOKEN = "FwoGZXIvYXdzEBYaDoldsessiontoken"
URI = "s3://bucket/board"
REFUSED = r"The store of the board at s3://bucket/board failed: it refuses these credentials"


def secret(key):
    """Return the secret of an access key."""
    return f"s3cr3t/of+{key[4:7]}"


@pytest.fixture
def bucket(two_releases, monkeypatch):
    """An S3 bucket with a board of two releases, the first live; `OLD` may read it."""
    workshop, _, _ = two_releases
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    with serve_folder(workshop.folder) as bucket:
        monkeypatch.setenv("AWS_ENDPOINT_URL", bucket.endpoint)
        bucket.accepted = {OLD}
        yield bucket


@pytest.fixture
def set_key(monkeypatch):
    """A function: sets the access key in the environment."""

    def set_key(key):
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", key)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret(key))
        monkeypatch.setenv("AWS_SESSION_TOKEN", TOKEN)

    set_key(OLD)
    return set_key


@pytest.fixture(
    params=["environment", *(pytest.param(p, marks=pytest.mark.slow) for p in ("profile", "chain"))]
)
def renewal(request, bucket, monkeypatch, tmp_path):
    """A function: sets the access key in one of the places where LanceDB finds it."""
    if request.param == "environment":
        return request.getfixturevalue("set_key")
    profile = tmp_path / "credentials"
    if request.param == "profile":
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(profile))
        return lambda key: profile.write_text(
            f"[default]\naws_access_key_id = {key}\naws_secret_access_key = {secret(key)}\n"
        )
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{bucket.endpoint}/credentials")
    return lambda key: setattr(bucket, "issued", key)


@pytest.mark.parametrize("rows", [50_000, pytest.param(0, marks=pytest.mark.slow)])
def test_an_open_reader_uses_renewed_credentials_at_its_next_look(
    two_releases, bucket, renewal, rows
):
    workshop, first, second = two_releases
    renewal(OLD)
    reader = pegboard.open(URI, refresh=0, in_memory_rows=rows)
    assert reader.search("task")[0].release == first.id
    assert bucket.refused == []
    workshop.store.promote(second.id)

    bucket.accepted = {NEW}
    renewal(NEW)

    assert reader.search("task")[0].release == second.id
    assert reader.status().error is None
    assert set(bucket.refused) == {OLD}


def test_tables_that_are_loaded_lazily_are_read_with_renewed_credentials(
    two_releases, bucket, set_key
):
    _, first, _ = two_releases
    pinned = pegboard.open(URI, release=first.id, in_memory_rows=0)
    searched = pegboard.open(URI, release=first.id, in_memory_rows=0)
    assert searched.search("old")[0].release == first.id

    bucket.accepted = {NEW}
    set_key(NEW)

    for reader in (pinned, searched):
        assert reader.search("old")[0].release == first.id
        assert len(reader.list_tools()) == 12
    assert set(bucket.refused) == {OLD}


def test_a_reader_answers_from_its_release_until_its_credentials_are_renewed(
    two_releases, bucket, set_key, caplog
):
    workshop, first, second = two_releases
    reader = pegboard.open(URI, refresh=0)
    assert reader.search("task")[0].release == first.id
    workshop.store.promote(second.id)
    bucket.accepted = {NEW}

    assert reader.search("task")[0].release == first.id
    error = str(reader.status().error)
    assert REFUSED in error
    assert "open readers and gateways use renewed ones at their next look" in error
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert error in caplog.text

    set_key(NEW)
    until_current(reader)
    assert reader.search("task")[0].release == second.id
    assert not [text for text in (OLD, NEW, TOKEN, secret(OLD)) if text in caplog.text]


def until_current(reader):
    """Search until a look at the channel succeeds; one that follows a failure may outlast the call
    that began it.
    """
    while reader.status().error is not None:
        reader.search("task")


@pytest.mark.parametrize(
    "kind",
    ["reference", *(pytest.param(p, marks=pytest.mark.slow) for p in ("changed", "remembered"))],
)
def test_storage_options_are_read_again_when_credentials_are_refused(bucket, monkeypatch, kind):
    options = {"aws_access_key_id": OLD, "aws_secret_access_key": secret(OLD)}
    references = {"aws_access_key_id": "${STORE_KEY}", "aws_secret_access_key": "${STORE_SECRET}"}
    monkeypatch.setenv("STORE_KEY", OLD)
    monkeypatch.setenv("STORE_SECRET", secret(OLD))
    if kind == "remembered":
        monkeypatch.setattr("pegboard.store.storage._remembered", {})
        remember_options(URI, options)
    chosen = {"reference": references, "changed": options, "remembered": None}[kind]
    reader = pegboard.open(URI, refresh=0, storage_options=chosen)
    assert reader.search("task")

    bucket.accepted = {NEW}
    monkeypatch.setenv("STORE_KEY", NEW)
    monkeypatch.setenv("STORE_SECRET", secret(NEW))
    options["aws_access_key_id"] = NEW
    if kind == "remembered":
        remember_options(URI, options)

    assert reader.search("task")
    assert reader.status().error is None
    assert set(bucket.refused) == {OLD}


def test_refused_credentials_are_not_taken_for_a_missing_table(monkeypatch):
    monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)
    answer = (
        "Server returned non-2xx status code: 403 Forbidden: <Error><Code>InvalidAccessKeyId</Code>"
        "<Message>The AWS Access Key Id you provided does not exist in our records.</Message>"
        f"<AWSAccessKeyId>{OLD}</AWSAccessKeyId><Token-0>{TOKEN}</Token-0></Error>"
    )

    with pytest.raises(StoreError, match=REFUSED) as refused, missing_tables(URI, "tools", None):
        raise ValueError(answer)

    assert not isinstance(refused.value, BoardNotFound)
    shown = f"{refused.value} {refused.value.__cause__}"
    assert not [text for text in (OLD, TOKEN) if text in shown]


@pytest.mark.slow
def test_an_async_board_uses_renewed_credentials(two_releases, bucket, set_key):
    workshop, first, second = two_releases

    async def releases():
        async with await pegboard.open_async(URI, refresh=0) as board:
            yield (await board.search("task"))[0].release
            workshop.store.promote(second.id)
            bucket.accepted = {NEW}
            set_key(NEW)
            yield (await board.search("task"))[0].release

    async def listed():
        return [release async for release in releases()]

    assert asyncio.run(listed()) == [first.id, second.id]


@pytest.mark.slow
def test_a_gateway_is_stale_until_its_credentials_are_renewed(two_releases, bucket, set_key):
    workshop, first, second = two_releases

    async def answers():
        gateway = Gateway(GatewaySettings(), pegboard.open(URI, refresh=0))
        transport = httpx.ASGITransport(create_app(gateway))
        async with httpx.AsyncClient(
            transport=transport, base_url="http://127.0.0.1:8720"
        ) as client:

            async def look():
                found = await client.post("/v1/find", json={"query": "task"})
                health = (await client.get("/healthz")).json()
                return found.status_code, health["status"], health["release"]

            yield await look()
            workshop.store.promote(second.id)
            bucket.accepted = {NEW}
            yield await look()
            set_key(NEW)
            answer = await look()
            while answer[1] == "stale":
                answer = await look()
            yield answer
        await gateway.close()

    async def listed():
        return [answer async for answer in answers()]

    assert asyncio.run(listed()) == [
        (200, "ok", first.id),
        (200, "stale", first.id),
        (200, "ok", second.id),
    ]
