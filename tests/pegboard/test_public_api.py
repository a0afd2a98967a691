"""What `import pegboard` promises, and what it costs."""

import subprocess
import sys

import pytest

import pegboard

HEAVY = (
    "lancedb lance pyarrow numpy onnxruntime tokenizers litellm fastembed prefect polars pydantic"
)
PUBLIC = """
    Agent AgentHit AsyncBoard Board BoardStatus Channel Edge Enrichment FindResult Hit PegboardError
    Release ReleaseStore Strategy Tool as_anthropic_tools as_mcp_tools as_openai_tools call_names
    open open_async
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


@pytest.mark.parametrize(
    "module", ["", ".cli.main", ".encoders", ".store.contract", ".search.text", ".errors"]
)
def test_importing_loads_nothing_heavy(module):
    code = f"import sys, pegboard{module}; print(*set({HEAVY.split()!r}).intersection(sys.modules))"
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
    for code, names in EXIT_CODES.items():
        assert sorted(name for name in kinds if kinds[name].exit_code == code) == names.split()
    assert all(f"{name} " in errors.__doc__ or f"{name}\n" in errors.__doc__ for name in kinds)
