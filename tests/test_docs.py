"""The documents: links lead somewhere, and the references are complete."""

import dataclasses
import doctest
import importlib
import inspect
import json
import re
import tomllib
from pathlib import Path

import pytest
from pydantic import BaseModel

import pegboard
from catalogs.shared.kinds import GROUP, source_kind, source_kinds
from catalogs.shared.listing import ListingBuilder
from pegboard.cli.main import main
from pegboard.retrieval.llm.questions import LlmPart
from pegboard.retrieval.strategies import STRATEGIES, named_strategy
from pegboard.retrieval.strategy import PARTS, part_class
from pegboard.store.contract import CONTRACT
from tasks.settings.configuration import Configuration
from tasks.settings.sweep import SweepSettings

ROOT = Path(__file__).parents[1]
PAGES = [
    *ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "examples/README.md",
    ROOT / "index/README.md",
]  # fmt: skip
REFERENCE = ROOT / "docs" / "reference"


def without_code(text):
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


def anchors(page):
    headings = re.findall(r"^#+ (.+)$", without_code(page.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_to_a_file_and_a_heading(page):
    links = re.findall(r"\]\(([^)\s]+)\)", without_code(page.read_text("utf-8")))
    broken = []
    for link in links:
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)

    assert broken == []


def test_no_text_installs_pegboard_from_a_package_index():
    """The name is free for anyone to register: only a checkout is a safe source."""
    rooms = ("flows", "tasks", "catalogs", "index", "examples")
    modules = [module for room in rooms for module in (ROOT / room).rglob("*.py")]
    from_index = re.compile(
        r"(?:pip install|uv add|uvx|pipx)\b[^\n`]* ['\"]?pegboard(?![\w/.-])|pegboard\[[a-z]"
    )

    commands = {path: from_index.findall(path.read_text("utf-8")) for path in PAGES + modules}
    assert {path: texts for path, texts in commands.items() if texts} == {}


def keys_of(model):
    for name, field in model.model_fields.items():
        yield name
        for nested in re.findall(r"tasks\.settings\.\w+\.(\w+)", str(field.annotation)):
            yield from keys_of(next(m for m in subclasses(BaseModel) if m.__name__ == nested))


def subclasses(model):
    for derived in model.__subclasses__():
        yield derived
        yield from subclasses(derived)


@pytest.mark.parametrize("model", [Configuration, SweepSettings], ids=lambda model: model.__name__)
def test_the_configuration_reference_has_every_setting(model):
    text = (REFERENCE / "configuration.md").read_text("utf-8")
    tables = set(re.findall(r"^## \[+([\w.]+)", text, re.MULTILINE))

    documented = {*re.findall(r"`(\w+)`", text), *(part for t in tables for part in t.split("."))}

    assert set(keys_of(model)) - documented - {"file"} == set()


@pytest.mark.parametrize("kind", source_kinds())
def test_the_configuration_reference_has_every_option_of_a_source(kind):
    text = (REFERENCE / "configuration.md").read_text("utf-8")
    section = text.partition(f'### type = "{kind}"')[2].partition("\n##")[0]

    common = text.partition("## [catalogs.NAME]")[2].partition("\n###")[0]

    documented = set(re.findall(r"`(\w+)`", section + common))

    assert set(source_kind(kind).options.model_fields) - documented == set()


def test_the_strategies_reference_has_every_strategy_part_and_option():
    text = (REFERENCE / "strategies.md").read_text("utf-8")
    names = {*STRATEGIES, *(part for parts in PARTS.values() for part in parts)}

    options = {
        field.name
        for stage, parts in PARTS.items()
        for part in parts
        for field in dataclasses.fields(part_class(stage, part))
    }

    assert (names | options) - set(re.findall(r"`([\w-]+)`", text)) == set()


def test_the_strategies_reference_has_the_llm_calls_of_every_strategy():
    text = (REFERENCE / "strategies.md").read_text("utf-8")
    table = text.partition("## Built-in strategies")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([\w-]+)`[^|]*\|[^|]*\|([^|]*)\|[^|]*\|$", table, re.MULTILINE)
    written = {name: calls.strip() or "0" for name, calls in rows}

    assert written == {name: named_strategy(name).llm_calls() for name in STRATEGIES}


def test_the_strategies_reference_lists_the_strategies_that_ask_no_llm():
    text = (REFERENCE / "strategies.md").read_text("utf-8")
    sentence = re.search(r"fall back to rules\. ([^\n]*) have none\.$", text, re.MULTILINE)[1]

    asks_none = {
        name
        for name in STRATEGIES
        if not any(isinstance(part, LlmPart) for part in named_strategy(name).parts())
    }

    assert set(re.findall(r"`([\w-]+)`", sentence)) == asks_none


def test_the_table_contract_names_the_version_that_the_library_reads():
    text = (REFERENCE / "table-contract.md").read_text("utf-8")

    assert f"\nVersion {CONTRACT}. " in text
    assert f"If `contract` is not {CONTRACT}, stop with an error." in text
    assert f"\n| contract | int32 | {CONTRACT} |\n" in text


@pytest.fixture
def commands(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    return re.findall(r"^    ([a-z][a-z-]*)\b", capsys.readouterr().out, re.MULTILINE)


def test_the_command_line_reference_has_every_command(commands):
    text = (REFERENCE / "command-line.md").read_text("utf-8")

    assert {command for command in commands if f"`pegboard {command}" not in text} == set()
    assert "build" in commands


class AnyOutput(doctest.OutputChecker):
    """Takes any output where an example shows none."""

    def check_output(self, want, got, optionflags):
        return not want or super().check_output(want, got, optionflags)


EXAMPLES = [
    ".".join(path.relative_to(ROOT / "index").with_suffix("").parts)
    for path in sorted((ROOT / "index" / "pegboard").rglob("*.py"))
    if re.search(r"^ +>>> ", path.read_text("utf-8"), re.MULTILINE)
]


@pytest.mark.parametrize("module", EXAMPLES)
def test_the_examples_of_a_docstring_run(module, own_board_uri, monkeypatch):
    store = pegboard.ReleaseStore(own_board_uri)
    live = store.get(store.channel().release)
    store.add(dataclasses.replace(live, id="f" * 12, digest="f" * 64))
    store.promote("f" * 12)
    monkeypatch.chdir(Path(own_board_uri).parent)
    Path("board").symlink_to(own_board_uri)

    def convert_currency(amount: float) -> None: ...
    def send_email(to: str) -> None: ...

    functions = {"convert_currency": convert_currency, "send_email": send_email}
    names = {"pegboard": pegboard, "board": pegboard.open("./board"), **functions}
    tests = doctest.DocTestFinder().find(importlib.import_module(module), extraglobs=names)
    runner = doctest.DocTestRunner(AnyOutput(), verbose=False, optionflags=doctest.ELLIPSIS)
    failures = []

    for test in tests:
        runner.run(test, out=failures.append)

    assert runner.summarize(verbose=False).attempted > 0
    assert "".join(failures) == ""


def plug_in_page():
    page = (ROOT / "docs" / "how-to" / "sources.md").read_text("utf-8")
    return page.partition("## Write a source plug-in")[2].partition("\n## ")[0]


def test_the_source_plug_in_of_the_page_runs_and_isolates_its_failures(tmp_path):
    module = {}
    exec(re.search(r"```python\n(.*?)```", plug_in_page(), re.DOTALL)[1], module)
    blocks = re.findall(r"```toml\n(.*?)```", plug_in_page(), re.DOTALL)
    distribution, configuration = map(tomllib.loads, blocks)
    cards = json.loads(f"[{re.search(r'cards such as `([^`]+)`', plug_in_page())[1]}]")
    folder = tmp_path / "scripts"
    folder.mkdir()
    (folder / "good.json").write_text(json.dumps([*cards, {"team": "no purpose"}]), "utf-8")
    (folder / "retired.json").write_text(json.dumps([cards[0] | {"retired": True}]), "utf-8")
    (folder / "torn.json").write_text("[{", "utf-8")
    options = module["source"].options(**configuration["catalogs"]["scripts"])
    builder = ListingBuilder("kit", tmp_path)

    module["source"].read(builder, options)
    listing = builder.build()

    assert [tool.id for tool in listing.tools] == ["kit/billing/refund"]
    assert listing.tools[0].description == "Pay an order back"
    assert [rejected.where for rejected in listing.rejected] == ["good.json[1]", "retired.json[0]"]
    assert [text.partition(": ")[0] for text in listing.unreadable] == [str(folder / "torn.json")]
    assert len(module["source"].inputs(tmp_path, options)) == 3
    assert distribution["project"]["entry-points"] == {GROUP: {options.type: "cards:source"}}


def test_the_plug_in_page_has_the_methods_of_the_builder_with_their_parameters():
    documented = re.findall(r"^\| `(?:with )?(\w+)\(([^)]*)\):?` \|", plug_in_page(), re.MULTILINE)

    assert {name for name, _ in documented} == {
            "agent", "tool", "reject", "notice", "fail", "record", "file",
        }  # fmt: skip
    for name, parameters in documented:
        signature = inspect.signature(getattr(ListingBuilder, name))
        assert parameters.replace("=", "").split(", ") == [*signature.parameters][1:], name


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_a_page_about_the_code_names_files_that_exist(page):
    text = (ROOT / page).read_text("utf-8")
    rooms = "index|flows|tasks|catalogs|benchmarks|examples|tests|docs"
    paths = re.findall(rf"`((?:{rooms})/[^`<]*)`", text)

    assert len(paths) > 20
    assert [path for path in paths if not (ROOT / path).exists()] == []
