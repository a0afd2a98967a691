"""A board in a container of Azure's Blob Storage, which Azurite plays, Microsoft's own emulator."""

import base64
import email.utils
import hashlib
import hmac
import os
import urllib.request
import uuid
from pathlib import Path

import pytest

import pegboard
from pegboard.errors import BoardNotFound
from pegboard.store.releases import ReleaseStore
from tests.npm import node_modules

pytestmark = pytest.mark.slow  # needs the emulator

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The account that every Azurite has, and its key, which is no secret."""


def azurite_program() -> Path:
    """`azurite-blob`, from PEGBOARD_AZURITE or from npm; skips the test without either."""
    if program := os.environ.get("PEGBOARD_AZURITE"):
        return Path(program)
    return node_modules("azurite@3", "--ignore-scripts") / ".bin" / "azurite-blob"


@pytest.fixture(scope="session")
def azurite(tmp_path_factory, server, port):
    """The address of an Azurite that keeps everything in memory."""
    number = port()
    command = [str(azurite_program()), "--blobHost", "127.0.0.1", "--blobPort", str(number)]
    command += ["--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry"]
    process = server(command, number, tmp_path_factory.mktemp("azurite") / "log")
    yield f"http://127.0.0.1:{number}"
    process.kill()
    process.wait()


@pytest.fixture
def container(azurite):
    name = f"container-{uuid.uuid4().hex[:12]}"
    date = email.utils.formatdate(usegmt=True)
    text = f"PUT{chr(10) * 12}x-ms-date:{date}\nx-ms-version:2021-08-06\n"
    text += f"/{ACCOUNT}/{ACCOUNT}/{name}\nrestype:container"
    signed = hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()
    headers = {
        "x-ms-date": date,
        "x-ms-version": "2021-08-06",
        "Authorization": f"SharedKey {ACCOUNT}:{base64.b64encode(signed).decode()}",
        "Content-Length": "0",
    }
    url = f"{azurite}/{ACCOUNT}/{name}?restype=container"
    urllib.request.urlopen(urllib.request.Request(url, method="PUT", headers=headers))
    return name


def publish(workshop, configuration, description):
    tool = workshop.tool("create_issue", description)
    workshop.servers({"git": [tool, workshop.tool("merge_branch", "Merges.")]})
    return workshop.run(configuration)


@pytest.mark.parametrize("place", ["environment", "configuration"])
def test_a_board_is_built_and_searched_in_a_container(
    workshop, configured, azurite, container, monkeypatch, place
):
    uri = f"az://{container}/boards/one"
    storage = {}
    if place == "environment":
        monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT)
        monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", KEY)
        monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", f"{azurite}/{ACCOUNT}")
    else:
        monkeypatch.setenv("THE_KEY", KEY)
        storage = {"account_name": ACCOUNT, "azure_storage_account_key": "${THE_KEY}"}
        storage["azure_storage_endpoint"] = f"{azurite}/{ACCOUNT}"
    configuration = configured(uri, **storage)
    with pytest.raises(BoardNotFound, match=f"There is no board at {uri}"):
        pegboard.open(uri)

    first = publish(workshop, configuration, "Opens an issue.")
    board = pegboard.open(uri, refresh=0.0)
    assert [hit.tool.name for hit in board.search("open an issue", k=1)] == ["create_issue"]
    publish(workshop, configuration, "Reports a bug.")
    assert board.search("a bug", k=1)[0].tool.description == "Reports a bug."
    assert ReleaseStore(uri).rollback().release == first.release.id
    assert board.search("a bug", k=1)[0].tool.description == "Opens an issue."


def test_a_wrong_key_and_a_missing_container_are_reported(
    azurite, container, monkeypatch, board_and_lake_fail
):
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT)
    monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", f"{azurite}/{ACCOUNT}")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", KEY)
    board_and_lake_fail("az://nosuchcontainer/b", "there is no such bucket")
    wrong = base64.b64encode(b"another key" * 6).decode()
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", wrong)
    for message in board_and_lake_fail(f"az://{container}/b", "it refuses these credentials"):
        assert wrong not in message
