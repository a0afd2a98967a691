"""The identity provider of `[serve.auth]`: FastMCP verifies its tokens as JWTs, or gets them by
signing in (OAuth)."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from fastmcp.server.auth import AuthProvider

from pegboard.errors import ConfigurationError
from pegboard.text.secret_references import secret_of

TYPES = {"jwt": "providers.jwt:JWTVerifier", "oidc": "oidc_proxy:OIDCProxy"}
"""Short names for classes below `fastmcp.server.auth`."""


def open_identity_provider(settings: Mapping[str, Any] | None) -> AuthProvider | None:
    """Return the identity provider, which verifies tokens; None without `[serve.auth]`.

    Args:
        settings: `type`, the name of a class of FastMCP, and the arguments of the class.

    Raises:
        ConfigurationError: a variable is not set, an argument is missing or unknown, or the
            identity provider does not answer.
    """
    if settings is None:
        return None
    from fastmcp.server.auth import RemoteAuthProvider, TokenVerifier

    options = {name: _resolved(name, value) for name, value in settings.items()}
    provider_type = str(options.pop("type", "jwt"))
    module, _, name = TYPES.get(provider_type, provider_type).partition(":")
    try:
        provider: AuthProvider = getattr(import_module(f"fastmcp.server.auth.{module}"), name)(
            **options
        )
        base_url = options.get("base_url")
        issuer = options.get("issuer")
        if isinstance(provider, TokenVerifier) and base_url and issuer:
            return RemoteAuthProvider(provider, [issuer], base_url)
    except Exception as error:  # errors of FastMCP, and of its HTTP client
        raise ConfigurationError(
            f'[serve.auth] cannot be used with type = "{provider_type}": {error}. Correct it, or '
            f"see that the identity provider answers at its address."
        ) from error
    return provider


def _resolved(name: str, value: Any) -> Any:
    """Return an argument; a secret or a key is read from its `${VARIABLE}`."""
    if not name.endswith(("secret", "key")):
        return value
    try:
        return secret_of(str(value))
    except ValueError as error:
        raise ConfigurationError(f"serve.auth.{name}: {error}.") from None
