"""A build that holds golden queries out of the index, as a person runs it."""

import json

from pegboard.search.text import singular_words
from pegboard.store.database import open_table

THINGS = ("invoice", "ticket", "branch", "room", "taxi", "letter", "plant", "printer")
WAYS = (
    "please {} that old {} for me",
    "could somebody {} the broken {}?",
    "what must be done to {} a second {} this week",
)
CATALOG = """
[catalogs.desk]
type = "records"
path = "requests.json"
columns.examples = "examples"
"""


def words(text):
    return f" {' '.join(singular_words(text))} "


def test_what_is_held_out_stands_in_no_document_of_the_release(command, workshop):
    rows = [
        {
            "name": f"{verb}_{thing}",
            "description": f"{verb}s.",
            "examples": [way.format(verb, thing) for way in WAYS],
        }
        for verb in ("open", "close", "mend", "paint")
        for thing in THINGS
    ]
    workshop.write("requests.json", rows)
    workshop.configure('[golden]\nqueries = "golden.jsonl"\n', CATALOG)

    code, out, _ = command("golden", "hold-out", "--share", "0.34", "--out", "golden.jsonl")
    assert (code, "The next build holds them out." in out) == (0, True)
    assert command("build", "--quiet")[0] == 0
    options = ("-c", "pegboard.toml", "--strict")
    code, out, _ = command("golden", "check", "golden.jsonl", *options)
    assert code == 0, out

    store = workshop.store
    release = store.get(store.channel().release)
    texts = []
    for name in ("emb_full", "tools"):
        pin = release.tables[name]
        table = open_table(store.database, pin.table, workshop.uri, pin.version).to_arrow()
        texts += [row.get("text") or " / ".join(row["examples"]) for row in table.to_pylist()]
    lines = (workshop.folder / "golden.jsonl").read_text("utf-8").splitlines()
    queries = [json.loads(line)["query"] for line in lines]
    assert (len(texts), 30 <= len(queries) <= 36) == (64, True)
    assert not [query for query in queries for text in texts if words(query) in words(text)]
