"""Calls to Python functions, only where the configuration allows them."""

import asyncio
import json

import pytest

from catalogs.shared.kinds import source_kind
from catalogs.shared.listing import ListingBuilder
from pegboard.records import Tool
from pegboard.serve.calls.caller import Caller
from pegboard.serve.metrics import Metrics
from pegboard.serve.settings import GatewaySettings
from tests.pegboard.serve.office import MODULE, text_of

ORDER = {"due": "2026-01-02", "colours": ["red"]}


def listed_by(table, folder):
    """The tools that the catalog's source lists."""
    builder = ListingBuilder("kit", folder)
    source = source_kind("python")
    source.read(builder, source.options.model_validate(table))
    return builder.build().tools


@pytest.fixture
def call(office):
    """A function: the results of calls (function, arguments) one after the other."""

    def results(*calls, **options):
        async def block(call, table):
            return [await call(function, **arguments) for function, arguments in calls]

        return office(block, **options)

    return results


def test_functions_of_catalogs_that_are_not_configured_do_not_run():
    table = {"type": "python", "target": "office_functions"}
    caller = Caller(GatewaySettings(catalogs={"kit": table}), Metrics())

    why = caller.call_problem(Tool("kit/kit/fine", "kit", "kit/kit", "fine"), "")

    assert "[serve] python" in why


@pytest.mark.parametrize(
    ("ending", "target"),
    [("", "{name}"), ("__all__ = ['fine', 'helped', 'Helper']", "{name}"), ("", "{name}:helper")],
)
def test_only_functions_that_the_source_lists_run(office, tmp_path, ending, target):
    names = ["fine", "helped", "helper", "Helper", "_private", "remove", "run", "system"]
    names += ["method", "Helper.method", "helper.method", "__import__", "__dict__.get", "os.system"]

    async def block(call, table):
        texts = {name: text_of(await call(name)) for name in names}
        return {tool.name for tool in listed_by(table, tmp_path)}, texts

    listed, texts = office(block, MODULE + ending, target)

    refused = {name for name, text in texts.items() if "Unknown tool" in text}
    assert set(names) - refused == listed & set(names) != set()


@pytest.mark.parametrize(
    ("identity", "agent"),
    [
        ("kit/kit/allowed", "kit/kit"),
        ("shop/kit/fine", "shop/kit"),
        ("shop/shop/fine", "shop/shop"),
    ],
)
def test_a_tool_whose_id_differs_from_its_agent_and_name_is_not_called(identity, agent):
    """Rules match the id, but the call uses catalog, agent and name."""
    caller = Caller(GatewaySettings(), Metrics())

    assert "is not the id of its catalog" in caller.call_problem(
        Tool(identity, "kit", agent, "fine"), ""
    )


def test_exceptions_results_and_output_of_a_function_affect_only_its_call(call):
    raising = ["leave", "interrupt", "fall_silent", "leave_later", "close_later", "fail_halfway"]
    odd = ["halve", "halve_in_an_object", "count_wrongly", "circle"]
    names = ["process", *raising, *odd, "fine", "process"]

    process_before, *results, fine, process_after = call(*((name, {}) for name in names))

    assert text_of(process_before) == text_of(process_after)
    assert text_of(fine) == "fine"
    assert all(result.is_error for result in results[: len(raising)])
    assert text_of(results[0]).endswith("SystemExit: 3")
    for result in results:
        message = result.model_dump(by_alias=True, exclude_none=True)
        json.dumps(message, ensure_ascii=False, allow_nan=False).encode()


def test_arguments_are_converted_to_parameter_types_and_secrets_are_redacted(call, monkeypatch):
    monkeypatch.setenv("OFFICE_API_KEY", "office-4711-abcdef")

    placed, painted, numbers, wrong, refused, key = call(
        ("place", {"order": ORDER}),
        ("paint", {"colour": "red"}),
        ("numbers", {}),
        ("place", {"order": {"due": "soon", "colours": []}}),
        ("positional", {"first": 1}),
        ("key", {}),
    )

    assert placed.structured_content == {"year": 2026, "colour": "RED", "limit": 5}
    assert [text_of(painted), text_of(numbers), text_of(key)] == ["red", "[1]", "***"]
    assert wrong.is_error
    assert "order.due" in text_of(wrong)
    assert refused.is_error


@pytest.mark.parametrize("agent", [None, " a/b "])
def test_functions_are_callable_only_under_the_configured_agent(office, tmp_path, agent):
    """Otherwise a release could choose the id that rules match."""

    async def block(call, table):
        agents = ["kit/kit", "kit/a%2Fb", "kit/third"]
        texts = {name: text_of(await call("fine", agent=name)) for name in agents}
        return {tool.agent for tool in listed_by(table, tmp_path)}, texts

    listed, texts = office(block, agent=agent)

    assert {name for name, text in texts.items() if text == "fine"} == listed
    assert sum("cannot be called" in text for text in texts.values()) == 2


@pytest.mark.parametrize("error", ["SystemExit(3)", "KeyboardInterrupt", "ValueError('/srv/x')"])
def test_an_import_error_of_a_module_is_only_in_the_log(call, caplog, error):
    [result] = call(("fine", {}), text=f"raise {error}")

    assert "the gateway's log says why" in text_of(result)
    assert "/srv/x" not in text_of(result)
    assert "is not available" in caplog.text


def test_hanging_functions_block_no_others_and_a_hanging_process_is_restarted(
    office, monkeypatch, tmp_path
):
    monkeypatch.setattr("pegboard.serve.calls.connection.PING_SECONDS", 0.2)
    started = tmp_path / "started"

    async def block(call, table):
        process_before = text_of(await call("process"))
        calls = [asyncio.create_task(call("hang")) for _ in range(5)]
        meanwhile = text_of(await call("process"))
        calls.append(asyncio.create_task(call("block", path=str(started))))
        while not started.exists():
            await asyncio.sleep(0.01)
        for task in calls:
            task.cancel()
        await asyncio.wait(calls)
        while (process_after := await call("process")).is_error:
            await asyncio.sleep(0.01)
        return process_before, meanwhile, text_of(process_after)

    process_before, meanwhile, process_after = office(block)

    assert process_before == meanwhile != process_after
