"""The rules of the house that can be counted."""

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

from pegboard.serve.access import AccessRules
from pegboard.serve.settings import load_gateway_settings
from tasks.settings.configuration import load_configuration

ROOT = Path(__file__).parents[1]
ROOMS = ("flows", "tasks", "catalogs", "index/pegboard")
MAX_FUNCTION_LINES = 100
LINE_BUDGETS = {
    "flows": 2299,
    "tasks": 12985,
    "catalogs": 3486,
    "index/pegboard": 26380,
    "benchmarks": 6119,
    "tests": 35689,
}
"""Lines of Python in each room. They only fall: what is added is paid for by what it replaces, or
is a capability that users asked for, with a budget of its own.
"""
CAPABILITIES = {
    "skills, agent cards, registries": (
        463,
        ("catalogs/skills.py", "catalogs/a2a.py", "catalogs/mcp/registry.py"),
    ),
    "lint": (1061, ("tasks/lint", "flows/cli/lint.py", "benchmarks/real/flaws.py")),
    "lock, replay, calls so far": (
        704,
        (
            "tasks/safety/lock.py",
            "flows/cli/lock.py",
            "index/pegboard/evaluation/replay.py",
            "index/pegboard/cli/replay.py",
            "index/pegboard/retrieval/called.py",
            "tasks/golden/sequences.py",
        ),
    ),
}
"""Lines and modules of capabilities that span rooms; they do not count for the rooms."""
MODULES = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]


def lines_of(path: Path) -> int:
    return path.read_text("utf-8").count("\n")


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


def modules_of(place: str) -> set[Path]:
    path = ROOT / place
    return {path} if path.suffix else set(path.rglob("*.py"))


def test_no_room_and_no_capability_grows_beyond_its_budget():
    own = {name: set().union(*map(modules_of, held)) for name, (_, held) in CAPABILITIES.items()}
    rooms = {room: modules_of(room) - set().union(*own.values()) for room in LINE_BUDGETS}
    budgets = LINE_BUDGETS | {name: lines for name, (lines, _) in CAPABILITIES.items()}

    sizes = {name: sum(map(lines_of, paths)) for name, paths in (rooms | own).items()}

    assert {name: size for name, size in sizes.items() if size > budgets[name]} == {}


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
    clients = AccessRules(gateway.serve.clients).clients
    assert {name: client.operator for name, client in clients.items()} == {
        "support": False,
        "admin": True,
    }
    assert {*gateway.serve.apis, *gateway.serve.python} < configuration.catalogs.keys()


def test_the_pins_name_no_machine():
    text = (ROOT / "constraints.txt").read_text("utf-8")

    assert "://" not in text
    assert "@" not in text
