"""A build that holds golden queries out of the index, as a person runs it."""

import json

from pegboard.search.text import tokenize
from pegboard.store.database import open_table
from pegboard.store.releases import ReleaseStore

THINGS = ("invoice", "ticket", "branch", "room", "taxi", "letter", "plant", "printer")
WAYS = (
    "please {} that old {} for me",
    "could somebody {} the broken {}?",
    "what must be done to {} a second {} this week",
)


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
    catalog = (
        '[catalogs.desk]\ntype = "records"\npath = '
        '"requests.json"\n[catalogs.desk.columns]\nexamples = "examples"\n'
    )
    workshop.configure('[golden]\nqueries = "golden.jsonl"\n', catalog)

    code, out, _ = command("golden", "hold-out", "--share", "0.34", "--out", "golden.jsonl")
    assert code == 0
    assert "The next build holds them out." in out
    code, out, err = command("build", "--quiet", "--json")
    assert code == 0, err
    made = json.loads(out)
    code, out, _ = command(
        "golden", "check", "golden.jsonl", "-c", "pegboard.toml", "--strict", "--words-only"
    )
    assert code == 0, out

    queries = [
        json.loads(line)
        for line in (workshop.folder / "golden.jsonl").read_text("utf-8").splitlines()
    ]
    release = ReleaseStore(workshop.uri).get(made["release"])
    texts = []
    for name in ("emb_full", "tools"):
        pin = release.tables[name]
        rows = (
            open_table(workshop.store.database, pin.table, workshop.uri, pin.version)
            .to_arrow()
            .to_pylist()
        )
        texts += [
            f" {' '.join(tokenize(row.get('text') or ' / '.join(row['examples'])))} "
            for row in rows
        ]
    assert 30 <= len(queries) <= 36
    assert len(texts) == 64
    assert not [
        one for one in queries for text in texts if f" {' '.join(tokenize(one['query']))} " in text
    ]
