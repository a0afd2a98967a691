"""Who a request comes from: tokens, headers, and tokens of an identity provider."""

import httpx2
import pytest
from fastmcp.server.auth.providers.jwt import RSAKeyPair

from pegboard.errors import ConfigurationError
from pegboard.records import Tool, tool_id
from pegboard.serve.access import AccessRules
from pegboard.serve.auth import open_auth
from pegboard.serve.settings import ClientSettings, GatewaySettings, ServeSettings

ISSUER, AUDIENCE = "https://id.example", "pegboard"
NOBODY = "http://127.0.0.1:1"
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


def rules_of(**clients):
    return AccessRules(
        {name: ClientSettings.model_validate(client) for name, client in clients.items()}
    )


def bearer(token):
    return {"authorization": f"Bearer {token}"}


def name_of(client):
    return client and client.name


def test_of_a_token_and_a_header_both_are_asked_for_and_each_of_several_tokens_counts(monkeypatch):
    monkeypatch.setenv("OLD", "old-token")
    monkeypatch.setenv("NEW", "new-token")
    header = {"x-team": "a"}
    rules = rules_of(ana={"token": ["${OLD}", "${NEW}"], "header": {"X-Team": "a"}})

    without = [rules.client(bearer(token)) for token in ("old-token", "new-token")]
    others = [rules.client(headers) for headers in (header, {**bearer("other"), **header})]
    both = [rules.client({**bearer(token), **header}) for token in ("old-token", "new-token")]

    assert without + others == [None] * 4
    assert [name_of(client) for client in both] == ["ana", "ana"]


def test_a_client_of_requests_without_credentials_is_told_from_the_others():
    rules = rules_of(everyone={}, ana={"header": {"X-Team": "a"}})

    clients = [rules.client({}), rules.client({"x-team": "a"}), rules_of().client({})]

    assert [client.credentials for client in clients] == [False, True, False]


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        ({"sub": "1", "groups": ["support", "staff"]}, "support"),
        ({"sub": "1", "groups": "support"}, "support"),
        ({"sub": "1", "groups": "support staff"}, None),
        ({"scope": "read tools"}, "reader"),
        ({"sub": "1"}, None),
        ({}, None),
    ],
)
def test_claims_decide_which_client_a_verified_token_is(claims, expected):
    rules = rules_of(
        support={"claims": {"groups": "support"}},
        reader={"claims": {"scope": "tools"}},
        everyone={},
        desk={"header": {"X-Team": "desk"}},
    )

    assert name_of(rules.client({**bearer("verified"), "x-team": "desk"}, claims)) == expected


def test_brackets_in_a_rule_stand_for_themselves():
    client = rules_of(ana={"deny": [{"tool": "kit/*/get[item]"}, {"agent": "kit/[a]"}]}).named(
        "ana"
    )
    ids = [("kit/x", "get[item]"), ("kit/x", "geti"), ("kit/[a]", "find"), ("kit/a", "find")]

    permitted = [
        client.permits(Tool(tool_id(agent, name), "kit", agent, name)) for agent, name in ids
    ]

    assert permitted == [False, True, False, True]


def test_two_clients_with_the_same_credentials_are_refused():
    with pytest.raises(ConfigurationError, match=r"serve\.clients\.b: has the same credentials"):
        rules_of(a={"claims": {"sub": "1"}}, b={"claims": {"sub": "1"}})


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
def test_settings_without_a_provider_are_a_problem_of_the_configuration(settings, problem):
    with pytest.raises(ConfigurationError) as error:
        open_auth(settings)

    assert problem in str(error.value)


def test_a_token_of_an_identity_provider_lets_in_whom_a_client_names(desk_uri, served, monkeypatch):
    keys, others = RSAKeyPair.generate(), RSAKeyPair.generate()
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
        known = httpx2.get(status, headers=bearer(token()))
        refused = [httpx2.post(url, json=LIST, headers=bearer(one)) for one in attempts]
        metadata = httpx2.get(url.replace("/mcp", "/.well-known/oauth-protected-resource/mcp"))

    assert known.json()["client"] == "support"
    assert [response.status_code for response in refused] == [401] * len(attempts)
    assert "/.well-known/oauth-protected-resource/mcp" in refused[0].headers["www-authenticate"]
    assert metadata.json()["authorization_servers"] == [ISSUER]
