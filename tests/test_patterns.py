"""Every regular expression of the packages takes linear time on texts that are made to slow it
down.

The texts are made of the pattern itself: of a text that it matches, the part that a quantifier
repeats is repeated on, with what stands before it or without, and a character follows that ends the
match."""

import ast
import importlib
import re
from collections import defaultdict
from collections.abc import Iterator, Set
from dataclasses import fields, is_dataclass
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
EXAMPLES = 2
MANY = 10
"""Repetitions from which a quantifier may make a pattern slow."""
UNNAMED = {
    "catalogs.openapi.document: re.compile(f'(?:{pattern})\\\\Z')": "one way to match",
    "pegboard.extras: re.match(f'{re.escape(package)}(?![\\\\w-])', requirement)": "a literal",
    "pegboard.text.redaction: re.compile(f\"{boundary}(?:{'|'.join(shapes)})\")": "its results are",
    "pegboard.retrieval.rules.clauses: re.compile(closing)": "its results are",
    "pegboard.text.secret_values: re.compile(ignored.join(map(re.escape, encoding)), "
    "re.IGNORECASE)": "its quantifiers give nothing back",
    "pegboard.store.failures: re.search(failure.signs, text)": "alternatives without quantifiers",
    "tasks.lake.formats: re.fullmatch(kind.path, path)": "a segment of a path ends at its slash",
    "tasks.safety.hostile: re.compile(shape.replace('\\n', ''))": "its results are",
}
"""Calls whose pattern no module names, and why they are not tried here."""
METHODS = frozenset({"match", "fullmatch", "search"})
USED_BY = {
    "pegboard.documents._SIGNATURE": "fullmatch",
    "pegboard.llm.prompts._FRONT": "match",
    "pegboard.naming._CAMEL_CASE": "match",
    "pegboard.retrieval.llm.replies._REFUSAL": "match",
    "tasks.dependencies.infer._NAME": "search",
    "tasks.enrichment.replies._IDENTIFIER": "fullmatch",
    "tasks.gate.rules.RULE": "fullmatch",
}
"""Patterns that would be too slow for other methods than the one by which they are used."""


def test_every_pattern_takes_linear_time_on_hostile_texts():
    slow = {
        pattern.pattern[:200]: text
        for pattern, methods in uses()[0].items()
        if (text := hostile_text(pattern, methods)) is not None
    }

    assert slow == {}


def test_every_call_names_its_pattern_where_the_test_finds_it():
    assert uses()[1] == UNNAMED.keys()


@pytest.mark.parametrize("pattern", [r"\s+$", r"(a+)+b", r"a.*b.*c"])
def test_a_pattern_without_bounds_is_noticed(pattern):
    assert hostile_text(re.compile(pattern), METHODS) is not None


def hostile_text(pattern: re.Pattern[str], methods: Set[str]) -> tuple[str, str, str] | None:
    """Return the head, the repeated part and the end of a text on which the pattern is too slow."""

    def work(text: str) -> None:
        for method in methods - {"search"}:
            getattr(pattern, method)(text)
        if "search" in methods:
            for _ in pattern.finditer(text):
                pass

    for head, part in _repetitions(pattern):
        for end in ("", "\x00"):

            def text(length: int, head: str = head, part: str = part, end: str = end) -> str:
                return head + part * max(1, (length - len(head)) // len(part)) + end

            if grows_too_fast(work, text):
                return head, part, end
    return None


def _repetitions(pattern: re.Pattern[str]) -> set[tuple[str, str]]:
    """Return pairs of a text and of what may be repeated after it."""
    tree = re._parser.parse(pattern.pattern, pattern.flags & ~re.UNICODE)
    pairs: set[tuple[str, str]] = set()
    for number in range(EXAMPLES):
        example = Example(Random(f"{number} {pattern.pattern!a}"))
        example.add(tree)
        if example.repeated:
            pairs.add(("", example.text))
        for start, end in example.repeated:
            text = example.text
            pairs |= {(text[:start], text[start:end]), ("", text[start:end]), ("", text[:end])}
    return {(head, part) for head, part in pairs if part}


class Example:
    """A text that a pattern matches, but for what it looks ahead at.

    Attributes:
        repeated: where what a quantifier repeats begins and ends.
    """

    def __init__(self, chance: Random) -> None:
        self.text = ""
        self.repeated: list[tuple[int, int]] = []
        self._chance = chance

    def add(self, tree: Any) -> None:
        for operation, value in tree:
            match str(operation):
                case "LITERAL":
                    self.text += chr(value)
                case "NOT_LITERAL":
                    self.text += "a" if value != ord("a") else "b"
                case "ANY":
                    self.text += self._chance.choice("a .")
                case "IN":
                    self.text += _member(value, self._chance)
                case "BRANCH":
                    self.add(self._chance.choice(value[1]))
                case "SUBPATTERN":
                    self.add(value[3])
                case "ATOMIC_GROUP":
                    self.add(value)
                case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                    self._add_repeated(*value)
                case "ASSERT" if self._chance.random() < 0.3:
                    self.add(value[1])
                case _:  # anchors, and what must not follow
                    pass

    def _add_repeated(self, least: int, most: Any, body: Any) -> None:
        start = len(self.text)
        many = int(most) >= MANY
        for _ in range(self._chance.randint(max(least, many), min(int(most), least + 2))):
            begin = len(self.text)
            self.add(body)
            if many:
                self.repeated += {(begin, len(self.text)), (start, len(self.text))}


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


def uses() -> tuple[dict[re.Pattern[str], set[str]], set[str]]:
    """Return the patterns of the packages with the methods by which they are used, and the calls
    whose pattern was not found.
    """
    patterns: dict[re.Pattern[str], set[str]] = defaultdict(set)
    missing: set[str] = set()
    for name, path in MODULES:
        tree = ast.parse(path.read_text("utf-8"))
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError:  # an adapter for a package that is not installed here
            assert name.startswith("pegboard.integrations.")
            assert not any(True for _ in _calls(tree))
            continue
        for variable, value in vars(module).items():
            method = USED_BY.get(f"{name}.{variable}")
            for pattern in _patterns_within(value, set()):
                patterns[pattern] |= {method} if method else METHODS
        named = set(patterns)
        for call in _calls(tree):
            try:
                pattern = _compiled(call, vars(module))
            except (NameError, AttributeError):
                missing.add(f"{name}: {ast.unparse(call)}")
                continue
            if pattern not in named:
                patterns[pattern].add(call.func.attr if call.func.attr in ANCHORED else "search")
    return patterns, missing


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
    return _of_text(re.compile(*values))


def _of_text(pattern: re.Pattern[Any]) -> re.Pattern[str]:
    """Return a pattern for bytes as one for text, whose steps are the same."""
    if isinstance(pattern.pattern, str):
        return pattern
    return re.compile(pattern.pattern.decode("latin-1"), pattern.flags | re.ASCII)


def _patterns_within(value: Any, seen: set[int]) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern):
        yield _of_text(value)
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
