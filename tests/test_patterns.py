"""Every regular expression of the packages takes linear time on texts that are made to slow it
down.

The texts are made of the pattern itself: a part of a text that it matches, then another part again
and again, then a character that ends the match."""

import ast
import importlib
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.linear import grows_too_fast

ROOT = Path(__file__).parents[1]
FOLDERS = {"flows": ROOT, "tasks": ROOT, "catalogs": ROOT, "pegboard": ROOT / "index"}
MODULES = [
    (".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"), path)
    for room, root in FOLDERS.items()
    for path in sorted((root / room).rglob("*.py"))
    if path.name != "__main__.py"
]
ANCHORED = {"match", "fullmatch"}
SCANNING = {"search", "sub", "subn", "split", "findall", "finditer"}
TRIALS = 40
NOT_ALWAYS: dict[str, str] = {}
"""Patterns that may take longer, by their beginning, and why."""
OF_ARGUMENTS: dict[str, str] = {}
"""Calls whose pattern no module names, and why."""


@dataclass(frozen=True)
class Use:
    """A pattern, how it is used, and the module that names it."""

    pattern: re.Pattern[str]
    methods: frozenset[str]
    module: str


def test_every_pattern_takes_linear_time_on_hostile_texts():
    slow = {
        f"{use.module}: {use.pattern.pattern[:200]}": text
        for use in uses()[0]
        if not any(use.pattern.pattern.startswith(start) for start in NOT_ALWAYS)
        if (text := hostile_text(use)) is not None
    }

    assert slow == {}


def test_every_call_names_its_pattern_where_the_test_finds_it():
    assert uses()[1] - OF_ARGUMENTS.keys() == set()


@pytest.mark.parametrize(
    "pattern",
    [r"\s+$", r"eyJ[\w-]*\.", r"(a+)+b", r"a.*b.*c", r"(?:<[^>]*)+>", r"x*y*x*!", r"(\w|a)*;"],
)
def test_a_pattern_without_bounds_is_noticed(pattern):
    use = Use(re.compile(pattern), frozenset({"search"}), "here")

    assert hostile_text(use) is not None


@pytest.mark.parametrize(
    "pattern", [r"(?<!\s)\s+$", r"\beyJ\w{1,50}\.", r"a+", r"(?:a|b)*", r"\d+"]
)
def test_a_linear_pattern_is_not(pattern):
    use = Use(re.compile(pattern), frozenset({"search"}), "here")

    assert hostile_text(use) is None


def hostile_text(use: Use) -> str | None:
    """Return the head, the repeated part and the end of a text on which the pattern is too slow."""
    chance = Random(ascii(use.pattern.pattern))
    tree = re._parser.parse(use.pattern.pattern, use.pattern.flags & ~re.UNICODE)

    def work(text: str) -> None:
        for method in use.methods & ANCHORED:
            getattr(use.pattern, method)(text)
        if use.methods & SCANNING:
            for _ in use.pattern.finditer(text):
                pass

    for trial in range(TRIALS):
        text = "".join(example(tree, chance))
        start = 0 if trial % 2 else chance.randrange(len(text) + 1)
        end = chance.randint(start + 1, max(start + 1, len(text)))
        head, part = text[:start], text[start:end]
        for ending in ("", "\x00"):
            if part and grows_too_fast(
                work,
                lambda length, head=head, part=part, ending=ending: (
                    head + part * (length // len(part)) + ending
                ),
            ):
                return repr((head, part, ending))
    return None


def example(tree: Any, chance: Random) -> Iterator[str]:
    """Yield the characters of a text that the pattern matches, but for what it looks ahead at."""
    for operation, value in tree:
        match str(operation):
            case "LITERAL":
                yield chr(value)
            case "NOT_LITERAL":
                yield "a" if value != ord("a") else "b"
            case "ANY":
                yield chance.choice("a .")
            case "IN":
                yield _member(value, chance)
            case "BRANCH":
                yield from example(chance.choice(value[1]), chance)
            case "SUBPATTERN":
                yield from example(value[3], chance)
            case "ATOMIC_GROUP":
                yield from example(value, chance)
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                least, most, body = value
                for _ in range(chance.randint(least, min(int(most), least + 2))):
                    yield from example(body, chance)
            case "ASSERT":
                yield from example(value[1], chance) if chance.random() < 0.3 else ()
            case _:  # anchors, and what must not follow
                pass


CATEGORIES = {
    "CATEGORY_DIGIT": "07",
    "CATEGORY_SPACE": " \n",
    "CATEGORY_WORD": "a_0",
    "CATEGORY_NOT_DIGIT": "a-",
    "CATEGORY_NOT_SPACE": "a-",
    "CATEGORY_NOT_WORD": " -",
}


def _member(items: Any, chance: Random) -> str:
    members = "".join(
        chr(value)
        if str(kind) == "LITERAL"
        else chr(value[0]) + chr(value[1])
        if str(kind) == "RANGE"
        else CATEGORIES.get(str(value), "")
        for kind, value in items
    )
    if str(items[0][0]) != "NEGATE":
        return chance.choice(members)
    return chance.choice([mark for mark in "a0 -.<é\n\x02" if mark not in members])


def uses() -> tuple[list[Use], set[str]]:
    """Return the patterns of the packages, and the calls whose pattern was not found."""
    trees = {name: ast.parse(path.read_text("utf-8")) for name, path in MODULES}
    methods = _methods(trees.values())
    patterns: dict[tuple[str, int], list[tuple[re.Pattern[str], set[str], str]]] = defaultdict(list)
    missing: set[str] = set()
    for name, tree in trees.items():
        module = importlib.import_module(name)
        for variable, value in vars(module).items():
            for pattern in _patterns_within(value, set()):
                used = methods[variable] or {"search"}
                patterns[pattern.pattern, pattern.flags].append((pattern, used, name))
        known = {pattern for pattern, _ in patterns}
        for call in _calls(tree):
            text = ast.unparse(call)
            try:
                pattern = _compiled(call, vars(module))
            except (NameError, AttributeError):
                missing.add(f"{name}: {text}")
                continue
            if pattern.pattern not in known:
                used = {"search" if call.func.attr == "compile" else call.func.attr}
                patterns[pattern.pattern, pattern.flags].append((pattern, used, name))
    return [
        Use(several[0][0], frozenset().union(*(used for _, used, _ in several)), several[0][2])
        for several in patterns.values()
    ], missing


def _calls(tree: ast.Module) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == "re"
            and node.func.attr in {"compile", *ANCHORED, *SCANNING}
        ):
            yield node


def _compiled(call: ast.Call, names: dict[str, Any]) -> re.Pattern[str]:
    """Return the pattern of a call, of whose arguments only the pattern and its flags matter."""
    flags = [keyword.value for keyword in call.keywords if keyword.arg == "flags"]
    place = {"compile": 1, "sub": 4, "subn": 4, "split": 3}.get(call.func.attr, 2)
    flags += call.args[place : place + 1]
    values = [eval(ast.unparse(value), dict(names)) for value in (call.args[0], *flags)]
    return re.compile(*values)


def _methods(trees: Any) -> dict[str, set[str]]:
    """Return the methods of patterns that are called, by the name that the pattern has there."""
    methods: dict[str, set[str]] = defaultdict(set)
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr in ANCHORED | SCANNING:
                owner = node.value
                if isinstance(owner, ast.Name | ast.Attribute):
                    methods[owner.id if isinstance(owner, ast.Name) else owner.attr].add(node.attr)
    return methods


def _patterns_within(value: Any, seen: set[int]) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern):
        if isinstance(value.pattern, str):
            yield value
        return
    if id(value) in seen or isinstance(value, type):
        return
    seen.add(id(value))
    inner: list[Any] = []
    if isinstance(value, dict):
        inner = [*value.keys(), *value.values()]
    elif isinstance(value, tuple | list | set | frozenset):
        inner = list(value)
    elif is_dataclass(value):
        inner = [getattr(value, field.name, None) for field in fields(value)]
    for part in inner:
        yield from _patterns_within(part, seen)
