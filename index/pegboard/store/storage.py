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
from pegboard.text.redaction import is_secret_name, redact, remember_secrets

OPEN_TIMEOUT = "open_timeout"
"""Pegboard's own option: seconds within which a store has to answer for the first time."""

DEFAULTS = {
    "allow_http": "true",
    OPEN_TIMEOUT: "12",
    "connect_timeout": "3s",
    "read_timeout": "10s",
    "client_max_retries": "4",
    "client_retry_timeout": "20",
}
"""An endpoint with http:// is used as written. An unreachable store is reported within seconds: by
default object_store retries a silent one for three minutes, and Lance six times.
"""

_PREFIXES = {
    "s3": "aws_",
    "s3a": "aws_",
    "az": "azure_storage_",
    "abfs": "azure_storage_",
    "abfss": "azure_storage_",
    "gs": "google_",
}
_AZURE = tuple(
    f"azure_storage_{name}" for name in ("endpoint", "account_name", "account_key", "sas_key")
)
_NAMES = {
    *(f"aws_{name}" for name in ("endpoint", "region", "session_token")),
    *("aws_access_key_id", "aws_secret_access_key"),
    *_AZURE,
    *(f"google_{name}" for name in ("service_account", "service_account_key")),
    "google_application_credentials",
}
"""Options that may be given without their prefix; the stores' other names pass unchanged."""
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")

_remembered: dict[str, Mapping[str, str]] = {}


def remember_options(uri: str, options: Mapping[str, str]) -> None:
    """Use these options wherever this process opens the board at `uri`, or its lake."""
    _remembered[uri.rstrip("/")] = dict(options)


def storage_options(uri: str, given: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the options for the board at an address, in one spelling each; none for a folder.

    Raises ConfigurationError if an option refers to a variable that is not in the environment.
    """
    prefix = _PREFIXES.get(urlsplit(uri).scheme) if "://" in uri else None
    if prefix is None:
        return dict(given or {})
    options = {**_named(prefix, _of_board(uri)), **_named(prefix, given or {})}
    options = {name: _resolved(uri, name, value) for name, value in options.items()}
    if prefix == "azure_storage_":
        # Lance reads Azure's variables only once in a process.
        variables = {name: os.environ.get(name.upper()) for name in _AZURE}
        options = {**{name: value for name, value in variables.items() if value}, **options}
    if "aws_endpoint" in options and "AWS_ENDPOINT_URL_S3" in os.environ:
        # or else the variable would win over the option
        options["aws_endpoint_url_s3"] = options["aws_endpoint"]
    remember_secrets(value for name, value in options.items() if is_secret_name(name))
    return {**DEFAULTS, **options}


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


def _named(prefix: str, options: Mapping[str, str]) -> dict[str, str]:
    lower = {name.lower(): str(value) for name, value in options.items()}
    return {
        f"{prefix}{name}" if f"{prefix}{name}" in _NAMES else name: value
        for name, value in lower.items()
    }


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
