"""Storage options of an object store, such as an endpoint, keys and timeouts.

They come from three sources, in order of precedence: the caller; `[board.storage]` of the
pegboard.toml that this process read; the environment variables of AWS, Azure and Google. Their keys
are those of Rust's object_store, which reads tables and lake. Values may be references such as
`${MINIO_SECRET}`, which are resolved from the environment at use, so that files need no secrets."""

import os
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from pegboard.errors import ConfigurationError
from pegboard.text.redaction import is_secret_name, redact, remember_secrets

OPEN_TIMEOUT = "open_timeout"
"""Pegboard's own option: the timeout in seconds for a store's first response."""

DEFAULTS = {
    "allow_http": "true",
    OPEN_TIMEOUT: "12",
    "connect_timeout": "3s",
    "read_timeout": "10s",
    "client_max_retries": "4",
    "client_retry_timeout": "20",
}
"""Options unless set otherwise. An endpoint with http:// is accepted, and an unreachable store is
reported within seconds: by default object_store retries for three minutes, and Lance six times.
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
"""Options that are also accepted without their prefix; other options are passed unchanged."""
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")

_remembered: dict[str, Mapping[str, str]] = {}


def remember_options(uri: str, options: Mapping[str, str]) -> None:
    """Use these options whenever this process opens the board at `uri`, or its lake."""
    _remembered[uri.rstrip("/")] = dict(options)


def storage_options(uri: str, explicit_options: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the options for the board at an address under their full names; none for a folder.

    Raises ConfigurationError if an option refers to a variable that is not in the environment.
    """
    prefix = _PREFIXES.get(urlsplit(uri).scheme) if "://" in uri else None
    if prefix is None:
        return dict(explicit_options or {})
    options = {
        **_with_prefix(prefix, _configured(uri)),
        **_with_prefix(prefix, explicit_options or {}),
    }
    options = {name: _resolved(uri, name, value) for name, value in options.items()}
    if prefix == "azure_storage_":
        # Lance reads Azure's variables only once in a process.
        variables = {name: os.environ.get(name.upper()) for name in _AZURE}
        options = {**{name: value for name, value in variables.items() if value}, **options}
    if "aws_endpoint" in options and "AWS_ENDPOINT_URL_S3" in os.environ:
        # Otherwise the variable would take precedence over the option.
        options["aws_endpoint_url_s3"] = options["aws_endpoint"]
    remember_secrets(value for name, value in options.items() if is_secret_name(name))
    return {**DEFAULTS, **options}


def _configured(uri: str) -> Mapping[str, str]:
    """Return the options remembered for the address or its nearest parent, since the lake is below
    its board.
    """
    place = uri.rstrip("/")
    while place.count("/") >= 2:
        if place in _remembered:
            return _remembered[place]
        place = place.rpartition("/")[0]
    return {}


def _with_prefix(prefix: str, options: Mapping[str, str]) -> dict[str, str]:
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
