"""Whatever a catalog writes, a command of the pipeline prints no control character of it and no
line of its own."""

import json
import re

from tests.hostile_text import HOSTILE, UNSAFE

MARKDOWN = "\n# FORGED\n![x](http://x/y.png) <img src=x> [FORGED](http://x) `a` | b\n---\n"
TEXT = HOSTILE + MARKDOWN
CATALOG = '[catalogs.kit]\ntype = "records"\npath = "tools.json"\ncolumns.examples = "examples"\n'
GATE = '[gate]\nqueries = "golden.jsonl"\nrules = ["Recall@1 >= 0.999"]\n'


def record(name, description=TEXT):
    schema = {"type": "object", "properties": {TEXT: {"description": TEXT}}}
    examples = [f"{word} {TEXT}" for word in ("first", "second", "third")]
    names = {"name": f"{name}{TEXT}", "description": description}
    return {**names, "parameters": schema, "examples": examples}


def test_every_command_prints_text_of_catalogs_as_parts_of_its_own_lines(command, workshop):
    broken = [{"description": TEXT}, {"name": TEXT * 40}, record("tool"), TEXT]
    golden = [{"query": f"{name} {TEXT}", "tools": [f"{name}{TEXT}"]} for name in ("other", "gone")]
    workshop.write("golden.jsonl", "\n".join(map(json.dumps, golden)))
    workshop.write("tools.json", [record("tool", "Before."), record("gone"), *broken])
    workshop.configure(catalogs=CATALOG)

    def check(line, *codes):
        code, out, err = command(*line.split())
        for text in (out, err):
            assert not UNSAFE.findall(text), line
            assert not re.findall("^(?:FORGED|# FORGED|!).*", text, re.MULTILINE), line
        assert "Traceback" not in err, err
        assert code in codes, (line, out, err)
        if "--json" in line:
            json.loads(out)
        return out

    assert "rejected" in check("build", 0)
    workshop.write("tools.json", [record("tool"), record("other"), *broken])
    assert "- Before." in check("plan --texts", 0)
    check("plan --json", 0)
    workshop.configure(GATE, CATALOG, board="report = true")
    assert "did not pass its gate" in check("build --texts", 8)
    check("build --json", 8)
    for line in ("golden check golden.jsonl", "golden check golden.jsonl --json"):
        check(line + " -c pegboard.toml", 0, 2)
    check("golden hold-out --out held.jsonl", 0, 2)
    check("report", 0)
    check("report --json", 0)
    check("releases prune --dry-run", 0)
    check("releases diff --board board", 0, 4)
    check("doctor -c pegboard.toml", 0, 1)
    check("sweep --golden golden.jsonl --strategy search -k 1", 0, 2)
    workshop.write("tools.json", TEXT)
    workshop.configure(catalogs=CATALOG)
    check("build --strict", 3)
    check("build --strict --json", 3)
    for bad in (f"[catalogs.a]\ntype = {json.dumps(TEXT)}\n", f"[{json.dumps(TEXT)}]\n"):
        workshop.write("pegboard.toml", '[board]\nuri = "board"\n' + bad)
        check("build", 2)
