"""The client of a request, by tokens of the configuration and of an identity provider."""

import httpx2
import pytest
from fastmcp.server.auth.providers.jwt import RSAKeyPair

from pegboard.errors import ConfigurationError
from pegboard.records import Tool, tool_id
from pegboard.serve.access.clients import Clients
from pegboard.serve.access.identity_provider import open_identity_provider
from pegboard.serve.settings import ClientSettings, GatewaySettings, ServeSettings

ISSUER = "https://id.example"
AUDIENCE = "pegboard"
NOBODY = "http://127.0.0.1:1"
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


def clients_of(**clients):
    return Clients(
        {name: ClientSettings.model_validate(client) for name, client in clients.items()}
    )


def bearer(token):
    return {"authorization": f"Bearer {token}"}


VERIFIED = bearer("verified")


@pytest.mark.parametrize(
    ("headers", "claims", "expected"),
    [
        (bearer("old-token"), None, "ana"),
        (bearer("new-token"), None, "ana"),
        (bearer("other"), None, None),
        ({"authorization": "old-token"}, None, None),
        ({}, None, "everyone"),
        (VERIFIED, {"sub": "1", "groups": ["support", "staff"]}, "support"),
        (VERIFIED, {"sub": "1", "groups": "support"}, "support"),
        (VERIFIED, {"sub": "1", "groups": "support staff"}, None),
        (VERIFIED, {"scope": "read tools"}, "reader"),
        (VERIFIED, {"sub": "1"}, None),
        (VERIFIED, {}, None),
    ],
)
def test_a_token_identifies_its_client_and_an_unknown_token_none(
    monkeypatch, headers, claims, expected
):
    monkeypatch.setenv("OLD", "old-token")
    monkeypatch.setenv("NEW", "new-token")
    configured = clients_of(
        ana={"token": ["${OLD}", "${NEW}"]},
        support={"claims": {"groups": "support"}},
        reader={"claims": {"scope": "tools"}},
        everyone={},
    )

    client = configured.of_headers(headers) if claims is None else configured.of_claims(claims)

    assert (client and client.name) == expected
    assert client is None or client.has_credentials == (expected != "everyone")


def test_brackets_in_a_rule_are_literal():
    client = clients_of(ana={"deny": [{"tool": "kit/*/get[item]"}, {"agent": "kit/[a]"}]}).named(
        "ana"
    )
    ids = [("kit/x", "get[item]"), ("kit/x", "geti"), ("kit/[a]", "find"), ("kit/a", "find")]

    permitted = [
        client.permits(Tool(tool_id(agent, name), "kit", agent, name)) for agent, name in ids
    ]

    assert permitted == [False, True, False, True]


def test_two_clients_with_the_same_credentials_are_refused():
    with pytest.raises(ConfigurationError, match=r"serve\.clients\.b: has the same credentials"):
        clients_of(a={"claims": {"sub": "1"}}, b={"claims": {"sub": "1"}})


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"issuer": ISSUER}, "[serve.auth] cannot be used"),
        ({"type": "oidc", "client_id": "x"}, "config_url"),
        ({"type": "no.such:Provider"}, "no"),
        ({"public_key": "-----BEGIN"}, "serve.auth.public_key: secrets are not allowed"),
        ({"public_key": "${NOT_SET}"}, "the environment variable NOT_SET is not set"),
        ({"type": "oidc", "config_url": NOBODY, "client_id": "x", "base_url": NOBODY}, "answers"),
    ],
)
def test_invalid_settings_of_the_identity_provider_are_configuration_errors(settings, problem):
    with pytest.raises(ConfigurationError) as error:
        open_identity_provider(settings)

    assert problem in str(error.value)


def test_claims_of_a_verified_token_identify_the_client(desk_uri, served, monkeypatch):
    keys = RSAKeyPair.generate()
    others = RSAKeyPair.generate()
    monkeypatch.setenv("ID_KEY", keys.public_key)
    auth = {"public_key": "${ID_KEY}", "issuer": ISSUER, "audience": AUDIENCE}
    serve = {
        "auth": {**auth, "base_url": "http://127.0.0.1:8720"},
        "clients": {"support": {"claims": {"groups": "support"}, "allow": [{"agent": "kit/*"}]}},
    }

    def token(pair=keys, issuer=ISSUER, audience=AUDIENCE, groups=("support",), seconds=600):
        return pair.create_token(
            issuer=issuer, audience=audience, expires_in_seconds=seconds,
            additional_claims={"groups": list(groups)},
        )  # fmt: skip

    attempts = [
        token(groups=["sales"]),
        token(others),
        token(issuer="https://evil.example"),
        token(audience="other"),
        token(seconds=-60),
        token()[:-4] + "AAAA",
        "none",
    ]
    settings = GatewaySettings(serve=ServeSettings.model_validate(serve))
    with served(desk_uri, settings) as (url, _):
        status = url.replace("/mcp", "/v1/status")
        accepted = httpx2.get(status, headers=bearer(token()))
        refused = [httpx2.post(url, json=LIST, headers=bearer(attempt)) for attempt in attempts]
        metadata = httpx2.get(url.replace("/mcp", "/.well-known/oauth-protected-resource/mcp"))

    assert accepted.json()["client"] == "support"
    assert [response.status_code for response in refused] == [401] * len(attempts)
    assert "/.well-known/oauth-protected-resource/mcp" in refused[0].headers["www-authenticate"]
    assert metadata.json()["authorization_servers"] == [ISSUER]
