"""Redaction of secrets in every kind of message and in catalog text."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pegboard.llm import endpoint
from pegboard.store.failures import store_error
from pegboard.text.redaction import (
    is_secret_name,
    public_url,
    redact,
    redact_credentials,
    redact_line,
    redact_opaque,
    remember_secrets,
    takes_credential,
)
from pegboard.text.secret_values import SecretValues
from tasks.safety.untrusted import CREDENTIAL, flags_of_text
from tests.encodings import encodings

KEY = "sk-proj-" + "abc123DEF456ghi789JKL"
UUID = "123e4567-e89b-12d3-a456-426614174000"
PEM = (
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA1234567890abcdefghijklmnopqrstuvwxyzABC\n"
    "-----END RSA PRIVATE KEY-----"
)

CERTAIN = [
    (KEY, "SECRET"),
    ("ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a", "SECRET"),
    ("github_pat_" + "11ABCDEFG0aBcDeFgHiJkL_x", "SECRET"),
    ("glpat-" + "abcdefghij1234567890", "SECRET"),
    ("xoxb-" + "123456789012-abcdefGHIJ", "SECRET"),
    ("AKIA" + "IOSFODNN7EXAMPLE", "SECRET"),
    ("AIza" + "SyA1234567890abcdefghijklmnopqrstuv", "SECRET"),
    ("hf_" + "abcdefghijklmnopqrstuvwx12", "SECRET"),
    ("gsk_" + "abcdefghijklmnop1234567890", "SECRET"),
    ("SG." + "abcdefghijklmnop12345.abcdefghijklmnopqrstuvwxyz12", "SECRET"),
    ("key-" + "0123456789abcdef0123456789abcdef", "SECRET"),
    ("eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N", "SECRET"),
    (PEM, "SECRET"),
    ("Authorization: Bearer abc123def456ghi789", "Authorization: Bearer SECRET"),
    ("Authorization: Basic dXNlcjpwYXNzd29yZA==", "Authorization: Basic SECRET"),
    ("postgres://admin:S3cr3t!@db.example.com/x", "postgres://SECRET@db.example.com/x"),
    ("https://x.example/v1?token=a8f5f167f44f4964&x=1", "https://x.example/v1?token=SECRET&x=1"),
    ("https://x.example/b?a=2020&sig=abcdEFGH1234%3D", "https://x.example/b?a=2020&sig=SECRET"),
    ("password: hunter2", "password: SECRET"),
    ('{"password": "hunter2"}', '{"password": "SECRET"}'),
    ("api_key = 'abcd1234efgh5678'", "api_key = 'SECRET'"),
]
"""Secrets that are hidden in messages and in catalog text, with the redacted text."""

ONLY_IN_MESSAGES = [
    ("sk-ant-api03-AAAA_1111", "SECRET"),
    ("gsk_AAAA1111BBBB", "SECRET"),
    ("pplx-AAAA1111BBBB", "SECRET"),
    ("sk-proj-********abcd", "SECRET"),
    ("ya29.a0AfH6SMBx", "SECRET"),
    ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0", "SECRET"),
    ("x-api-key: 0123456789abcdef", "x-api-key: SECRET"),
    ("{'api-key': '0123456789abcdef', 'm': 1}", "{'api-key': 'SECRET', 'm': 1}"),
    ("Incorrect API key provided: 0123456789abcdef.", "Incorrect API key provided: SECRET."),
    ("Authorization: 0123456789abcdef", "Authorization: SECRET"),
    ("Authorization: Bearer abc.def", "Authorization: Bearer SECRET"),
    ("Authorization: SharedKey acct:c2ln", "Authorization: SharedKey SECRET"),
    (
        "Authorization: AWS4-HMAC-SHA256 Credential=A, Signature=x",
        "Authorization: AWS4-HMAC-SHA256 SECRET",
    ),
    ('"password": "correct-horse"', '"password": "SECRET"'),
    ("AccountName=a;AccountKey=abcd/1234+efg==;x", "AccountName=a;AccountKey=SECRET;x"),
    ("https://me@host/v1", "https://SECRET@host/v1"),
    ("https://host/?X-Amz-Signature=abc&x=1", "https://host/?X-Amz-Signature=SECRET&x=1"),
    ("http://host/?a=1&amp;sig=abc", "http://host/?a=1&amp;sig=SECRET"),
    (f"token: {UUID}", "token: SECRET"),
]

NO_SECRETS = [
    UUID,
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
    "Basic authentication",
    "max_tokens: 16384000 is too large",
    "an api key: see the docs",
    "task-management-platform-2024-edition",
]

NO_CREDENTIALS = [
    "sk-learn-model-selection",
    "postgresql://<user>:<password>@host/db",
    "postgres://user:password@localhost/db",
    "password: string",
    "password: 8-20 characters, with 1 digit",
    "The password: it must be changed",
    '"password": {"type": "string"}',
    "Bearer token for authorization",
    "Bearer <token>",
    "token: OAuth2 access token",
    "token: base64-encoded cursor",
    "token: 0xdAC17F958D2ee523a2206206994597C13D831ec7",
    f"token: {UUID}",
    "api key: sk-...",
    "api_key=YOUR_API_KEY_1",
    "https://x.example/?key=name&token={token}",
    "secret: SHA-256 hash",
    "password: $DB_PASSWORD1",
]
"""Catalog text about credentials, and values that only look like credentials."""


def llm_message(text: str) -> str:
    model = endpoint.Endpoint.__new__(endpoint.Endpoint)
    model._api_key_env = None
    return model.scrubbed(text)


def store_message(text: str) -> str:
    return str(store_error("The store", RuntimeError(text)))


MESSAGES = [redact, redact_line, llm_message, store_message]


@pytest.mark.parametrize("message", MESSAGES)
@pytest.mark.parametrize(("text", "expected"), CERTAIN + ONLY_IN_MESSAGES)
def test_every_kind_of_message_hides_the_same_secrets(message, text, expected):
    redacted = message(f"Use {text}")

    assert expected.replace("SECRET", "***") in redacted.replace("\\n", "\n")


@pytest.mark.parametrize("message", MESSAGES)
@pytest.mark.parametrize("text", NO_SECRETS)
def test_messages_keep_text_that_is_not_secret(message, text):
    assert text in message(f"Use {text}")


@pytest.mark.parametrize(("text", "expected"), CERTAIN)
def test_certain_credentials_in_catalog_text_are_replaced_and_flagged(text, expected):
    expected = expected.replace("SECRET", "[credential]")

    assert redact_credentials(f"Use {text}, and") == f"Use {expected}, and"
    assert flags_of_text(text) == {CREDENTIAL}


@pytest.mark.parametrize("text", NO_SECRETS + NO_CREDENTIALS)
def test_catalog_text_keeps_identifiers_placeholders_and_words_about_credentials(text):
    assert redact_credentials(text) == text


def test_secrets_from_the_environment_are_replaced_by_their_variables_name(monkeypatch):
    monkeypatch.setenv("A_TOKEN", "abcdefgh")
    monkeypatch.setenv("B_TOKEN", "abcdefgh-and/more")
    monkeypatch.setenv("GATEWAY", "a-quiet-one")

    assert redact("sent abcdefgh-and/more") == "sent [B_TOKEN]"
    assert redact("sent abcdefgh-and%2Fmore") == "sent [B_TOKEN]"
    assert redact("sent a-quiet-one") == "sent a-quiet-one"
    assert redact("sent a-quiet-one", variables=["GATEWAY", None]) == "sent [GATEWAY]"


SECRET = "open-Sesame/4711+käse"


@pytest.mark.parametrize("text", encodings(SECRET).values(), ids=encodings(SECRET))
def test_a_known_secret_is_found_in_every_encoding(text):
    secrets = SecretValues([SECRET])
    hidden = secrets.hide(f"It says: {text}, and goes on.")

    assert hidden.startswith("It says: ")
    assert hidden.endswith(", and goes on.")
    assert "***" in hidden
    assert text not in hidden
    assert secrets.hide_in({text: [f"a {text}", 5, None]}) != {text: [f"a {text}", 5, None]}


@pytest.mark.parametrize("word", ["password", "production", "the office", "Europe"])
def test_a_secret_that_is_a_word_is_hidden_only_literally(word):
    secrets = SecretValues([word])

    assert secrets.hide(f"a {word} b") == "a *** b"
    assert secrets.hide(f"{word[:3]} {word[3:]} {word.upper()}x")[:3] == word[:3]


@given(st.text(), st.text(min_size=8), st.text())
@example("İ" * 9, "İstanbul1", "ß")
def test_a_secret_is_hidden_in_any_text(prefix, secret, suffix):
    hidden = SecretValues([secret]).hide(f"{prefix} | {secret} | {suffix}")

    assert secret not in hidden or secret in "***"


def test_declared_and_remembered_secrets_are_hidden_unless_short():
    remember_secrets(["remembered-by-the-test", "on"])

    assert redact("on: remembered-by-the-test given", ["given", "a"]) == "on: *** ***"


def test_a_line_is_redacted_before_it_is_cut_and_has_no_control_characters(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    message = redact_line("x" * 395 + KEY + "y" * 100)

    assert len(message) == 403
    assert "sk-" not in message
    assert redact_line("\x1b[31mon\n  one \x1b[0m line") == "[31mon one [0m line"


def test_a_public_url_has_no_random_words_in_its_path():
    key = "aB3dEf6hIj9kLmN0pQr5tUv8"

    assert public_url(f"https://u:p@host/T01/{key}/a.json?x=1#y") == "https://host/T01/***/a.json"
    assert public_url(f"s3://bucket/{key}") == f"s3://bucket/{key}"


def test_uuids_and_random_words_are_hidden_in_addresses_and_arguments():
    assert redact_opaque(f"https://host/{UUID}/mcp") == "https://host/***/mcp"
    assert redact_opaque("run 9fceb02d0ae598e95dc970b7 --port 80") == "run *** --port 80"


SECRET_NAMES = ["api_key", "token", "client_secret", "AZURE_STORAGE_SAS_TOKEN", "X-Api-Key"]
SECRET_NAMES += ["connection_string", "dbPassword", "Authorization", "--api-key"]
OTHER_NAMES = ["max_tokens", "api_key_env", "aws_sse_kms_key_id", "author", "monkey"]
OTHER_NAMES += ["SSH_AUTH_SOCK"]


@pytest.mark.parametrize(
    ("name", "secret"),
    [*((name, True) for name in SECRET_NAMES), *((name, False) for name in OTHER_NAMES)],
)
def test_secret_names_are_recognised(name, secret):
    assert is_secret_name(name) is secret


def test_arguments_named_api_key_take_credentials_but_key_does_not():
    assert not takes_credential("key")
    assert takes_credential("apiKey")
    assert takes_credential("db_password")
