"""Folders of skills: front matter, bodies, and the tools that skills may use."""

import pytest

from pegboard.errors import SourceError

PDF = """---
name: pdf
description: Fill in forms: reads a PDF and writes its fields.
allowed-tools: Bash(pdftk fill:*), Read, mcp__drive__upload_file, sign_document
---

# PDF forms

Uses acroform fields.
"""


@pytest.fixture
def skills(tmp_path, listed):
    """A function: the listing of skills, given as texts of SKILL.md by folder."""

    def listing_of(**texts):
        for folder, text in texts.items():
            path = tmp_path / "skills" / folder
            path.mkdir(parents=True)
            (path / "SKILL.md").write_text(text, "utf-8")
        return listed("skills", path="skills")

    return listing_of


def test_a_skill_is_listed_with_description_body_and_allowed_tools(skills):
    listing = skills(pdf=PDF)

    (agent,) = listing.agents
    (skill,) = listing.tools
    assert (agent.id, agent.kind) == ("kit/kit", "skill")
    assert (skill.id, skill.name) == ("kit/kit/pdf", "pdf")
    assert skill.description == "Fill in forms: reads a PDF and writes its fields."
    assert skill.annotations == {
        "body": "# PDF forms\n\nUses acroform fields.",
        "file": "skills/pdf/SKILL.md",
    }
    # Bash and Read are the client's own tools.
    assert [need.tool for need in skill.dependencies] == ["upload_file", "sign_document"]


def test_a_skill_without_a_name_takes_the_name_of_its_folder(skills):
    listing = skills(tidy="---\ndescription: Tidies up.\nallowed-tools: [sweep]\n---\nSweep.")

    (skill,) = listing.tools
    assert skill.name == "tidy"
    assert [need.tool for need in skill.dependencies] == ["sweep"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("# No front matter", "it has no front matter"),
        ("---\nname: never closed\n", "it has no front matter"),
        ("---\n- a list\n---\n", "its front matter is list"),
        ("---\nname: [broken\n---\n", "is not YAML"),
        ("---\nname: x\n---\n" + "word " * 20_001, "its body has 100,004 characters"),
    ],
    ids=["none", "open", "list", "broken", "long"],
)
def test_an_invalid_skill_is_rejected_and_the_others_are_listed(skills, text, why):
    listing = skills(bad=text, pdf=PDF)

    assert [skill.name for skill in listing.tools] == ["pdf"]
    (rejected,) = listing.rejected
    assert rejected.where == "skills/bad/SKILL.md"
    assert why in rejected.why


def test_a_folder_without_skills_is_an_error(tmp_path, listed):
    (tmp_path / "skills").mkdir()

    with pytest.raises(SourceError, match=r"There is no file .*SKILL\.md"):
        listed("skills", path="skills")
