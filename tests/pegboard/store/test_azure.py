"""A board in a container of Azure's Blob Storage, which Azurite plays: Microsoft's own emulator, by
its name or by keys.
"""

import base64
import email.utils
import hashlib
import hmac
import os
import shutil
import subprocess
import sys
import urllib.request
import uuid
from pathlib import Path

import pytest

import pegboard
from pegboard.errors import BoardNotFound, StoreError
from pegboard.store.releases import ReleaseStore
from tasks.lake.files import Lake

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The account that every Azurite has, and its key, which is no secret."""
CACHE = Path(__file__).parents[3] / ".cache" / "npm"


def azurite_program() -> Path:
    """`azurite-blob`, from PEGBOARD_AZURITE or from npm; the test is skipped where there is
    neither.
    """
    if given := os.environ.get("PEGBOARD_AZURITE"):
        return Path(given)
    program = CACHE / "node_modules" / ".bin" / "azurite-blob"
    if not program.exists():
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip("there is no npm to install Azurite with, and PEGBOARD_AZURITE names none")
        CACHE.mkdir(parents=True, exist_ok=True)
        command = [
            npm,
            "install",
            "azurite@3",
            "--prefix",
            str(CACHE),
            "--no-audit",
            "--no-fund",
            "--ignore-scripts",
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240)
        if done.returncode:
            pytest.skip(f"npm could not install Azurite: {done.stderr.strip()[-300:]}")
    return program


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
    name, date = f"container-{uuid.uuid4().hex[:12]}", email.utils.formatdate(usegmt=True)
    signed = f"PUT{chr(10) * 12}x-ms-date:{date}\nx-ms-version:2021-08-06\n"
    signed += f"/{ACCOUNT}/{ACCOUNT}/{name}\nrestype:container"
    signature = base64.b64encode(
        hmac.new(base64.b64decode(KEY), signed.encode(), hashlib.sha256).digest()
    ).decode()
    headers = {
        "x-ms-date": date,
        "x-ms-version": "2021-08-06",
        "Authorization": f"SharedKey {ACCOUNT}:{signature}",
        "Content-Length": "0",
    }
    url = f"{azurite}/{ACCOUNT}/{name}?restype=container"
    urllib.request.urlopen(urllib.request.Request(url, method="PUT", headers=headers))
    return name


def publish(workshop, configuration, description):
    workshop.servers(
        {
            "git": [
                workshop.tool("create_issue", description),
                workshop.tool("merge_branch", "Merges."),
            ]
        }
    )
    return workshop.run(configuration)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["connection string", "configuration"])
def test_a_board_lives_in_a_container(workshop, configured, azurite, container, monkeypatch, how):
    uri = f"az://{container}/boards/one"
    storage = {}
    if how == "connection string":
        endpoint = f"BlobEndpoint={azurite}/{ACCOUNT};"
        connection = (
            f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};{endpoint}"
        )
        monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", connection)
    else:
        monkeypatch.setenv("THE_KEY", KEY)
        storage = {"azure_storage_account_name": ACCOUNT, "azure_storage_account_key": "${THE_KEY}"}
        storage["azure_storage_endpoint"] = f"{azurite}/{ACCOUNT}"
    configuration = configured(uri, **storage)
    with pytest.raises(BoardNotFound, match=f"There is no board at {uri}"):
        pegboard.open(uri)

    one = publish(workshop, configuration, "Opens an issue.")
    board = pegboard.open(uri, refresh=0.0)
    assert [hit.tool.name for hit in board.search("open an issue", k=1)] == ["create_issue"]
    publish(workshop, configuration, "Reports a bug.")
    assert board.search("a bug", k=1)[0].tool.description == "Reports a bug."
    assert ReleaseStore(uri).rollback().release == one.release.id
    assert board.search("a bug", k=1)[0].tool.description == "Opens an issue."


@pytest.mark.slow
def test_a_wrong_key_and_a_missing_container_are_said(azurite, container, monkeypatch):
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT)
    monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", f"{azurite}/{ACCOUNT}")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", KEY)
    for use in (
        lambda: pegboard.open("az://nosuchcontainer/b"),
        lambda: Lake("az://nosuchcontainer/b").read_json("x"),
    ):
        with pytest.raises(StoreError, match="there is no such bucket"):
            use()

    wrong = base64.b64encode(b"another key" * 6).decode()
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", wrong)
    for use in (
        lambda: pegboard.open(f"az://{container}/b"),
        lambda: Lake(f"az://{container}/b").read_json("x"),
    ):
        with pytest.raises(StoreError, match="it refuses these credentials") as error:
            use()
        assert wrong not in str(error.value)


# An own process: object_store's variable for the emulator's address is read once in a process.
WITH_EMULATOR = """
import sys
import pegboard
from pegboard.store.releases import ReleaseStore
from tasks.lake.files import Lake
uri = sys.argv[1]
ReleaseStore(uri).create()
Lake(uri).write_json("latest.json", {"a": 1})
print(ReleaseStore(uri).all(), Lake(uri).read_json("latest.json"), [*Lake(uri).walk()])
"""


@pytest.mark.slow
def test_the_emulator_is_found_by_its_usual_variables(azurite, container):
    variables = {"AZURE_STORAGE_USE_EMULATOR": "true", "AZURITE_BLOB_STORAGE_URL": azurite}
    result = subprocess.run(
        [sys.executable, "-c", WITH_EMULATOR, f"az://{container}/board"],
        capture_output=True,
        text=True,
        env={**os.environ, **variables},
    )

    assert result.stdout == "[] {'a': 1} ['latest.json']\n", result.stderr


def test_without_an_account_the_error_names_the_variables():
    for use in (
        lambda: pegboard.open("az://container/b"),
        lambda: Lake("az://container/b").read_json("x"),
    ):
        with pytest.raises(
            StoreError, match=r"there are no credentials for it .*AZURE_STORAGE_ACCOUNT_NAME"
        ):
            use()
