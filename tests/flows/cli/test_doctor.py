"""`pegboard doctor` on the pipeline: configuration, encoders, LLM, folder, Prefect."""

import json

import pytest

GOOD = '[board]\nuri = "./board"\n[catalogs.office]\ntype = "functions"\npath = "functions.json"\n'
KEY = {"OPENAI_API_KEY": "sk-not-a-real-one-1234"}
LLM = '[enrich]\nmodel = "openai/gpt-4o-mini"\n'
NEEDS = "what a build needs"
AWAY = "The Prefect server at http://127.0.0.1:1/api does not answer: "


@pytest.mark.filterwarnings("ignore:Item .* on TypedDict class .* `ReadOnly` qualifier:UserWarning")
@pytest.mark.parametrize(
    ("text", "environment", "expected"),
    [
        (
            GOOD,
            {},
            {
                "configuration": ("good", "1 catalog, 1 index"),
                NEEDS: ("good", "minilm-tools-v1"),
                "board folder": ("good", "can be written"),
                "prefect": ("good", "; no server is named, so builds run directly"),
            },
        ),
        (
            GOOD.replace("uri", "url"),
            {"PREFECT_API_URL": "http://user:hidden@127.0.0.1:1/api"},
            {"configuration": ("wrong", "board.url: no such setting"), "prefect": ("wrong", AWAY)},
        ),
        (
            GOOD + '[[indexes]]\nname = "other"\nencoder = "local/no-such-model"\n',
            {},
            {NEEDS: ("wrong", "minilm-tools-v1")},
        ),
        (GOOD + LLM, {}, {NEEDS: ("wrong", "set the environment variable OPENAI_API_KEY")}),
        (GOOD + LLM, KEY, {NEEDS: ("good", "gpt-4o-mini: ready")}),
        (
            GOOD + '[enrich]\nmodel = "openai/m"\napi_base = "http://127.0.0.1:9/v1"\n',
            {"PROMPT": '+++\nversion = "2"\n+++\n# system\nWrite.\n# user\n{{ tol }}\n'},
            {NEEDS: ("wrong", "questions.md:7: ")},
        ),
    ],
    ids=["good", "broken", "encoder", "no key", "LLM", "prompt"],
)
def test_every_part_of_a_configuration_is_checked(
    command, tmp_path, monkeypatch, text, environment, expected
):
    (tmp_path / "pegboard.toml").write_text(text)
    (tmp_path / "prompts").mkdir()
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    if "PROMPT" in environment:
        (tmp_path / "prompts/questions.md").write_text(environment["PROMPT"])

    code, out, _ = command("doctor", "-c", "pegboard.toml", "--json")

    checks = {row["what"]: (row["state"], row["say"]) for row in json.loads(out)["checks"]}
    for name, (state, part) in expected.items():
        assert checks[name][0] == state
        assert part in checks[name][1]
    assert code == ("wrong" in [state for state, _ in checks.values()])
    assert "hidden" not in out


def test_a_catalog_in_another_language_is_advised_on_at_build_and_by_the_doctor(command, tmp_path):
    descriptions = ("Öffnet die Kasse für einen Tag.", "Schließt die Kasse und zählt das Geld.")
    tools = [
        {"name": f"kasse_{number}", "description": text, "parameters": {"type": "object"}}
        for number, text in enumerate(descriptions)
    ]
    (tmp_path / "functions.json").write_text(json.dumps(tools))
    (tmp_path / "pegboard.toml").write_text(GOOD)

    code, _, warnings = command("build", "--no-prefect")
    _, out, _ = command("doctor", "--board", "board", "--json")

    assert code == 0
    assert "'office' (German). Take a multilingual encoder" in warnings
    assert 'Set language = "german"' in warnings
    checks = {row["what"]: row for row in json.loads(out)["checks"]}
    assert checks["languages of full"]["state"] == "missing"
    assert "does not know the languages of 100% of the texts" in checks["languages of full"]["say"]
