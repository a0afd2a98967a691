"""`pegboard prompts`: which prompts are used, and how to change one."""

import json

from pegboard.retrieval.llm.questions import FORMATS as REQUEST_FORMATS
from tasks.enrichment.prompts import FORMATS


def test_a_prompt_is_copied_to_be_changed_and_is_used_from_then_on(command, tmp_path):
    def listed():
        return {row["name"]: row for row in json.loads(command("prompts", "--json")[1])["prompts"]}

    assert listed().keys() == FORMATS.keys() | REQUEST_FORMATS.keys()
    code, out, _ = command("prompts", "--write", "questions", "--write", "grade")
    own = tmp_path / "prompts/questions.md"
    assert (code, str(own) in out) == (0, True)
    own.write_text(own.read_text("utf-8").replace('version = "1"', 'version = "bank-1"'), "utf-8")

    changed = {"use": "enrichment", "version": "bank-1", "file": str(own)}
    assert listed()["questions"] == {"name": "questions"} | changed
    assert listed()["grade"]["file"] == str(tmp_path / "prompts/grade.md")
    for name, problem in (
        ("questions", "already has questions"),
        ("question", "Unknown prompt: question. Expected one of description, arguments"),
    ):
        code, _, err = command("prompts", "--write", name)
        assert (code, problem in err) == (2, True), err
