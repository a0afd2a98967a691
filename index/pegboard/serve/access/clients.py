"""Clients: which one a request comes from, and the rules for the tools that it may see and call.

Rules match the ids of the release, never a name that a client sent.
"""

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextvars import ContextVar
from fnmatch import fnmatchcase
from typing import Any

from pegboard.errors import ConfigurationError, did_you_mean
from pegboard.records import Tool
from pegboard.serve.settings import ClientSettings, Rule
from pegboard.text.secret_references import secret_of

HTTP_TOKEN: ContextVar[str] = ContextVar("token", default="")
"""The bearer token of the current call over the HTTP API; "" outside one."""

Credentials = bytes | frozenset[tuple[str, str]]
"""The digest of a token, or the claims of a client without a token."""
NO_CREDENTIALS = frozenset[tuple[str, str]]()


RULE_VALUES: Mapping[str, Callable[[Tool], Collection[str]]] = {
    "agent": lambda tool: (tool.agent,),
    "catalog": lambda tool: (tool.catalog,),
    "tag": lambda tool: tool.tags,
    "tool": lambda tool: (tool.id,),
}
"""For each field of a rule, the values of a tool that its patterns are matched with. A view asks
its entries in place of the tools, so `views.Entry` needs what is read here."""


def matches_pattern(value: str, pattern: str) -> bool:
    """Whether a text matches a pattern with `*` and `?`; brackets have no special meaning."""
    return fnmatchcase(value, pattern.replace("[", "[[]"))


def matches_rule(rule: Rule, tool: Tool) -> bool:
    """Whether a tool matches at least one pattern of each field that the rule has."""
    return all(
        any(
            matches_pattern(value, pattern)
            for value in RULE_VALUES[field](tool)
            for pattern in patterns
        )
        for field, patterns in rule
        if patterns
    )


class Client(ClientSettings):
    """A client of the configuration with its name."""

    name: str

    def permits(self, tool: Tool) -> bool:
        """Whether the client may see and call a tool."""
        return permits(self.allow, self.deny, tool)


def permits(allow: tuple[Rule, ...] | None, deny: tuple[Rule, ...], tool: Tool) -> bool:
    """Whether an `allow` rule matches a tool (or there is none) and no `deny` rule does."""
    allowed = allow is None or any(matches_rule(rule, tool) for rule in allow)
    return allowed and not any(matches_rule(rule, tool) for rule in deny)


ANYONE = Client(name="anyone", operator=True)
"""The client of every request where no clients are configured."""


class Clients:
    """The configured clients.

    Args:
        settings: `[serve.clients]`, by name.

    Attributes:
        by_name: the clients, without `ANYONE`.

    Raises:
        ConfigurationError: a variable is not set, or two clients have the same credentials.
    """

    def __init__(self, settings: Mapping[str, ClientSettings]) -> None:
        self.by_name = {
            name: Client(name=name, **dict(client)) for name, client in settings.items()
        }
        self._by_credentials: dict[Credentials, Client] = {}
        if not settings:
            self._by_credentials[NO_CREDENTIALS] = ANYONE
        problems: list[str] = []
        for client in self.by_name.values():
            place = f"serve.clients.{client.name}"
            for credentials in _credentials(client, place, problems):
                other = self._by_credentials.setdefault(credentials, client)
                if other.name != client.name:
                    what = "credentials" if client.has_credentials else "lack of any"
                    problems.append(f"{place}: has the same {what} as '{other.name}'")
        if problems:
            raise ConfigurationError.from_problems("[serve.clients]", problems)

    def of_headers(self, headers: Mapping[str, str]) -> Client | None:
        """Return the client of a request without claims, from its headers by lower-case name.

        A request with an unknown token has no client, even if there is one without credentials.
        """
        if "authorization" not in headers:
            return self._by_credentials.get(NO_CREDENTIALS)
        return self._by_credentials.get(_digest(bearer_token(headers)))

    def of_claims(self, claims: Mapping[str, Any]) -> Client | None:
        """Return the first client whose claims a verified token has; None if there is none."""
        for client in self.by_name.values():
            if client.claims and all(
                _has_claim(claims, name, value) for name, value in client.claims.items()
            ):
                return client
        return None

    def named(self, name: str | None) -> Client:
        """Return the client with that name; for None the client without credentials.

        Raises:
            ConfigurationError: there is no such client.
        """
        if name is None and self.is_open:
            return self._by_credentials[NO_CREDENTIALS]
        if name in self.by_name:
            return self.by_name[name]
        expected = ", ".join(self.by_name) or "none"
        problem = "No client is named" if name is None else f"No client '{name}'"
        hint = did_you_mean(name or "", self.by_name)
        raise ConfigurationError(
            f"{problem}. Expected --client NAME with one of [serve.clients]: {expected}"
            f"{hint or '.'}"
        )

    @property
    def is_open(self) -> bool:
        """Whether requests without credentials are answered."""
        return NO_CREDENTIALS in self._by_credentials


def bearer_token(headers: Mapping[str, str]) -> str:
    """Return the bearer token of a request, from its headers by lower-case name; "" for none."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _credentials(client: Client, place: str, problems: list[str]) -> Iterator[Credentials]:
    """Yield the digests of a client's tokens, or its claims if it has no tokens."""
    for reference in client.token:
        try:
            yield _digest(secret_of(reference))
        except ValueError as error:
            problems.append(f"{place}.token: {error}")
    if not client.token:
        yield frozenset(client.claims.items())


def _has_claim(claims: Mapping[str, Any], name: str, expected: str) -> bool:
    """Whether a claim has a value, or contains it: in a list, or among the words of `scope`."""
    value = claims.get(name)
    if isinstance(value, str):
        return value == expected or (name == "scope" and expected in value.split())
    return expected in value if isinstance(value, list) else str(value) == expected


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
