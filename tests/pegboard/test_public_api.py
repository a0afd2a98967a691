"""What `import pegboard` promises, and what it costs."""

import subprocess
import sys

import pytest

import pegboard

HEAVY = [
    "lancedb",
    "lance",
    "pyarrow",
    "numpy",
    "onnxruntime",
    "tokenizers",
    "litellm",
    "fastembed",
    "prefect",
    "polars",
    "pydantic",
]


def test_the_public_names_are_these():
    # A name more or less is a decision: change the list, the changelog and the version together.
    assert sorted(pegboard.__all__) == [
        "Agent",
        "AgentHit",
        "AsyncBoard",
        "Board",
        "BoardStatus",
        "Channel",
        "Edge",
        "Enrichment",
        "FindResult",
        "Hit",
        "PegboardError",
        "Release",
        "ReleaseStore",
        "Strategy",
        "Tool",
        "as_anthropic_tools",
        "as_mcp_tools",
        "as_openai_tools",
        "call_names",
        "open",
        "open_async",
    ]
    assert all(hasattr(pegboard, name) for name in pegboard.__all__)


@pytest.mark.parametrize(
    "module",
    [
        "pegboard",
        "pegboard.cli.main",
        "pegboard.encoders",
        "pegboard.store.contract",
        "pegboard.search.text",
        "pegboard.errors",
    ],
)
def test_importing_loads_nothing_heavy(module):
    code = f"import sys, {module}; print(*(name for name in {HEAVY!r} if name in sys.modules))"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert result.stdout.split() == []


def test_every_error_is_a_pegboard_error_with_an_exit_code_of_its_own_kind():
    from pegboard import errors

    kinds = {
        name: kind
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, Exception)
    }

    assert all(issubclass(kind, pegboard.PegboardError) for kind in kinds.values())
    assert {name: kind.exit_code for name, kind in kinds.items()} == {
        "PegboardError": 1,
        "ConfigurationError": 2,
        "QueryError": 2,
        "SourceError": 3,
        "BoardError": 4,
        "BoardNotFound": 4,
        "ContractMismatch": 4,
        "StoreError": 4,
        "EncoderError": 5,
        "FingerprintMismatch": 5,
        "PublishError": 6,
        "PromotionConflict": 6,
        "GateFailed": 8,
        "CompletionError": 7,
        "BudgetExhausted": 7,
    }
    assert all(f"{name} " in errors.__doc__ or f"{name}\n" in errors.__doc__ for name in kinds)
