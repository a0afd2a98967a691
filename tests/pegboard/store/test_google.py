"""gs:// without Google: a server on this machine stands where the storage would, and its refusals
have to be understood.

Nothing here shows that a board lives there; the tables and the lake go through the same two
libraries as for S3 and Azure."""

import json

import pytest

import pegboard
from pegboard.errors import StoreError
from pegboard.store.releases import ReleaseStore
from tasks.lake.files import Lake

URI = "gs://bucket/board"


@pytest.fixture
def account(tmp_path):
    """The file of a service account that needs no token, for a storage at an address."""

    def account(endpoint):
        path = tmp_path / "account.json"
        fields = {
            "gcs_base_url": endpoint,
            "disable_oauth": True,
            "client_email": "",
            "private_key": "",
            "private_key_id": "",
        }
        path.write_text(json.dumps(fields))
        return str(path)

    return account


@pytest.mark.parametrize("how", ["environment", "configuration", "argument"])
def test_the_account_is_found_wherever_it_was_named(
    account, refusing, configured, monkeypatch, how
):
    file = account(refusing(403, "AccessDenied", "this server refuses"))
    uri, given = f"gs://{how}/board", None
    if how == "environment":
        monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT", file)
        configured(uri, allow_http="true")
    elif how == "configuration":
        monkeypatch.setenv("THE_ACCOUNT", file)
        configured(uri, service_account="${THE_ACCOUNT}", allow_http="true")
    else:
        given = {"google_service_account": file, "allow_http": "true"}
    uses = [lambda: ReleaseStore(uri, given).all(), lambda: Lake(uri).read_json("x")]

    for use in uses[:1] if how == "argument" else uses:
        with pytest.raises(
            StoreError, match=r"it refuses these credentials \(AccessDenied: this server refuses\)"
        ):
            use()


def test_a_file_of_credentials_that_is_not_there_is_said(monkeypatch):
    monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT", "/none/account.json")
    for use in (lambda: pegboard.open(URI), lambda: Lake(URI).read_json("x")):
        with pytest.raises(
            StoreError,
            match=r"there are no credentials for it .*/none/account.json.*GOOGLE_SERVICE_ACCOUNT",
        ):
            use()


def test_without_credentials_a_silent_address_is_given_up_and_the_error_says_why(
    monkeypatch, refusing, tmp_path, configured
):
    # Google's own machines are asked for a token; elsewhere nobody answers at that address, or does
    # so much too late.
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GCE_METADATA_HOST", refusing(None).removeprefix("http://"))
    uri = "gs://without/board"
    configured(uri, open_timeout="0.5", read_timeout="1s", client_retry_timeout="2")
    for use in (lambda: pegboard.open(uri), lambda: Lake(uri).read_json("x")):
        with pytest.raises(StoreError, match=r"credentials|does not answer in time"):
            use()
