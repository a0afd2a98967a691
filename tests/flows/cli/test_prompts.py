"""`pegboard prompts`: which prompts are used, and how to change one."""

import json

from pegboard.retrieval.llm.questions import FORMATS as REQUEST_FORMATS
from tasks.enrichment.prompts import FORMATS


def test_a_prompt_is_copied_to_be_changed_and_is_used_from_then_on(command, tmp_path):
    def listed():
        return {row["name"]: row for row in json.loads(command("prompts", "--json")[1])["prompts"]}

    assert listed().keys() == FORMATS.keys() | REQUEST_FORMATS.keys()
    code, out, _ = command("prompts", "--write", "questions")
    own = tmp_path / "prompts/questions.md"
    assert (code, str(own) in out) == (0, True)
    own.write_text(own.read_text("utf-8").replace('version = "1"', 'version = "bank-1"'), "utf-8")

    assert listed()["questions"] == {
        "name": "questions", "use": "enrichment", "version": "bank-1", "file": str(own)
    }  # fmt: skip
    code, _, err = command("prompts", "--write", "questions")
    assert (code, "already has questions" in err) == (2, True)
    code, _, err = command("prompts", "--write", "question")
    assert code == 2
    assert "Unknown prompt: question. Expected one of description, arguments" in err


def test_a_prompt_of_a_strategy_is_copied_and_changed_likewise(command, tmp_path):
    assert command("prompts", "--write", "grade", "--write", "questions")[0] == 0

    rows = json.loads(command("prompts", "--json")[1])["prompts"]

    own = {row["name"]: row["use"] for row in rows if row["file"].startswith(str(tmp_path))}
    assert own == {"grade": "strategies", "questions": "enrichment"}
