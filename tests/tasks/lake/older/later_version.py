"""A later version of Pegboard: a copy of the source with a further column of tools, and builds by
it.

The edits are those of "A column of tools" in CONTRIBUTING.md. Each is made in the one file that has
its text, wherever that file is."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[4]
PACKAGES = ("flows", "tasks", "catalogs", "index/pegboard")
EDITS = [
    # Tool.title, which its digest covers.
    (
        r"(?m)^(    enrichment: Enrichment \| None = None\n    flags: tuple.*\n)",
        r'\1    title: str = ""\n',
    ),
    (
        r'(?m)^(            "tags": sorted\(set\(self\.tags\)\),\n)',
        r'\1            "title": self.title or self.name.title(),\n',
    ),
    # The column of CATALOG_TOOL, and the number of the contract.
    (r'(?m)^(    Column\("tags", "texts"\),\n)', r'\1    Column("title"),\n'),
    (r"(?m)^CONTRACT = (\d+)$", r"CONTRACT = \1 + 1"),
    # The row of a tool, whose title the sources would fill.
    (
        r'(?m)^(        "tags": tool\.tags,\n)',
        r'\1        "title": tool.title or tool.name.title(),\n',
    ),
]
BUILD = "import json, sys; from flows.build import build; print(json.dumps(build(sys.argv[1])))"


def make_later_version(folder: Path) -> Path:
    """Copy the packages of this checkout into a folder and add the column `title`."""
    for package in PACKAGES:
        shutil.copytree(
            ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    sources = {path: path.read_text("utf-8") for path in folder.rglob("*.py")}
    for pattern, replacement in EDITS:
        files = [path for path, text in sources.items() if re.search(pattern, text)]
        assert len(files) == 1, f"{pattern} is in {len(files)} files, expected one"
        sources[files[0]] = re.sub(pattern, replacement, sources[files[0]])
        files[0].write_text(sources[files[0]], "utf-8")
    return folder


def build_with(version: Path, configuration: Path) -> tuple[dict[str, Any], str]:
    """Build a configuration with the code of a folder; returns the outcome and what was logged."""
    paths = os.pathsep.join([str(version), str(version / "index")])
    result = subprocess.run(
        [sys.executable, "-c", BUILD, str(configuration)],
        cwd=version,
        env={**os.environ, "PYTHONPATH": paths, "OPENAI_API_KEY": "unused"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout), result.stderr
