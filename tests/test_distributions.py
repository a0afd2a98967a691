"""What the two distributions, `pegboard` (index/) and `pegboard-pipeline`, say about themselves."""

import subprocess
import sys
import tomllib
from importlib.metadata import metadata, version
from pathlib import Path

import pytest

import pegboard

ROOT = Path(__file__).parents[1]
FOLDERS = {"pegboard": ROOT / "index", "pegboard-pipeline": ROOT}


def project(name):
    return tomllib.loads((FOLDERS[name] / "pyproject.toml").read_text("utf-8"))["project"]


def test_the_version_is_written_once_and_agrees_everywhere():
    done = subprocess.run(
        [sys.executable, "-m", "pegboard", "--version"], capture_output=True, text=True, check=True
    )

    assert done.stdout == f"pegboard {pegboard.__version__}\n"
    assert {version(name) for name in FOLDERS} == {pegboard.__version__}
    assert all(project(name)["dynamic"] == ["version"] for name in FOLDERS)


@pytest.mark.parametrize("name", FOLDERS)
def test_each_distribution_ships_the_licence_it_names(name):
    text = (FOLDERS[name] / "LICENSE").read_text("utf-8")

    assert "Apache License\n                           Version 2.0, January 2004" in text
    assert text == (ROOT / "LICENSE").read_text("utf-8")
    assert project(name)["license"] == metadata(name)["License-Expression"] == "Apache-2.0"
    assert project(name)["license-files"] == metadata(name).get_all("License-File") == ["LICENSE"]


def test_only_the_library_can_be_uploaded_to_a_package_index():
    private = {name: "Private :: Do Not Upload" in project(name)["classifiers"] for name in FOLDERS}

    assert private == {"pegboard": False, "pegboard-pipeline": True}
