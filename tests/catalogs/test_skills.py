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


def write_skill(folder, text):
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(text, "utf-8")


def skill(name, description="Does it.", more=""):
    """The text of a SKILL.md."""
    return f"---\nname: {name}\ndescription: {description}\n{more}---\nBody of {name}.\n"


@pytest.fixture
def skills(tmp_path, listed):
    """A function: the listing of skills, given as texts of SKILL.md by folder."""

    def listing_of(**texts):
        for folder, text in texts.items():
            write_skill(tmp_path / "skills" / folder, text)
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


BROKEN = "argument-hint: [a] [b]\n"
"""An entry that is not YAML, as many skills have one."""
MEANT = {
    "Sends mail: to one\n  or to many": "Sends mail: to one or to many",
    "Sends mail: to one\nor to many": "Sends mail: to one or to many",
    "|\n  Sends mail.\n  To many: now": "Sends mail.\nTo many: now",
    ">-\n  Sends mail:\n  to many": "Sends mail: to many",
    "|\nSends mail\nto many": "Sends mail\nto many",
    "> Sends mail": "Sends mail",
    "\n  Sends mail: to many": "Sends mail: to many",
    "\n\tSends mail: to many": "Sends mail: to many",
    "'Reads logs': finds errors": "'Reads logs': finds errors",
    "'It's a tool: for mail'": "It's a tool: for mail",
    '"Says "hi": to users"': 'Says "hi": to users',
    '"hi" and "ho"': '"hi" and "ho"',
    '"Sends: mail"': "Sends: mail",
    "*Important*: sends mail": "*Important*: sends mail",
    "@everyone": "@everyone",
    "`mail` sends: mail": "`mail` sends: mail",
    "%d mails": "%d mails",
    "[Beta] Sends mail: now": "[Beta] Sends mail: now",
    "Sends mail # now": "Sends mail",
    "2024": "2024",
    "1.10": "1.10",
    "2024 # of the year": "2024",
    "true": "true",
    "[Beta]": "[Beta]",
}


@pytest.mark.parametrize("more", ["", BROKEN], ids=["YAML", "beside a line that is not YAML"])
@pytest.mark.parametrize(("written", "meant"), MEANT.items(), ids=[repr(text) for text in MEANT])
def test_a_description_is_read_as_its_author_meant_it(skills, written, meant, more):
    listing = skills(mail=skill("mail", written, more))

    (tool,) = listing.tools
    assert (tool.description, tool.annotations["body"]) == (meant, "Body of mail.")
    assert (listing.rejected, listing.notices) == ((), ())


TOOLS = {
    "Read, mcp__logs__query": ["query"],
    "[Read, mcp__logs__query, sweep]": ["query", "sweep"],
    "\n  - Read\n  - mcp__logs__query": ["query"],
    "\n- mcp__logs__query\n- 'sweep'": ["query", "sweep"],
    "\n\t- mcp__logs__query\n\t- sweep": ["query", "sweep"],
    "\n  - Bash(git: *)\n  - sweep": ["sweep"],
    '["mcp__logs__query"]': ["query"],
}


@pytest.mark.parametrize("more", ["", BROKEN], ids=["YAML", "beside a line that is not YAML"])
@pytest.mark.parametrize(("written", "tools"), TOOLS.items(), ids=[repr(text) for text in TOOLS])
def test_allowed_tools_are_read_in_every_form_of_a_list(skills, written, tools, more):
    listing = skills(logs=skill("logs", "Reads logs.", f"allowed-tools: {written}\n{more}"))

    assert [need.tool for need in listing.tools[0].dependencies] == tools


@pytest.mark.parametrize("description", ["[Sends mail: now", '"Sends mail: now', "'Sends: mail"])
def test_an_entry_that_is_never_closed_is_rejected_with_its_line(skills, description):
    listing = skills(mail=f"\n{skill('mail', description)}")

    assert listing.tools == ()
    assert "its `description`, at line 4, begins with a bracket or quote" in listing.rejected[0].why


def test_an_entry_that_is_written_twice_rejects_its_skill(skills):
    listing = skills(mail=skill("mail", "A", f"{BROKEN}description: B\n"))

    assert "it has the name 'description' twice" in listing.rejected[0].why


@pytest.mark.parametrize("flag", ["true", "yes", '"true"'])
def test_skills_that_only_users_start_are_left_out_and_counted(skills, listed, flag):
    internal = skill("deploy", more=f"disable-model-invocation: {flag}\n")
    texts = {"a": internal, "b": internal.replace("deploy", "drop"), "c": skill("mail")}

    listing = skills(**texts, d=skill("log", more="disable-model-invocation: false\n"))

    assert [tool.name for tool in listing.tools] == ["log", "mail"]
    (notice,) = listing.notices
    assert (notice.kind, notice.where) == ("skipped", "skills/a/SKILL.md")
    assert "2 skills with `disable-model-invocation` left out" in notice.why
    everything = listed("skills", path="skills", internal=True)
    assert [tool.name for tool in everything.tools] == ["deploy", "drop", "log", "mail"]
    assert everything.notices == ()


def test_skills_of_one_name_are_listed_under_their_folders(skills):
    listing = skills(
        **{
            "x/review": skill("review", "Reviews code."),
            "y/review": skill("review", "Reviews contracts."),
            "y/other": skill("review", "Reviews films."),
            "z/review": skill("review", "Reviews code."),
            "mail": skill("mail"),
        }
    )

    assert {tool.name: tool.description for tool in listing.tools} == {
        "mail": "Does it.",
        "x:review": "Reviews code.",
        "y:review": "Reviews contracts.",
        "y:other:review": "Reviews films.",
    }
    assert [(notice.kind, notice.where) for notice in listing.notices] == [
        ("skipped", "skills/z/review/SKILL.md"),
        ("renamed", "skills/x/review/SKILL.md"),
    ]
    assert listing.notices[0].why == "it has the same text as skills/x/review/SKILL.md"
    assert listing.rejected == ()


@pytest.fixture
def linked(tmp_path, skills):
    """A function: the listing of a skill `mail`, with links by their place in `skills`."""

    def listing_of(**links):
        for place, target in links.items():
            (tmp_path / "skills").mkdir(exist_ok=True)
            (tmp_path / "skills" / place).symlink_to(target)
        return skills(mail=skill("mail"))

    return listing_of


def test_linked_folders_are_found_within_the_folder_and_where_an_option_allows_it(
    tmp_path, linked, listed
):
    write_skill(tmp_path / "shared" / "pdf", skill("pdf"))
    write_skill(tmp_path / "secret" / "keys", skill("keys", "The keys."))

    listing = linked(again="mail", loop=".", pdf="../shared/pdf", keys=tmp_path / "secret" / "keys")

    assert [tool.name for tool in listing.tools] == ["mail"]
    assert [(notice.kind, notice.where) for notice in listing.notices] == [
        ("skipped", "skills/keys"),
        ("skipped", "skills/pdf"),
    ]
    assert f"it leads to {tmp_path / 'secret' / 'keys'}, outside" in listing.notices[0].why
    assert "The keys." not in str(listing)
    allowed = listed("skills", path="skills", links=["shared"])
    assert {tool.name: tool.annotations["file"] for tool in allowed.tools} == {
        "mail": "skills/mail/SKILL.md",
        "pdf": "skills/pdf/SKILL.md",
    }
    assert [notice.where for notice in allowed.notices] == ["skills/keys"]


@pytest.mark.parametrize("path", ["skills", "skills/*/SKILL.md"])
def test_a_linked_file_outside_of_the_folder_is_not_published(tmp_path, linked, listed, path):
    (tmp_path / "secret.md").write_text(skill("keys", "The keys."))
    (tmp_path / "skills" / "keys").mkdir(parents=True)
    (tmp_path / "skills" / "keys" / "SKILL.md").symlink_to(tmp_path / "secret.md")
    linked()

    listing = listed("skills", path=path)

    assert [tool.name for tool in listing.tools] == ["mail"]
    assert [notice.where for notice in listing.notices] == ["skills/keys/SKILL.md"]
    assert "The keys." not in str(listing)


def test_a_folder_that_is_itself_a_link_is_read(tmp_path, skills, listed):
    skills(mail=skill("mail"))
    (tmp_path / "linked").symlink_to("skills")

    assert [tool.name for tool in listed("skills", path="linked").tools] == ["mail"]


def test_a_folder_of_links_that_does_not_exist_is_an_error(skills, listed):
    skills(mail=skill("mail"))

    with pytest.raises(SourceError, match=r"`links` names folders that do not exist: .*nowhere"):
        listed("skills", path="skills", links=["nowhere"])
