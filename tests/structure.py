"""The size and shape of the code: lines, modules, functions, and names with two meanings.

    python -m tests.structure [ROOT] [--json]

ROOT is a checkout, by default the one of this file; an older one may be named by its path."""

import argparse
import ast
import io
import json
import statistics
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

ROOMS = {
    "flows": "flows",
    "tasks": "tasks",
    "catalogs": "catalogs",
    "pegboard": "index/pegboard",
}
TESTS = "tests"
LAYOUT_TOKENS = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


@dataclass(frozen=True, slots=True)
class Structure:
    """The figures of one room.

    Attributes:
        lines: as the files are.
        code_tokens: without comments, docstrings and layout.
        longest: the longest function, by its dotted name, and its lines.
        single_importer: modules that exactly one other module of the rooms imports.
        two_meanings: public classes and functions that more than one module defines at its top
            level, with these modules.
    """

    room: str
    lines: int
    code_tokens: int
    modules: int
    functions: int
    median: float
    p95: int
    longest: tuple[str, int]
    single_importer: tuple[str, ...]
    two_meanings: dict[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Module:
    """A parsed module with its dotted name."""

    name: str
    room: str
    text: str
    tree: ast.Module


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures as a table or as JSON."""
    parser = argparse.ArgumentParser(prog="python -m tests.structure", description=__doc__)
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).parents[1])
    parser.add_argument("--json", action="store_true", help="print one JSON array")
    options = parser.parse_args(arguments)
    structures = measure(options.root)
    if options.json:
        print(json.dumps([asdict(structure) for structure in structures], indent=1))
    else:
        for line in table(structures):
            print(line)
    return 0


def measure(root: Path) -> list[Structure]:
    """Return the figures of each room, of all rooms together, and of the tests."""
    rooms = {room: read_modules(root, room, folder) for room, folder in ROOMS.items()}
    modules = [module for several in rooms.values() for module in several]
    importers = importers_of(modules)
    structures = [structure(room, several, importers) for room, several in rooms.items()]
    structures.append(structure("all", modules, importers))
    structures.append(structure(TESTS, read_modules(root, TESTS, TESTS), {}))
    return structures


def read_modules(root: Path, room: str, folder: str) -> list[Module]:
    """Return the modules of a folder, sorted by path."""
    base = root / folder
    modules: list[Module] = []
    for path in sorted(base.rglob("*.py")):
        parts = [room, *path.relative_to(base).with_suffix("").parts]
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        text = path.read_text("utf-8")
        modules.append(Module(name, room, text, ast.parse(text)))
    return modules


def structure(room: str, modules: Sequence[Module], importers: dict[str, set[str]]) -> Structure:
    """Return the figures of some modules; `importers` are those of each module in the rooms."""
    functions = sorted(function for module in modules for function in functions_of(module))
    lengths = [length for length, _ in functions]
    longest = functions[-1] if functions else (0, "")
    return Structure(
        room=room,
        lines=sum(module.text.count("\n") for module in modules),
        code_tokens=sum(code_tokens(module) for module in modules),
        modules=len(modules),
        functions=len(lengths),
        median=statistics.median(lengths) if lengths else 0,
        p95=lengths[int(0.95 * len(lengths))] if lengths else 0,
        longest=(longest[1], longest[0]),
        single_importer=tuple(
            module.name for module in modules if len(importers.get(module.name, ())) == 1
        ),
        two_meanings=two_meanings(modules) if importers else {},
    )


def functions_of(module: Module) -> Iterable[tuple[int, str]]:
    """Yield the lines and the name of every function, methods and nested ones among them."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield (node.end_lineno or node.lineno) - node.lineno + 1, f"{module.name}.{node.name}"


def code_tokens(module: Module) -> int:
    """Count the tokens without comments, docstrings and layout."""
    docstrings = {
        node.value.lineno
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    }
    return sum(
        token.type not in LAYOUT_TOKENS
        and not (token.type == tokenize.STRING and token.start[0] in docstrings)
        for token in tokenize.generate_tokens(io.StringIO(module.text).readline)
    )


def importers_of(modules: Sequence[Module]) -> dict[str, set[str]]:
    """Return which modules import each module."""
    names = {module.name for module in modules}
    importers: dict[str, set[str]] = defaultdict(set)
    for module in modules:
        for node in ast.walk(module.tree):
            imported: list[str] = []
            if isinstance(node, ast.Import):
                imported = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                imported = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            for name in imported:
                if name in names and name != module.name:
                    importers[name].add(module.name)
    return importers


def two_meanings(modules: Sequence[Module]) -> dict[str, tuple[str, ...]]:
    """Return the public names that several modules define, with these modules."""
    definitions: dict[str, list[str]] = defaultdict(list)
    for module in modules:
        for node in module.tree.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and (
                not node.name.startswith("_")
            ):
                definitions[node.name].append(module.name)
    return {
        name: tuple(places) for name, places in sorted(definitions.items()) if len(set(places)) > 1
    }


def table(structures: Sequence[Structure]) -> list[str]:
    """Return the figures as aligned lines, then the names with two meanings."""
    header = ("", "lines", "tokens", "modules", "functions", "median")
    header += ("p95", "longest", "one importer", "two meanings", "longest function")
    rows = [header]
    for item in structures:
        figures = (item.lines, item.code_tokens, item.modules)
        figures += (item.functions, item.median, item.p95, item.longest[1])
        figures += (len(item.single_importer), len(item.two_meanings))
        rows.append((item.room, *(f"{figure:,g}" for figure in figures), item.longest[0]))
    widths = [max(len(row[column]) for row in rows) for column in range(len(header))]
    lines = [
        "  ".join(
            cell.ljust(width) if column in (0, len(header) - 1) else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    repeated = next(item.two_meanings for item in structures if item.room == "all")
    return [*lines, *(f"{name}: {', '.join(places)}" for name, places in repeated.items())]


if __name__ == "__main__":
    sys.exit(main())
