"""A secret that a hostile server repeats in every field and encoding is published nowhere."""

import json
import subprocess
import sys
from pathlib import Path

import lancedb
import polars as pl
import pytest

from tests.encodings import encodings

SERVER = Path(__file__).parents[1] / "catalogs" / "servers" / "echo_stdio.py"
TOKEN = "Zq7-quiet/Harbour+4711é"


def texts_of(folder: Path) -> dict[str, str]:
    """Every file below a folder as text; tables row by row."""
    texts = {
        str(path): path.read_text("utf-8", "replace")
        for path in folder.rglob("*")
        if path.is_file()
    }
    for path in folder.rglob("*.parquet"):
        texts[str(path)] = str(pl.read_parquet(path).to_dicts())
    if (folder / "board" / "tables").is_dir():
        tables = lancedb.connect(str(folder / "board" / "tables"))
        for name in tables.list_tables().tables:
            rows = tables.open_table(name).to_arrow()
            columns = [column for column in rows.column_names if column != "vector"]
            texts[f"table {name}"] = str(rows.select(columns).to_pylist())
    return texts


def leaks(texts: dict[str, str]) -> list[tuple[str, str]]:
    """Where the token is, and in which encoding."""
    return [
        (place, encoding)
        for place, text in texts.items()
        for encoding, token in encodings(TOKEN).items()
        for written in (token, json.dumps(token)[1:-1], repr(token)[1:-1])
        if written.lower() in text.lower()
    ]


@pytest.mark.parametrize("runner", ["direct", pytest.param("flow", marks=pytest.mark.prefect)])
def test_a_secret_that_a_server_repeats_is_published_nowhere(workshop, alone, request, runner):
    entry = {"command": sys.executable, "env": {"SECRET_TOKEN": "${MY_TOKEN}"}}
    servers = {
        "echo": {**entry, "args": [str(SERVER)]},
        "failing": {**entry, "args": [str(SERVER), "fail", "--token", "${MY_TOKEN}"]},
    }
    workshop.write("mcp.json", {"mcpServers": servers})
    catalog = '[catalogs.kit]\ntype = "mcp"\npath = "mcp.json"\ntimeout = 500\n'
    workshop.configure(catalogs=catalog, board="report = true\npublic_lake = true\n")
    server = request.getfixturevalue("prefect_server") if runner == "flow" else None
    environment = server.environment if server else alone
    command = [sys.executable, "-m", "pegboard", "build", "--json"]
    done = subprocess.run(
        [*command, *([] if server else ["--no-prefect"])],
        cwd=workshop.folder,
        env=environment | {"MY_TOKEN": TOKEN},
        capture_output=True,
        text=True,
    )

    texts = texts_of(workshop.folder) | {"stdout": done.stdout, "stderr": done.stderr}
    if server:
        texts |= texts_of(server.home)
    outcome = json.loads(done.stdout)
    assert done.returncode == 0, done.stderr
    assert outcome["release"]
    assert "kit/failing" in done.stdout
    assert sum(text.count("***") for text in texts.values()) > 100
    assert leaks(texts) == []
