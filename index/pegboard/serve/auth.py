"""Tokens of an identity provider, by FastMCP: verified as JWTs, or got by signing in (OAuth)."""

import os
from typing import Any

from fastmcp.server.auth import AuthProvider

from pegboard.errors import ConfigurationError
from pegboard.redaction import remember_secrets
from pegboard.serve.settings import AuthSettings


def open_auth(settings: AuthSettings | None) -> AuthProvider | None:
    """Return what verifies tokens; None if `[serve.auth]` is not there.

    Raises:
        ConfigurationError: a variable is not set, or the identity provider does not answer.
    """
    if settings is None:
        return None
    from fastmcp.server.auth import RemoteAuthProvider
    from fastmcp.server.auth.oidc_proxy import OIDCProxy
    from fastmcp.server.auth.providers.jwt import JWTVerifier

    scopes = list(settings.required_scopes) or None
    try:
        if settings.type == "oidc":
            return OIDCProxy(
                config_url=str(settings.config_url),
                client_id=str(settings.client_id),
                client_secret=_secret(settings.client_secret, "client_secret"),
                audience=settings.audience,
                required_scopes=scopes,
                base_url=str(settings.base_url),
            )
        verifier = JWTVerifier(
            jwks_uri=settings.jwks_uri,
            public_key=_secret(settings.public_key, "public_key"),
            issuer=settings.issuer,
            audience=settings.audience,
            algorithm=settings.algorithm,
            required_scopes=scopes,
            base_url=settings.base_url,
        )
        if settings.base_url is None or settings.issuer is None:
            return verifier
        servers: Any = [settings.issuer]
        return RemoteAuthProvider(verifier, servers, settings.base_url)
    except ConfigurationError:
        raise
    except Exception as error:  # FastMCP's own, and those of its HTTP client
        raise ConfigurationError(
            f"[serve.auth] cannot be used: {error}. Correct it, or see that the identity provider "
            f"answers at its address."
        ) from error


def _secret(reference: str | None, name: str) -> str | None:
    """Return the value of a `${VARIABLE}`."""
    if reference is None:
        return None
    value = os.environ.get(reference[2:-1], "")
    if not value.strip():
        raise ConfigurationError(
            f"serve.auth.{name}: the environment variable {reference[2:-1]} is not set. Set it."
        )
    remember_secrets([value])
    return value
