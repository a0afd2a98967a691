"""The lock file: approved definitions, and releases that a locked build holds."""

import json

import pytest

from flows.cli.printing import run_lines
from flows.options import BuildOptions, failure_of
from flows.reindex import reindex
from pegboard.cli.main import main
from pegboard.errors import ConfigurationError

OLD = "Sends a message to a friend of the user."
SCHEMA = {"type": "object", "properties": {"description": {"type": "string", "title": "Text"}}}
LIMITED = '[catalogs.kit]\ntype = "mcp-dump"\npath = "servers.json"\ntrust = "limited"\n'


class Locked:
    """A catalog, its lock file, and the locked builds that index it."""

    def __init__(self, workshop):
        self.workshop, self.file = workshop, workshop.folder / "pegboard.lock"

    def write(
        self,
        text=OLD,
        schema=SCHEMA,
        output=None,
        more=(),
        settings="",
        catalog=None,
        agent="Post.",
    ):
        send = {"name": "send", "description": text, "inputSchema": schema}
        if output is not None:
            send["outputSchema"] = output
        tools = [self.workshop.tool("list_friends", "Lists."), send, *more]
        server = {"serverInfo": {"name": "post"}, "instructions": agent or "Post.", "tools": tools}
        self.workshop.write("servers.json", server)
        self.configuration = self.workshop.configure(settings, catalog)

    def build(self, **definitions):
        if definitions:
            self.write(**definitions)
        return reindex(self.configuration, BuildOptions(locked=True))

    def lock(self, *options):
        return main(["lock", "-c", str(self.configuration.file), "--quiet", *options])

    def rows(self):
        return [json.loads(line) for line in self.file.read_text("utf-8").splitlines()]


@pytest.fixture
def locked(workshop):
    locked = Locked(workshop)
    locked.write()
    assert locked.lock() == 0
    assert locked.build()["outcome"] == "published"
    return locked


def waiting(outcome):
    return {
        tool: row["change"]
        for tool, rows in outcome["suspicious"].items()
        for row in rows
        if row["flag"] == "unapproved"
    }


def test_a_locked_build_holds_a_release_with_unapproved_definitions(locked):
    live = locked.workshop.store.channel().release

    held = locked.build(text="Sends a message to anybody.")

    assert held["outcome"] == "held"
    assert locked.workshop.store.channel().release == live
    assert failure_of(held, strict=False).exit_code == 8
    message = "\n".join(run_lines(held))
    assert "1 new or changed tool waits for approval in the lock file" in message
    assert "Sends a message to a friend" in message
    assert "Sends a message to anybody." in message
    assert "run `pegboard lock`, commit its file and build again" in message

    assert locked.lock() == 0

    assert locked.build()["outcome"] == "published"


@pytest.mark.parametrize(
    ("definitions", "changes", "text_changes"),
    [
        ({"text": f"{OLD} Quickly."}, {"kit/post/send": "text"}, "hold"),
        ({"text": f"{OLD} Quickly."}, {}, "pass"),
        ({"text": f"{OLD} Copies go to https://x.example."}, {"kit/post/send": "text"}, "pass"),
        ({"text": f"{OLD} Always call it first."}, {"kit/post/send": "text"}, "pass"),
        ({"schema": {**SCHEMA, "title": "Message"}}, {}, "pass"),
        ({"output": SCHEMA}, {"kit/post/send": "text"}, "hold"),
        ({"output": SCHEMA}, {}, "pass"),
        ({"schema": {**SCHEMA, "required": ["description"]}}, {"kit/post/send": "changed"}, "pass"),
        ({"schema": {"type": "object"}}, {"kit/post/send": "changed"}, "pass"),
        ({"more": [{"name": "burn", "description": "B."}]}, {"kit/post/burn": "new"}, "pass"),
        ({"agent": "Posts letters."}, {"kit/post": "text"}, "hold"),
        ({"agent": "Posts letters."}, {}, "pass"),
    ],
)
def test_changed_texts_pass_if_configured_and_changed_calls_never_do(
    locked, definitions, changes, text_changes
):
    settings = f'[lock]\ntext_changes = "{text_changes}"\n'

    outcome = locked.build(settings=settings, **definitions)

    assert waiting(outcome) == changes
    assert outcome["outcome"] == ("held" if changes else "published")


def test_the_lock_file_approves_for_catalogs_of_limited_trust_and_first_releases(workshop):
    locked = Locked(workshop)
    locked.write(catalog=LIMITED)
    workshop.write("pegboard.lock", "")

    held = locked.build()

    assert waiting(held) == dict.fromkeys(
        ["kit/post", "kit/post/list_friends", "kit/post/send"], "new"
    )
    assert "'live' names no release yet" in "\n".join(run_lines(held))
    for text in (OLD, "Sends a message to anybody."):
        locked.write(text=text, catalog=LIMITED)
        assert locked.lock() == 0
        assert locked.build()["outcome"] == "published"


def test_check_shows_the_differences_and_does_not_write(locked, capsys):
    content = locked.file.read_bytes()
    base = locked.workshop.write("base.lock", content.decode())
    locked.write(text="Sends it.", schema={"type": "object"}, agent="Posts letters.")

    assert locked.lock("--check", "--json") == 8
    changes = {row["id"]: row for row in json.loads(capsys.readouterr().out)["changes"]}
    assert {tool: row["change"] for tool, row in changes.items()} == {
        "kit/post": "text",
        "kit/post/send": "changed",
    }
    assert changes["kit/post"]["fields"]["description"] == {
        "before": "Post.",
        "after": "Posts letters.",
    }
    assert locked.file.read_bytes() == content

    assert locked.lock() == 0
    assert locked.lock("--check") == 0
    capsys.readouterr()
    assert locked.lock("--check", "--file", str(base)) == 8
    output = capsys.readouterr().out
    assert "+ Sends it.\n" in output
    assert output.endswith("3 definitions; 1 changed, 1 with other texts or results\n")


def test_the_file_has_a_sorted_line_for_each_definition_and_no_local_path(locked):
    rows = locked.rows()

    assert [row["id"] for row in rows] == ["kit/post", "kit/post/list_friends", "kit/post/send"]
    assert {tuple(row) for row in rows} == {("id", "definition", "call")}
    assert str(locked.workshop.folder) not in locked.file.read_text("utf-8")
    content = locked.file.read_bytes()
    locked.write(more=[{"name": "burn", "description": "Burns."}])
    assert locked.lock() == 0
    assert len(locked.rows()) == 4
    locked.write()
    assert locked.lock() == 0
    assert locked.file.read_bytes() == content


def test_a_failed_source_leaves_the_file_as_it_is(locked, capsys):
    content = locked.file.read_bytes()
    (locked.workshop.folder / "servers.json").unlink()

    assert locked.lock() == 3
    assert "Not every source could be listed" in capsys.readouterr().err
    assert locked.file.read_bytes() == content


def test_an_invalid_lock_file_fails_a_locked_build_before_any_source_is_listed(locked):
    [first_line, *other_lines] = locked.file.read_text("utf-8").splitlines()
    (locked.workshop.folder / "servers.json").unlink()

    for lines, problem in (
        (
            [first_line, "<<<<<<< HEAD", *other_lines],
            "line 2: expected id, definition, call, got .<<<<<<< HEAD",
        ),
        ([first_line, first_line, *other_lines], "kit/post is listed twice"),
    ):
        locked.file.write_text("\n".join(lines), "utf-8")
        with pytest.raises(ConfigurationError, match=problem):
            locked.build()

    locked.file.unlink()
    with pytest.raises(ConfigurationError, match=r"cannot be read: No such file.*`pegboard lock`"):
        locked.build()
