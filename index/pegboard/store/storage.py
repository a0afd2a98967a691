"""Storage options: what a store needs beside the board's address, such as an endpoint, keys and
timeouts.

They come from three places, the first of which wins: the caller; `[board.storage]` of the
pegboard.toml that this process read; the environment, by the names that AWS, Azure and Google use.
Their keys are those of Rust's object_store, which tables and lake are read through. Values may be
references such as `${MINIO_SECRET}`, resolved from the environment when they are used, so that no
secret is in a file."""

import os
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from pegboard.errors import ConfigurationError
from pegboard.redaction import is_secret_name, redact, remember_secrets

OPEN_TIMEOUT = "open_timeout"
"""Pegboard's own option: seconds within which a store has to answer for the first time."""

DEFAULTS = {
    OPEN_TIMEOUT: "12",
    "connect_timeout": "3s",
    "read_timeout": "10s",
    "client_max_retries": "4",
    "client_retry_timeout": "20",
}
"""An unreachable store is reported within seconds. By default object_store retries a silent one for
three minutes, and Lance six times.
"""

_KINDS = {
    "s3": "aws",
    "s3a": "aws",
    "az": "azure",
    "abfs": "azure",
    "abfss": "azure",
    "gs": "google",
}
_NAMES = {
    "aws": {
        "aws_endpoint": ("endpoint", "endpoint_url", "aws_endpoint_url", "aws_endpoint_url_s3"),
        "aws_region": ("region", "default_region", "aws_default_region"),
        "aws_access_key_id": ("access_key_id",),
        "aws_secret_access_key": ("secret_access_key",),
        "aws_session_token": ("session_token", "token", "aws_token"),
    },
    "azure": {
        "azure_storage_endpoint": ("endpoint", "azure_endpoint"),
        "azure_storage_account_name": ("account_name",),
        "azure_storage_account_key": (
            "account_key",
            "access_key",
            "azure_storage_access_key",
            "azure_storage_master_key",
        ),
        "azure_storage_sas_key": ("sas_key", "sas_token", "azure_storage_sas_token"),
        "azure_storage_connection_string": ("connection_string",),
        "azure_storage_use_emulator": ("use_emulator", "object_store_use_emulator"),
    },
    "google": {
        "google_service_account": (
            "service_account",
            "service_account_path",
            "google_service_account_path",
        ),
        "google_service_account_key": ("service_account_key",),
        "google_application_credentials": ("application_credentials",),
    },
}
"""The names under which options travel, and other spellings of them that the stores take."""

_ENDPOINTS = (
    "AWS_ENDPOINT_URL_S3",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT",
    "AZURE_STORAGE_ENDPOINT",
    "AZURE_ENDPOINT",
)
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")

_remembered: dict[str, Mapping[str, str]] = {}


def remember_options(uri: str, options: Mapping[str, str]) -> None:
    """Use these options wherever this process opens the board at `uri`, or its lake."""
    _remembered[uri.rstrip("/")] = dict(options)


def storage_options(uri: str, given: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the options for the board at an address, in one spelling each; none for a folder.

    Raises ConfigurationError if an option refers to a variable that is not in the environment.
    """
    kind = _KINDS.get(urlsplit(uri).scheme) if "://" in uri else None
    if kind is None:
        return dict(given or {})
    options = {**_named(kind, _of_board(uri)), **_named(kind, given or {})}
    options = {name: _resolved(uri, name, value) for name, value in options.items()}
    if kind == "azure":
        options = _azure(options)
    if kind == "aws" and "aws_endpoint" in options and "AWS_ENDPOINT_URL_S3" in os.environ:
        options["aws_endpoint_url_s3"] = options[
            "aws_endpoint"
        ]  # or else the variable would win over the option
    if kind == "aws":
        _refuse_foreign_token(uri, options)
    remember_secrets(value for name, value in options.items() if is_secret_name(name))
    return {**DEFAULTS, **_plain_http(kind, options), **options}


def _of_board(uri: str) -> Mapping[str, str]:
    """Return the options remembered for the address or the nearest one above it: the lake is below
    its board.
    """
    place = uri.rstrip("/")
    while place.count("/") >= 2:
        if place in _remembered:
            return _remembered[place]
        place = place.rpartition("/")[0]
    return {}


def _named(kind: str, options: Mapping[str, str]) -> dict[str, str]:
    spelling = {other: name for name, others in _NAMES[kind].items() for other in others}
    return {spelling.get(name.lower(), name.lower()): str(value) for name, value in options.items()}


def _resolved(uri: str, name: str, value: str) -> str:
    def variable(match: re.Match[str]) -> str:
        if match[1] not in os.environ:
            raise ConfigurationError(
                f"The storage option {name} of {redact(uri)} refers to the environment "
                f"variable {match[1]}, "
                f"which is not set. Set {match[1]}, or correct [board.storage]."
            )
        return os.environ[match[1]]

    return _REFERENCE.sub(variable, value)


def _refuse_foreign_token(uri: str, options: Mapping[str, str]) -> None:
    """Refuse keys other than the environment's beside AWS_SESSION_TOKEN, which the stores would add
    to them.
    """
    key = options.get("aws_access_key_id")
    foreign = key is not None and key != os.environ.get("AWS_ACCESS_KEY_ID")
    if foreign and "aws_session_token" not in options and os.environ.get("AWS_SESSION_TOKEN"):
        raise ConfigurationError(
            f"{redact(uri)} has keys of its own, but AWS_SESSION_TOKEN in the "
            f"environment belongs to others, and would "
            "be sent with them. Unset AWS_SESSION_TOKEN, or give aws_session_token beside the keys."
        )


def _plain_http(kind: str, options: Mapping[str, str]) -> dict[str, str]:
    """Allow plain HTTP where the endpoint begins with http://."""
    variables = [
        os.environ[name]
        for name in _ENDPOINTS
        if name.lower().startswith(kind) and os.environ.get(name)
    ]
    endpoint = (
        options.get("aws_endpoint")
        or options.get("azure_storage_endpoint")
        or next(iter(variables), "")
    )
    return {"allow_http": "true"} if endpoint.lower().startswith("http://") else {}


def _azure(options: dict[str, str]) -> dict[str, str]:
    """Add the environment's options, split a connection string and name the emulator's account.

    Lance reads Azure's variables only once in a process, and neither store does the others."""
    environment = {
        name: os.environ[name.upper()] for name in _NAMES["azure"] if os.environ.get(name.upper())
    }
    options = {**environment, **options}
    if connection := options.pop("azure_storage_connection_string", None):
        options = {**_connection(connection), **options}
    if options.get("azure_storage_use_emulator", "").lower() in ("true", "1"):
        options.setdefault("azure_storage_account_name", "devstoreaccount1")
    return options


def _connection(text: str) -> dict[str, str]:
    parts = {
        name.lower(): value
        for name, _, value in (part.partition("=") for part in text.split(";"))
        if value
    }
    if parts.get("usedevelopmentstorage", "").lower() == "true":
        return {"azure_storage_use_emulator": "true"}
    account, suffix = parts.get("accountname", ""), parts.get("endpointsuffix", "")
    endpoint = parts.get("blobendpoint", "")
    if not endpoint and suffix not in ("", "core.windows.net"):
        endpoint = f"{parts.get('defaultendpointsprotocol', 'https')}://{account}.blob.{suffix}"
    options = {
        "azure_storage_account_name": account,
        "azure_storage_account_key": parts.get("accountkey", ""),
        "azure_storage_sas_key": parts.get("sharedaccesssignature", ""),
        "azure_storage_endpoint": endpoint.rstrip("/"),
    }
    return {name: value for name, value in options.items() if value}
