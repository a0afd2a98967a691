"""What `import pegboard` promises, and what it costs."""

import asyncio
import inspect
import subprocess
import sys

import pegboard

HEAVY = """
    aiohttp fastembed lance lancedb litellm numpy onnxruntime openai polars prefect pyarrow pydantic
    tenacity tokenizers
"""
LIGHT = """
    pegboard pegboard.errors pegboard.store.contract pegboard.text.words pegboard.encoders
    pegboard.cli.main pegboard.llm.client pegboard.llm.hosted
"""
PUBLIC = """
    Agent AgentHit AgentResult AsyncBoard Board BoardStatus Channel Edge Enrichment EntityResult
    FindResult Hit PegboardError Release ReleaseStore Strategy Tool as_anthropic_tools
    as_gemini_tools as_mcp_tools as_openai_tools as_responses_tools as_toon call_names open
    open_async
"""
"""A name more or less is a decision: change the list, the changelog and the version together."""
EXIT_CODES = {
    1: "PegboardError",
    2: "ConfigurationError QueryError",
    3: "SourceError",
    4: "BoardError BoardNotFound ContractMismatch StoreError",
    5: "EncoderError FingerprintMismatch",
    6: "PromotionConflict PublishError",
    7: "BudgetExhausted CompletionError",
    8: "GateFailed",
}


def test_the_public_names_are_these():
    assert sorted(pegboard.__all__) == PUBLIC.split()
    assert all(hasattr(pegboard, name) for name in pegboard.__all__)


def test_importing_loads_nothing_heavy():
    code = (
        "import importlib, sys\n"
        f"for module in {LIGHT.split()!r}:\n"
        "    importlib.import_module(module)\n"
        f"    print(module, *set({HEAVY.split()!r}).intersection(sys.modules))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert result.stdout.splitlines() == LIGHT.split()


def public(kind):
    return {name for name in dir(kind) if not name.startswith("_")}


def parameters(function):
    return [
        (parameter.name, parameter.kind, parameter.default)
        for parameter in inspect.signature(function).parameters.values()
    ]


def test_an_async_board_has_the_methods_of_a_board_as_coroutines():
    board = pegboard.Board
    beside = pegboard.AsyncBoard

    assert public(board) - public(beside) == {"from_tools"}
    assert public(beside) - public(board) == {"board"}
    for name in sorted(public(board) & public(beside)):
        method = getattr(board, name)
        twin = getattr(beside, name)
        assert inspect.iscoroutinefunction(twin) == (name != "status"), name
        if not isinstance(method, property):
            assert parameters(method) == parameters(twin), name


def test_a_board_beside_another_answers_as_that_does(board_uri):
    async def answers(board):
        part = await (await board.at_current_release()).restricted(["finance/finance/list_rates"])
        return await board.thresholds(), await part.list_tools()

    board = pegboard.open(board_uri)
    thresholds, tools = asyncio.run(answers(pegboard.AsyncBoard(board)))

    assert thresholds == board.thresholds()
    assert [tool.id for tool in tools] == ["finance/finance/list_rates"]


def test_every_error_is_a_pegboard_error_with_an_exit_code_of_its_own_kind():
    from pegboard import errors

    kinds = {
        name: kind
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, Exception)
    }

    assert all(issubclass(kind, pegboard.PegboardError) for kind in kinds.values())
    for code, names in EXIT_CODES.items():
        assert sorted(name for name in kinds if kinds[name].exit_code == code) == names.split()
    assert all(f"{name} " in errors.__doc__ or f"{name}\n" in errors.__doc__ for name in kinds)
