"""A build that holds golden queries out of the index, as a person runs it."""

import json
import os
import subprocess
import sys

import pytest

from pegboard.cli import main
from pegboard.releases import ReleaseStore
from pegboard.store import open_table
from pegboard.text import tokenize

PEGBOARD = [sys.executable, "-m", "pegboard.cli"]
THINGS = ("invoice", "ticket", "branch", "room", "taxi", "letter", "plant", "printer")
WAYS = (
    "please {} that old {} for me",
    "could somebody {} the broken {}?",
    "what must be done to {} a second {} this week",
)


def build(folder, home):
    """Run `pegboard build` with a Prefect server of its own; what it printed."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "PEGBOARD_"))}
    command = [*PEGBOARD, "build", "--quiet", "--json"]
    environment = {**kept, "HOME": str(home)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_what_is_held_out_stands_in_no_document_of_the_release(workshop, tmp_path, capsys):
    rows = [
        {"name": f"{verb}_{thing}", "description": f"{verb}s.", "examples": [way.format(verb, thing) for way in WAYS]}
        for verb in ("open", "close", "mend", "paint")
        for thing in THINGS
    ]
    workshop.write("requests.json", rows)
    catalog = (
        '[catalogs.desk]\ntype = "records"\npath = "requests.json"\n[catalogs.desk.columns]\nexamples = "examples"\n'
    )
    workshop.configure('[golden]\nqueries = "golden.jsonl"\n', catalog)

    config, golden = str(workshop.folder / "pegboard.toml"), str(workshop.folder / "golden.jsonl")
    assert main(["golden", "hold-out", "-c", config, "--share", "0.34", "--out", golden]) == 0
    assert "The next build holds them out." in capsys.readouterr().out
    made = build(workshop.folder, tmp_path / "home")
    assert main(["golden", "check", golden, "-c", config, "--strict", "--words-only"]) == 0, capsys.readouterr().out

    queries = [json.loads(line) for line in (workshop.folder / "golden.jsonl").read_text("utf-8").splitlines()]
    release = ReleaseStore(workshop.uri).get(made["release"])
    texts = []
    for name in ("emb_full", "tools"):
        pin = release.tables[name]
        rows = open_table(workshop.store.database, pin.table, workshop.uri, pin.version).to_arrow().to_pylist()
        texts += [f" {' '.join(tokenize(row.get('text') or ' / '.join(row['examples'])))} " for row in rows]
    assert 30 <= len(queries) <= 36
    assert len(texts) == 64
    assert not [one for one in queries for text in texts if f" {' '.join(tokenize(one['query']))} " in text]
