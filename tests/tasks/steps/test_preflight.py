"""What is known to fail is reported before a source is listed or money is spent."""

import pytest

from pegboard.errors import ConfigurationError
from tasks.steps.preflight import check_before_run


def test_hosted_encoders_without_their_keys_are_reported_together(workshop, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    configuration = workshop.configure(
        '[[indexes]]\nname = "full"\nencoder = "openai/text-embedding-3-small"\n'
        '[[indexes]]\nname = "fine"\nencoder = "openai/text-embedding-3-large"\n'
        'options = { api_key_env = "OTHER_KEY" }\n'
    )

    with pytest.raises(ConfigurationError) as refused:
        check_before_run(configuration)

    assert "index 'full' needs a key, and the environment variable OPENAI_API_KEY" in str(
        refused.value
    )
    assert "index 'fine' needs a key, and the environment variable OTHER_KEY" in str(refused.value)
    monkeypatch.setenv("OPENAI_API_KEY", "one")
    monkeypatch.setenv("OTHER_KEY", "another")
    check_before_run(configuration)
