"""`pegboard prompts`: which prompts are used, and one's own."""

import json

from pegboard.cli.main import main


def listed(capsys, config):
    assert main(["prompts", "-c", str(config), "--json"]) == 0
    return {row["name"]: row for row in json.loads(capsys.readouterr().out)["prompts"]}


def test_a_prompt_is_copied_to_be_changed_and_is_used_from_then_on(tmp_path, capsys):
    config = tmp_path / "pegboard.toml"
    assert set(listed(capsys, config)) == {
        "description",
        "arguments",
        "questions",
        "topics",
        "agents",
        "dependencies",
        "think",
        "repair",
    }

    assert main(["prompts", "-c", str(config), "--write", "questions"]) == 0
    mine = tmp_path / "prompts/questions.md"
    assert str(mine) in capsys.readouterr().out
    mine.write_text(mine.read_text("utf-8").replace('version = "1"', 'version = "bank-1"'), "utf-8")
    assert listed(capsys, config)["questions"] == {
        "name": "questions",
        "version": "bank-1",
        "file": str(mine),
    }


def test_what_is_there_is_not_overwritten(tmp_path, capsys):
    config = tmp_path / "pegboard.toml"
    main(["prompts", "-c", str(config), "--write", "topics"])
    assert main(["prompts", "-c", str(config), "--write", "topics"]) == 2
    assert "already has topics" in capsys.readouterr().err


def test_an_unknown_prompt_is_told_with_those_there_are(tmp_path, capsys):
    assert main(["prompts", "-c", str(tmp_path / "pegboard.toml"), "--write", "question"]) == 2
    assert (
        "Unknown prompt: question. Expected one of description, arguments"
        in capsys.readouterr().err
    )
