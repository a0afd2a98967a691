"""docs/explanation/texts.md: every strategy, part, option, default, setting, name and test that the
page gives is there.
"""

import ast
import dataclasses
import importlib
import inspect
import re
from pathlib import Path

import pytest

from benchmarks.__main__ import main as benchmarks
from pegboard.cli.main import main
from pegboard.retrieval.strategies import STRATEGIES, named_strategy
from pegboard.retrieval.strategy import PARTS, part_class
from tasks.settings.configuration import IndexSettings
from tasks.settings.enrichment import EnrichSettings
from tasks.settings.sweep import SweepSettings

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "explanation" / "texts.md"
TABLES = {"[indexes]": IndexSettings, "[enrich]": EnrichSettings, "[sweep]": SweepSettings}
PART_CLASSES = {name: part_class(stage, name) for stage, names in PARTS.items() for name in names}
VERDICTS = ("same", "adapted", "ours", "not at present")


def read_rows():
    """The cells of each mechanism: its name, where it is, the verdict, and the test."""
    lines = re.findall(r"^\|(?! mechanism|---)(.+)\|$", PAGE.read_text("utf-8"), re.MULTILINE)
    return [tuple(cell.strip() for cell in line.split("|")) for line in lines]


ROWS = read_rows()
NAMES = [row[0] for row in ROWS]
PLACES = [
    (mechanism, place.strip())
    for mechanism, where, *_ in ROWS
    for place in where.split("; ")
    if place.strip()
]


@pytest.fixture
def help_of(capsys):
    """A function that returns the help of a command."""

    def text_of(command):
        program = main
        words = command.split()[1:]
        if command.startswith("python"):
            program = benchmarks
            words = []
        with pytest.raises(SystemExit) as ended:
            program([*words, "--help"])
        assert ended.value.code == 0
        return capsys.readouterr().out

    return text_of


def check_command(command, options, help_of):
    text = help_of(command)
    if command.startswith("python"):
        assert command.split()[3] in text
    for option in options:
        assert re.search(rf"^ +{option}\b", text, re.MULTILINE), option


def check_options(fields, options):
    """Options by name, or as `name = default`."""
    for option in options:
        name, _, default = option.partition(" = ")
        assert name in fields
        assert not default or fields[name].default == ast.literal_eval(default), option


def check_strategy(name, parts):
    strategy = named_strategy(name)
    names = {part.part for part in strategy.parts()}
    for part in parts:
        field, _, value = part.partition(" = ")
        if value:
            assert getattr(strategy, field) == ast.literal_eval(value)
        else:
            assert part in names


def check_module_name(subject, members):
    module, _, member = subject.partition(":")
    loaded = importlib.import_module(module)
    value = getattr(loaded, member) if member else loaded
    parameters = inspect.signature(value).parameters if members else {}
    fields = getattr(value, "model_fields", {})
    for name in members:
        assert name in parameters or name in fields or hasattr(value, name), name


def check_place(place, help_of):
    """Fail if a place names what is not there."""
    subject, *objects = re.findall(r"`([^`]+)`", place.partition(", by ")[0])
    if subject.startswith(("pegboard ", "python -m ")):
        check_command(subject, objects, help_of)
    elif subject in TABLES:
        check_options(TABLES[subject].model_fields, objects)
    elif subject in PART_CLASSES:
        fields = {field.name: field for field in dataclasses.fields(PART_CLASSES[subject])}
        check_options(fields, objects)
    elif subject in STRATEGIES:
        check_strategy(subject, objects)
    else:
        check_module_name(subject, objects)


@pytest.mark.parametrize(("mechanism", "place"), PLACES, ids=[f"{a}: {b}" for a, b in PLACES])
def test_what_a_row_names_is_there_with_its_parts_options_and_defaults(mechanism, place, help_of):
    check_place(place, help_of)


@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_a_row_says_where_a_mechanism_is_and_which_test_shows_it(row):
    _, where, verdict, shown = row

    assert verdict.startswith(VERDICTS)
    if verdict.startswith("not at present"):
        assert (where, shown) == ("", "")
        assert len(verdict.partition(": ")[2]) > 30, "it says what the mechanism would be good for"
        return
    file, test = shown.strip("`").split("::")
    tests = ast.parse((ROOT / file).read_text("utf-8")).body
    assert where
    assert test in [node.name for node in tests if isinstance(node, ast.FunctionDef)]


def test_every_name_in_a_verdict_is_there():
    verdicts = " ".join(verdict for _, _, verdict, _ in ROWS)
    for name in re.findall(r"`([\w.]+:\w+)`", verdicts):
        check_module_name(name, [])
    options = {field.name for part in PART_CLASSES.values() for field in dataclasses.fields(part)}
    known = {*options, *PART_CLASSES, *STRATEGIES, *IndexSettings.model_fields}
    plain = re.findall(r"`([\w-]+)(?: = [^`]+)?`", verdicts)

    assert set(plain) - known - {"centroid", "modes"} == set()
    assert len(ROWS) > 50


@pytest.mark.parametrize(
    "place",
    [
        "`plan-select` with `grade`",
        "`step-loop` with `more = 6`",
        "`step-loop` with `least`",
        "`pegboard sweep` with `--sizes`",
        "`[enrich]` with `filter`",
        "`pegboard.hits:as_xml`",
        "`pegboard.records:Edge` with `weight`",
        "`hybrid-alpha` with `alpha = 0.5`",
        "`no-such-part`",
    ],
)
def test_a_claim_that_does_not_hold_is_found(place, help_of):
    with pytest.raises((AssertionError, AttributeError, ImportError)):
        check_place(place, help_of)
