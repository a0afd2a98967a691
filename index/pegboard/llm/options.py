"""Provider options: further arguments of LiteLLM's `completion`, set by the user.

    options = { reasoning_effort = "low", extra_headers = { "x-api-key" = "${GATEWAY_KEY}" } }

They stand in `[enrich]` and `[serve.llm]` of a pegboard.toml, and in the `llm_options` of a reader.
What Pegboard itself sets cannot be an option. `${VARIABLE}` stands for an environment variable,
which is read at each call; a file may hold a secret in no other way.
"""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from pegboard.errors import ConfigurationError
from pegboard.text.redaction import is_secret_name, redact_credentials, remember_secrets
from pegboard.text.secret_references import REFERENCE, REFERENCE_EXPECTED, secret_of

RESERVED = {
    **dict.fromkeys(("api_base", "base_url"), "set api_base"),
    "api_key": "set api_key_env",
    "timeout": "set timeout",
    **dict.fromkeys(("num_retries", "max_retries"), "set attempts"),
    **dict.fromkeys(
        ("max_tokens", "max_completion_tokens"),
        "set max_reply_tokens under [enrich], or reply_tokens of a strategy's part",
    ),
    "response_format": "set structured under [enrich]",
    **dict.fromkeys(("model", "messages", "stream", "tools", "n"), "Pegboard sets it"),
}
"""For each name that cannot be an option, what to do instead."""


def check_options(place: str, options: Any) -> dict[str, Any]:
    """Return options that a program gave; values with the name of a secret are hidden in messages.

    Raises:
        ConfigurationError: lists every option that is reserved.
    """
    if not isinstance(options, Mapping):
        raise ConfigurationError(
            f"{place}: options is {options!r:.80}, expected a table of LiteLLM's arguments."
        )
    checked = {str(name): value for name, value in cast("Mapping[Any, Any]", options).items()}
    if problems := _reserved_problems(checked):
        raise ConfigurationError.from_problems(f"The options of {place}", problems)
    remember_secrets(
        text for name, text in _texts(checked) if is_secret_name(name) and not _references(text)
    )
    return checked


def resolve_options(value: Any) -> Any:
    """Return options with the value of each `${VARIABLE}` in them.

    Raises:
        ValueError: a variable is not set.
    """
    if isinstance(value, str):
        return REFERENCE.sub(lambda match: secret_of(match[0]), value)
    if isinstance(value, Mapping):
        items = cast("Mapping[str, Any]", value).items()
        return {name: resolve_options(item) for name, item in items}
    if isinstance(value, list):
        return [resolve_options(item) for item in cast("list[Any]", value)]
    return value


def check_file_options(options: dict[str, Any]) -> dict[str, Any]:
    """Return options that stand in a file, where a secret may only be a reference.

    Raises:
        ValueError: lists every option that is reserved or holds a secret.
    """
    problems = _reserved_problems(options)
    problems += [
        f"{name}: {REFERENCE_EXPECTED}" for name, text in _texts(options) if _is_secret(name, text)
    ]
    if problems:
        raise ValueError("; ".join(problems))
    return options


def _reserved_problems(options: Mapping[str, Any]) -> list[str]:
    body = options.get("extra_body")
    names = [*options, *(cast("Mapping[str, Any]", body) if isinstance(body, Mapping) else ())]
    return [f"{name}: not an option; {RESERVED[name]}" for name in names if name in RESERVED]


def _is_secret(name: str, text: str) -> bool:
    if _references(text):
        return False
    return is_secret_name(name) or redact_credentials(text) != text


def _references(text: str) -> bool:
    return REFERENCE.search(text) is not None


def _texts(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield every text in the options with the name nearest above it."""
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, Mapping):
        for key, item in cast("Mapping[Any, Any]", value).items():
            yield from _texts(item, str(key))
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _texts(item, name)
