"""`pegboard doctor` on the pipeline: what it says of a configuration, its encoders, its folder and
Prefect's server.
"""

import json
from pathlib import Path

import pytest

from pegboard.cli.main import main

GOOD = """
[board]
uri = "./board"
[catalogs.office]
type = "functions"
path = "functions.json"
"""


def doctor(
    capsys: pytest.CaptureFixture[str], config: Path
) -> tuple[int, dict[str, tuple[str, str]]]:
    code = main(["doctor", "-c", str(config), "--json"])
    rows = json.loads(capsys.readouterr().out)["checks"]
    return code, {row["what"]: (row["state"], row["say"]) for row in rows}


@pytest.fixture(autouse=True)
def _no_prefect_of_the_user(monkeypatch, tmp_path):
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    monkeypatch.setenv("PREFECT_PROFILES_PATH", str(tmp_path / "profiles.toml"))


def test_a_good_configuration_is_good(tmp_path, capsys):
    config = tmp_path / "pegboard.toml"
    config.write_text(GOOD)

    code, checks = doctor(capsys, config)

    assert code == 0
    assert checks["configuration"] == ("good", "1 catalogs, 1 indexes")
    assert checks["encoder of full"][1].startswith("all-MiniLM-L6-v2")
    assert checks["board folder"][0] == checks["prefect"][0] == "good"
    assert checks["prefect"][1].endswith("; no server is named, so builds run directly")


def test_a_mistake_in_the_configuration_and_a_server_that_is_away_are_both_reported(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setenv("PREFECT_API_URL", "http://user:hidden@127.0.0.1:1/api")
    config = tmp_path / "pegboard.toml"
    config.write_text(GOOD.replace("uri", "url"))

    code, checks = doctor(capsys, config)

    assert code == 1
    assert "board.url: no such setting" in checks["configuration"][1]
    assert checks["prefect"][0] == "wrong"
    assert checks["prefect"][1].startswith(
        "The Prefect server at http://127.0.0.1:1/api does not answer: "
    )
    assert "hidden" not in checks["prefect"][1]


def test_a_server_that_the_profile_names_is_looked_at(tmp_path, capsys):
    profiles = 'active = "work"\n[profiles.work]\nPREFECT_API_URL = "http://127.0.0.1:1/api"\n'
    (tmp_path / "profiles.toml").write_text(profiles)
    config = tmp_path / "pegboard.toml"
    config.write_text(GOOD)

    code, checks = doctor(capsys, config)

    assert (code, checks["prefect"][0]) == (1, "wrong")


def test_an_encoder_that_cannot_load_is_said_with_the_way_out(tmp_path, capsys):
    config = tmp_path / "pegboard.toml"
    config.write_text(GOOD + '[[indexes]]\nname = "other"\nencoder = "local/no-such-model"\n')

    code, checks = doctor(capsys, config)

    assert code == 1
    assert checks["encoder of other"][0] == "wrong"
    assert "all-MiniLM-L6-v2" in checks["encoder of other"][1]


@pytest.mark.filterwarnings(
    "ignore:Item .* on TypedDict class .* is using the `ReadOnly` qualifier:UserWarning"
)
def test_the_models_that_are_to_write_are_named_with_their_price_or_the_key_they_lack(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    config = tmp_path / "pegboard.toml"
    config.write_text(GOOD + '[enrich]\nmodel = "openai/gpt-4o-mini"\n')
    code, checks = doctor(capsys, config)
    assert code == 1
    assert checks["LLM"] == (
        "wrong",
        "openai/gpt-4o-mini: set the environment variable OPENAI_API_KEY to its key.",
    )

    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-real-one-1234")
    code, checks = doctor(capsys, config)
    assert code == 0
    assert checks["LLM"] == (
        "good",
        "openai/gpt-4o-mini; 0.15 and 0.6 USD for a million tokens in and out",
    )


@pytest.mark.filterwarnings(
    "ignore:Item .* on TypedDict class .* is using the `ReadOnly` qualifier:UserWarning"
)
def test_a_broken_prompt_is_said_before_anything_is_bought(tmp_path, capsys):
    config = tmp_path / "pegboard.toml"
    config.write_text(GOOD + '[enrich]\nmodel = "openai/m"\napi_base = "http://127.0.0.1:9/v1"\n')
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts/questions.md").write_text(
        '+++\nversion = "2"\n+++\n# system\nWrite.\n# user\n{{ tol }}\n'
    )
    code, checks = doctor(capsys, config)
    assert code == 1
    assert "questions.md:7: " in checks["LLM"][1]
