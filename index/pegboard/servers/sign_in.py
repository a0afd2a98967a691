"""Signing in at MCP servers with OAuth, by FastMCP's client: once by hand, then with the stored
tokens, which are encrypted, and renewed when they expire."""

import os
from collections.abc import AsyncGenerator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import httpx2
from fastmcp.client.auth import OAuth
from key_value.aio.adapters.pydantic import PydanticAdapter
from key_value.aio.protocols import AsyncKeyValue
from key_value.aio.stores.filetree import (
    FileTreeStore,
    FileTreeV1CollectionSanitizationStrategy,
    FileTreeV1KeySanitizationStrategy,
)
from key_value.aio.wrappers.encryption import FernetEncryptionWrapper
from mcp.shared.auth import OAuthMetadata

from pegboard.servers.config import ServerProblem
from pegboard.text.redaction import remember_secrets
from pegboard.text.secret_values import SecretValues

KEY = "PEGBOARD_TOKEN_KEY"
"""The environment variable with the text from which the encryption key of tokens is derived."""
SIGN_IN = "sign in with `pegboard serve --login CATALOG/SERVER`"
"""The next step in errors about tokens."""


class ServerSignIn(OAuth):
    """The tokens of one server, which the HTTP client sends and renews.

    Args:
        url: the address of the server.
        options: its `auth`: `client_id`, `client_secret`, `scopes`, `callback_port`.
        secrets: the secrets that are removed from its messages, to which the tokens are added.
        by_hand: whether a user can sign in. If not, a server that requires it is an error.
    """

    def __init__(
        self, url: str, options: Mapping[str, Any], secrets: SecretValues, *, by_hand: bool
    ) -> None:
        store = _token_store(os.environ.get(KEY, ""), _folder())
        super().__init__(url, client_name="Pegboard", token_storage=store, **options)
        self._secrets = secrets
        self._by_hand = by_hand
        self._metadata = PydanticAdapter[OAuthMetadata](
            key_value=store, pydantic_model=OAuthMetadata, default_collection="oauth-metadata"
        )
        self._token = ""

    def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Send a request with a token; see httpx2."""
        if not self.context.is_token_valid():
            self._initialized = False  # another process may have signed in, or renewed it
        return super().async_auth_flow(request)

    async def redirect_handler(self, authorization_url: str) -> None:
        """Send the user to the page for signing in."""
        if not self._by_hand:
            self.context.clear_tokens()
            raise ServerProblem(f"it does not take the tokens that are kept; {SIGN_IN}")
        print(f"Sign in at {authorization_url}", flush=True)
        await super().redirect_handler(authorization_url)

    async def _initialize(self) -> None:
        await super()._initialize()
        if not self._by_hand and self.context.current_tokens is None:
            raise ServerProblem(f"no user has signed in there; {SIGN_IN}")
        # Tokens are renewed with the stored metadata after a restart.
        self.context.oauth_metadata = await self._metadata.get(key=self.mcp_url)

    async def _handle_token_response(self, response: httpx2.Response) -> None:
        await super()._handle_token_response(response)
        if self.context.oauth_metadata is not None:
            await self._metadata.put(key=self.mcp_url, value=self.context.oauth_metadata)

    def _add_auth_header(self, request: httpx2.Request) -> None:
        tokens = self.context.current_tokens
        if tokens is not None and tokens.access_token != self._token:
            self._token = tokens.access_token
            values = [self._token, tokens.refresh_token or ""]
            self._secrets.add(values)
            remember_secrets(filter(None, values))
        super()._add_auth_header(request)


def _folder() -> Path:
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(data) / "pegboard" / "tokens"


@cache
def _token_store(key: str, folder: Path) -> AsyncKeyValue:
    """Return the store of tokens. Tokens that were encrypted with another key are ignored.

    Raises:
        ServerProblem: there is no key.
    """
    if not key.strip():
        raise ServerProblem(
            f"its tokens are kept encrypted, and the environment variable {KEY} is not set; set it "
            f"to a long random text"
        )
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    files = FileTreeStore(
        data_directory=folder,
        key_sanitization_strategy=FileTreeV1KeySanitizationStrategy(folder),
        collection_sanitization_strategy=FileTreeV1CollectionSanitizationStrategy(folder),
    )
    return FernetEncryptionWrapper(
        files, source_material=key, salt="pegboard", raise_on_decryption_error=False
    )
