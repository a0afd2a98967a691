"""Builds whose sources fail: what is retried and logged, what is published, and the exit code."""

import json

import pytest

from tests.catalogs.flaky_server import flaky_server, mcp_answer, refused_url
from tests.catalogs.mcp_servers import raw
from tests.catalogs.test_retries import KINDS

KIT = '[catalogs.kit]\ntype = "mcp-dump"\npath = "kit.json"\n'
AT_ONCE = {"Retry-After": "0"}
"""Headers that ask the build to retry without a wait."""


@pytest.fixture
def builds(command, workshop):
    """A function that builds the catalogs `kit` (one tool) and `extra` (TOML options).

    It returns the exit code, the outcome (None if the build failed), and the error's message.
    """
    workshop.servers({"git": [workshop.tool("create_issue")]}, "kit.json")

    def build(options, *flags):
        workshop.configure(catalogs=f"{KIT}[catalogs.extra]\n{options}\n")
        code, out, _ = command("build", "--quiet", "--json", *flags)
        outcome = json.loads(out)
        message = outcome.get("error", {}).get("message", "")
        return code, outcome if "outcome" in outcome else None, message

    return build


def toml(kind, options):
    """Return the options of a catalog as TOML; JSON values are valid there, except objects."""

    def value_of(value):
        if isinstance(value, dict):
            return "{" + ", ".join(f"{k} = {value_of(v)}" for k, v in value.items()) + "}"
        return json.dumps(value)

    return "\n".join(f"{name} = {value_of(value)}" for name, value in options.items()) + (
        f'\ntype = "{kind}"'
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_source_that_is_unavailable_twice_is_published_and_the_retries_are_logged(
    builds, caplog, kind
):
    answer, options_of = KINDS[kind]
    with flaky_server([(503, AT_ONCE), (503, AT_ONCE)], answer) as server:
        code, outcome, _ = builds(toml(kind, options_of(server.url)))

    assert (code, outcome["outcome"]) == (0, "published")
    extra = outcome["catalogs"]["extra"]
    assert (extra["tools"], extra["problems"]) == (1, [])
    retries = [line for line in caplog.messages if "attempt" in line]
    assert ["503" in line and line.startswith("extra: ") for line in retries] == [True, True]
    assert "hunter2" not in caplog.text


@pytest.mark.parametrize("kind", KINDS)
def test_a_source_that_asks_for_a_day_fails_the_first_build_and_later_keeps_its_tools(
    builds, workshop, kind
):
    answer, options_of = KINDS[kind]
    tomorrow = (429, {"Retry-After": "86400"})
    with flaky_server([tomorrow], answer) as server:
        options = toml(kind, options_of(server.url))
        first_code, first, message = builds(options)
        published_code, published, _ = builds(options)
        server.failures.append(tomorrow)
        count = len(server.requests)
        later_code, later, _ = builds(options)

    assert (first_code, first) == (3, None)
    assert "The first release would lack 1 of 2 catalogs, whose sources failed: extra." in message
    assert "asks to wait 86,400 seconds" in message
    assert "--allow-missing" in message
    assert (published_code, published["outcome"]) == (0, "published")
    assert (later_code, later["outcome"]) == (0, "unchanged")
    assert (later["catalogs"]["extra"]["tools"], len(server.requests) - count) == (1, 1)
    assert "asks to wait" in later["catalogs"]["extra"]["problems"][0]


LOST = {
    "mcp": {"servers": {"shop": raw("die")}},
    "mcp-dump": {"path": "missing.json"},
    "functions": {"path": "broken.json"},
    "records": {"path": "broken.json"},
    "skills": {"path": "skills/*.md"},
    "python": {"target": "no_such_module"},
    "openapi": {"url": refused_url()},
    "a2a": {"urls": [refused_url()]},
    "registry": {"url": refused_url()},
}


@pytest.mark.parametrize("kind", LOST)
def test_a_first_build_that_lost_a_catalog_publishes_nothing_unless_it_is_allowed(
    builds, workshop, kind
):
    workshop.write("broken.json", '{"name":')
    options = toml(kind, {**LOST[kind], "attempts": 1})

    code, outcome, message = builds(options)

    assert (code, outcome) == (3, None)
    assert "whose sources failed: extra. Nothing is published." in message
    assert not (workshop.folder / "board" / "tables").exists()

    code, outcome, _ = builds(options, "--allow-missing")

    assert (code, outcome["outcome"]) == (0, "published")
    assert outcome["plan"]["new"] == ["kit/git/create_issue"]
    assert outcome["catalogs"]["extra"]["problems"]
    assert builds(options)[0] == 0  # a later build: the catalog was never published
    assert builds(options, "--strict")[0] == 3


def test_a_first_build_of_which_one_server_of_two_failed_is_published(builds):
    with flaky_server([], mcp_answer) as server:
        servers = {"good": {"url": f"{server.url}/mcp"}, "bad": raw("die")}
        code, outcome, _ = builds(toml("mcp", {"servers": servers, "attempts": 1, "timeout": 600}))

    assert (code, outcome["outcome"]) == (0, "published")
    assert outcome["catalogs"]["extra"]["tools"] == 1
    assert "exit code 1" in outcome["catalogs"]["extra"]["problems"][0]
