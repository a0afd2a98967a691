"""docs/tutorial.md, run block by block in one folder."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.children import clean_environment

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial.md"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"(pegboard|cp|mv|sed) ")
FIGURE = re.compile(r"\d\.\d{3}\b")


def run(command, folder):
    environment = clean_environment(folder)
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def run_line(line, folder):
    if line.startswith("pegboard "):
        line = f"'{sys.executable}' -m {line}"
    return run(["sh", "-c", line], folder)


@pytest.mark.slow
def test_the_tutorial_works_as_written(tmp_path):
    exit_codes = []
    printed = ""
    figures = []
    for language, block in FENCE.findall(TUTORIAL.read_text("utf-8")):
        if language == "python" and block.startswith('"""'):
            (tmp_path / "travel.py").write_text(block, "utf-8")
        elif language == "python":
            exit_codes.append(run([sys.executable, "-c", block], tmp_path).returncode)
        elif language == "toml":
            with (tmp_path / "pegboard.toml").open("a", encoding="utf-8") as file:
                file.write(f"\n{block}")
        elif language == "json":
            (tmp_path / "golden.jsonl").write_text(block, "utf-8")
        elif COMMAND.match(block):
            done = [run_line(line, tmp_path) for line in block.splitlines()]
            exit_codes += [one.returncode for one in done]
            printed += "".join(one.stdout for one in done)
        else:
            figures += FIGURE.findall(block)

    assert [code for code in exit_codes if code] == [8]
    assert len(figures) > 10
    assert set(figures) - set(FIGURE.findall(printed)) == set()
