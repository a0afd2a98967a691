"""Who a request comes from, and which tools that client may see and call.

Rules match ids, which the release has, never a name that a client sent.
"""

import hashlib
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from fnmatch import fnmatchcase
from typing import Any

from pegboard.errors import ConfigurationError, did_you_mean
from pegboard.records import Tool
from pegboard.serve.settings import ClientSettings, Rule
from pegboard.toml_settings import secret_of

TOKEN: ContextVar[str] = ContextVar("token", default="")
"""The bearer token of a call over the HTTP API."""

Credentials = bytes | frozenset[tuple[str, str]]
"""The digest of a token, or the claims of a client without one."""
NONE = frozenset[tuple[str, str]]()


def matches(rule: Rule, tool: Tool) -> bool:
    """Whether a tool fits one pattern of each field of a rule that has any."""
    values = (
        (rule.agent, (tool.agent,)),
        (rule.catalog, (tool.catalog,)),
        (rule.tag, tool.tags),
        (rule.tool, (tool.id,)),
    )
    return all(
        any(fits(value, pattern) for value in own for pattern in patterns)
        for patterns, own in values
        if patterns
    )


def fits(value: str, pattern: str) -> bool:
    """Whether a text fits a pattern with `*` and `?`; brackets stand for themselves."""
    return fnmatchcase(value, pattern.replace("[", "[[]"))


class Client(ClientSettings):
    """Who asks, by its name in the configuration, and what it may see and call."""

    name: str

    def permits(self, tool: Tool) -> bool:
        """Whether the client may see and call a tool."""
        allowed = self.allow is None or any(matches(rule, tool) for rule in self.allow)
        return allowed and not any(matches(rule, tool) for rule in self.deny)


ANYONE = Client(name="anyone", operator=True)
"""Every request, where no clients are configured."""


class AccessRules:
    """Which client a request comes from.

    Args:
        clients: `[serve.clients]`, by name.

    Raises:
        ConfigurationError: a variable is not set, or two clients cannot be told apart.
    """

    def __init__(self, clients: Mapping[str, ClientSettings]) -> None:
        self.clients = {name: Client(name=name, **dict(own)) for name, own in clients.items()}
        self._by_credentials: dict[Credentials, Client] = {} if clients else {NONE: ANYONE}
        problems: list[str] = []
        for client in self.clients.values():
            place = f"serve.clients.{client.name}"
            for credentials in _credentials(client, place, problems):
                other = self._by_credentials.setdefault(credentials, client)
                if other.name != client.name:
                    what = "credentials" if client.has_credentials else "lack of any"
                    problems.append(f"{place}: has the same {what} as '{other.name}'")
        if problems:
            raise ConfigurationError.from_problems("[serve.clients]", problems)

    def client(
        self, headers: Mapping[str, str], claims: Mapping[str, Any] | None = None
    ) -> Client | None:
        """Return the client of a request; None if unknown.

        With a token only its client counts: with an unknown one no default does.

        Args:
            headers: of the request, by lower-case name.
            claims: those of its token, if an identity provider has verified it.
        """
        if claims is None:
            has_token = "authorization" in headers
            return self._by_credentials.get(_digest(bearer_token(headers)) if has_token else NONE)
        for client in self.clients.values():
            if client.claims and all(_states(claims, *claim) for claim in client.claims.items()):
                return client
        return None

    def named(self, name: str | None) -> Client:
        """Return the client of that name; for None that of requests without credentials.

        Raises:
            ConfigurationError: there is none.
        """
        if name is None and self.is_open:
            return self._by_credentials[NONE]
        if name in self.clients:
            return self.clients[name]
        known = ", ".join(self.clients) or "none"
        problem = "No client is named" if name is None else f"No client '{name}'"
        hint = did_you_mean(name or "", self.clients)
        raise ConfigurationError(
            f"{problem}. Expected --client NAME with one of [serve.clients]: {known}{hint or '.'}"
        )

    @property
    def is_open(self) -> bool:
        """Whether requests without credentials are answered."""
        return NONE in self._by_credentials


def bearer_token(headers: Mapping[str, str]) -> str:
    """Return the bearer token of a request, by its headers' lower-case names; "" for none."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _credentials(client: Client, place: str, problems: list[str]) -> Iterator[Credentials]:
    """Yield the digests of a client's tokens, or else its claims."""
    for reference in client.token:
        try:
            yield _digest(secret_of(reference))
        except ValueError as error:
            problems.append(f"{place}.token: {error}")
    if not client.token:
        yield frozenset(client.claims.items())


def _states(claims: Mapping[str, Any], name: str, expected: str) -> bool:
    """Whether a claim is a value, or has it among several: a list, or words as in `scope`."""
    value = claims.get(name)
    if isinstance(value, str):
        return value == expected or (name == "scope" and expected in value.split())
    return expected in value if isinstance(value, list) else str(value) == expected


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
