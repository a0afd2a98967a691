"""Confirmation of destructive calls by the user, in both protocol eras."""

import asyncio
from types import SimpleNamespace

import mcp_types
import pytest
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from pegboard.records import Tool
from pegboard.serve.calls.confirmation import AskFirst, confirm


def answering(action, asked):
    async def answer(context, params):
        asked.append(params.message)
        return mcp_types.ElicitResult(action=action)

    return answer


@pytest.fixture
def burn(desk_uri, desk, session_of):
    """A function: the result of burning the archive, by a client whose user gives that answer."""

    def burnt(action=None, **calls):
        questions = []
        options = {"elicitation_callback": answering(action, questions)} if action else {}

        async def run():
            async with session_of(desk_uri, desk, calls=calls, options=options) as (_, client):
                arguments = {"name": "burn_archive", "arguments": {"text": "all"}}
                return await client.call_tool("call_tool", arguments)

        return asyncio.run(run()), questions

    return burnt


def test_the_user_is_asked_and_may_agree(burn):
    result, questions = burn("accept")

    assert result.content[0].text == "Burnt."
    assert questions == ['Call kit/desk/burn_archive with {"text":"all"}?']


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_call_is_refused_if_the_user_does_not_agree(burn, action, tmp_path):
    result, questions = burn(action)

    assert "The user did not agree" in result.content[0].text
    assert len(questions) == 1
    assert not (tmp_path / "starts").exists()


def test_a_destructive_call_of_a_client_without_elicitation_is_refused(burn, tmp_path):
    result, _ = burn()

    assert "cannot ask its user" in result.content[0].text
    assert not (tmp_path / "starts").exists()


def test_the_operator_may_allow_or_refuse_without_asking(burn):
    allowed, questions = burn(destructive="allow")
    refused, _ = burn("accept", destructive="refuse")

    assert (allowed.content[0].text, questions) == ("Burnt.", [])
    assert "is refused" in refused.content[0].text


@pytest.mark.parametrize("era", ["2026-07-28"])  # before, answers do not travel with calls
def test_an_answer_is_valid_only_for_its_question(desk_uri, desk, session_of):
    async def run():
        results = []
        async with session_of(
            desk_uri, desk, options={"elicitation_callback": answering("accept", [])}
        ) as (_, client):

            async def call(arguments, **more):
                try:
                    result = await client.session.call_tool(
                        "burn_archive", arguments, allow_input_required=True, **more
                    )
                except MCPError as error:  # the state of another question
                    result = error
                results.append(type(result))
                return result

            yes = {"confirm": mcp_types.ElicitResult(action="accept")}
            question = await call({"text": "one"})
            state = question.request_state
            await call({"text": "one"}, input_responses=yes)  # no question was asked
            await call({"text": "two"}, input_responses=yes, request_state=state)
            await call({"text": "one"}, input_responses=yes, request_state=f"9{state}")
            await call({"text": "one"}, input_responses=yes, request_state=state)
        return results

    *others, last = asyncio.run(run())

    assert last is mcp_types.CallToolResult
    assert set(others) == {mcp_types.InputRequiredResult, MCPError}


def test_an_answer_is_valid_only_for_its_client_and_definition():
    capabilities = mcp_types.ClientCapabilities(elicitation=mcp_types.ElicitationCapability())
    session = SimpleNamespace(client_capabilities=capabilities)
    request = SimpleNamespace(protocol_version=MODERN_PROTOCOL_VERSIONS[0], session=session)
    tool = Tool("kit/desk/burn", "kit", "kit/desk", "burn")
    changed = Tool("kit/desk/burn", "kit", "kit/desk", "burn", description="Burns all.")

    def confirmed(client, tool, state=None):
        answers = {"confirm": mcp_types.ElicitResult(action="accept")}
        context = SimpleNamespace(
            request_context=request, input_responses=answers, request_state=state
        )
        return asyncio.run(confirm(context, client, tool, {}))

    with pytest.raises(AskFirst) as question:
        confirmed("ana", tool)
    asked_state = question.value.result.request_state
    agreed_state = confirmed("ana", tool, asked_state)

    assert confirmed("ana", tool, f"{agreed_state}|of the server") == agreed_state
    for state in (asked_state, f"{agreed_state}|of the server"):
        with pytest.raises(AskFirst):
            confirmed("ben", tool, state)
        with pytest.raises(AskFirst):
            confirmed("ana", changed, state)
