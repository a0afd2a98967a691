"""The rules of the house that can be counted."""

import ast
import subprocess
import sys
import tomllib
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from pegboard.serve.access.clients import Clients
from pegboard.serve.settings import load_gateway_settings
from tasks.settings.configuration import load_configuration

ROOT = Path(__file__).parents[1]
ROOMS = ("flows", "tasks", "catalogs", "index/pegboard")
MAX_FUNCTION_LINES = 100
"""Lines of the longest function accepted."""
MODULES = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]


def imported_modules(path: Path) -> set[Path]:
    """Return the modules that a module imports anywhere, also in functions and for types."""
    modules = set[Path]()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            modules |= {
                module
                for alias in node.names
                if (module := module_at(f"{node.module}.{alias.name}") or module_at(node.module))
            }
        elif isinstance(node, ast.Import):
            modules |= {module for alias in node.names if (module := module_at(alias.name))}
    return modules - {path}


def module_at(name: str) -> Path | None:
    """Return the file of one of the house's modules, by its dotted name; None for others."""
    place = ROOT.joinpath(*(["index"] if name.startswith("pegboard") else []), *name.split("."))
    for path in (place.with_suffix(".py"), place / "__init__.py"):
        if path in MODULES:
            return path
    return None


def test_imports_run_one_way():
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    assert f"Contracts: {len(contracts)} kept, 0 broken." in done.stdout


def test_no_modules_import_each_other_in_a_circle():
    imports = TopologicalSorter({path: imported_modules(path) for path in MODULES})

    try:
        imports.prepare()
    except CycleError as error:
        circle = [str(path.relative_to(ROOT)) for path in error.args[1]]
        pytest.fail(f"These modules import each other: {' -> '.join(circle)}")


def test_no_function_grows_too_long():
    lengths = {
        f"{path.relative_to(ROOT)}:{node.name}": (node.end_lineno or 0) - node.lineno + 1
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }

    assert {name: count for name, count in lengths.items() if count > MAX_FUNCTION_LINES} == {}


def test_every_module_says_what_it_is():
    texts = {str(path.relative_to(ROOT)): path.read_text("utf-8") for path in MODULES}

    assert [name for name, text in texts.items() if text and not text.startswith('"""')] == []


def test_the_example_configuration_loads():
    configuration = load_configuration(ROOT / "flows" / "pegboard.example.toml")

    assert list(configuration.catalogs) == ["functions"]
    assert configuration.uri == str(ROOT / "flows" / "board")


def test_every_commented_setting_of_the_example_exists(tmp_path, monkeypatch):
    lines = (ROOT / "flows" / "pegboard.example.toml").read_text("utf-8").splitlines()
    # A comment that is a setting or a table: what a person would uncomment. The others are
    # sentences.
    settings = [line.removeprefix("# ") for line in lines]
    meant = [line for line in settings if line.startswith("[") or " = " in line.split("#")[0]]
    (tmp_path / "pegboard.toml").write_text("\n".join(meant), "utf-8")

    configuration = load_configuration(tmp_path / "pegboard.toml")

    assert sorted(option.type for option in configuration.catalogs.values()) == [
        "functions", "mcp", "mcp-dump", "openapi", "python", "records",
    ]  # fmt: skip
    assert len(configuration.indexes) == 1
    for variable in ("SUPPORT_TOKEN", "ADMIN_TOKEN"):
        monkeypatch.setenv(variable, f"token-of-{variable}")
    gateway = load_gateway_settings(tmp_path / "pegboard.toml")
    clients = Clients(gateway.serve.clients).by_name
    assert {name: client.operator for name, client in clients.items()} == {
        "support": False,
        "admin": True,
    }
    assert {*gateway.serve.apis, *gateway.serve.python} < configuration.catalogs.keys()


def test_the_pins_name_no_machine():
    text = (ROOT / "constraints.txt").read_text("utf-8")

    assert "://" not in text
    assert "@" not in text
