"""pegboard.toml: defaults, and all problems in one message."""

import re
from pathlib import Path

import pytest

from pegboard.documents import DEFAULT_PARTS, PARTS
from pegboard.encoders import DEFAULT_ENCODER
from pegboard.errors import ConfigurationError
from pegboard.store.storage import storage_options
from tasks.settings.configuration import load_configuration
from tasks.settings.enrichment import MEASURED_PRODUCTS

MINIMAL = '[board]\nuri = "board"\n\n[catalogs.tools]\ntype = "functions"\npath = "tools.json"\n'
README = Path(__file__).parents[3] / "README.md"


@pytest.fixture
def load(tmp_path):
    def load(text):
        (tmp_path / "pegboard.toml").write_text(text, "utf-8")
        return load_configuration(tmp_path / "pegboard.toml")

    return load


def problems(load, text):
    with pytest.raises(ConfigurationError) as error:
        load(text)
    return str(error.value)


def test_a_minimal_file_has_one_index_with_the_embedded_encoder(load, tmp_path):
    configuration = load(MINIMAL)
    (index,) = configuration.indexes

    assert (index.name, index.table, index.encoder) == ("full", "emb_full", DEFAULT_ENCODER)
    assert (index.shape, index.questions, index.options) == ("centroid", 10, {})
    assert index.parts == DEFAULT_PARTS == tuple(part for part in PARTS if part != "agent")
    assert (configuration.default, configuration.board.channel) == ("full", "live")
    assert (list(configuration.catalogs), configuration.enrich) == (["tools"], None)
    assert configuration.uri == str(tmp_path / "board")


def test_the_examples_of_the_readme_load(load):
    examples = re.findall(r"```toml\n(.*?)```", README.read_text("utf-8"), re.DOTALL)

    assert [list(load(example).catalogs) for example in examples if "[board]" in example] != []


def test_addresses_are_unchanged_and_paths_count_from_the_folder_of_the_file(
    load, tmp_path, monkeypatch
):
    for uri in ("s3://bucket/board", "az://container/board", "gs://bucket/a/b"):
        assert load(MINIMAL.replace('"board"', f'"{uri}"')).uri == uri
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")

    configuration = load(MINIMAL.replace('"board"', '"../boards/one"'))
    assert configuration.uri == str(tmp_path.parent / "boards" / "one")
    assert load_configuration("../pegboard.toml").base == tmp_path


def test_all_problems_are_in_one_message_each_with_its_place(load):
    message = problems(
        load,
        """
        colour = "red"
        [board]
        chanel = "live"
        [catalogs."bad name"]
        type = "functions"
        path = "x.json"
        [catalogs.odd]
        type = "nosuch"
        [catalogs.loose]
        type = "functions"
        pth = "x.json"
        [catalogs.untyped]
        path = "x.json"
        [[indexes]]
        name = "a"
        parts = ["title"]
        shape = "double"
        questions = -1
        [enrich]
        modle = "m"
        products = ["summary"]
        budget_usd = -1
        api_key_env = "sk-123"
        language = "English"
        [untrusted]
        flagged = "drop"
        [overrides."kit/git/a"]
        """,
    )

    assert message.splitlines()[0].endswith("pegboard.toml has 21 problems:")
    for line in (
        "catalogs.bad name: expected a name of letters, digits",
        "catalogs.odd.type: ",
        "catalogs.loose.path: missing",
        "catalogs.loose.pth: no such setting",
        "catalogs.untyped.type: expected the kind of source",
        "board.uri: missing",
        "board.chanel: no such setting",
        "indexes.0.parts.0: Input should be 'name'",
        "indexes.0.shape: Input should be 'centroid', 'single' or 'multi' (got 'double')",
        "indexes.0.questions: Input should be greater than or equal to 0 (got -1)",
        "enrich.model: missing",
        "enrich.modle: no such setting",
        "enrich.products.0: ",
        "enrich.budget_usd: ",
        "enrich.api_key_env: expected the name of an environment variable",
        "enrich.language: ",
        "untrusted.flagged: ",
        "overrides.kit/git/a: expected description, examples, arguments, tags, dependencies or "
        "skip",
        "colour: no such setting",
    ):
        assert f"\n  - {line}" in message
    assert message.splitlines()[-1] == "`pegboard init example.toml` writes a commented example."


INDEX = MINIMAL + "[[indexes]]\n"
RUN = MINIMAL + "[run]\n"
SOURCE_NEEDED = "catalogs: expected at least one source"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", SOURCE_NEEDED),
        *(
            (MINIMAL.replace("[catalogs.tools]", f'[catalogs."{name}"]'), f"catalogs.{name}: expec")
            for name in ("a/b", "a b", "-a", ".a", "天気", "a" * 65, "", "a'b", "../up")
        ),
        *(
            (f'{INDEX}name = "{name}"\n', "indexes.0.name: ")
            for name in ("Full", "1st", "a-b", "a b", "a" * 41, "天気", "a.b", "")
        ),
        ("indexes = []\n" + MINIMAL, "indexes: expected at least one, or leave it out"),
        (f'{INDEX}name = "a"\n[[indexes]]\nname = "a"\n', "indexes: two are named 'a'"),
        (f"{INDEX}parts = []\n", "indexes.0.parts: Tuple should have at least 1 item"),
        ('default_index = "b"\n' + MINIMAL, "default_index: no index 'b'; expected one of full"),
        (MINIMAL + "[board.keep]\nreleases = 0\n", "board.keep.releases: Input should be greater"),
        (MINIMAL + "[graph]\nmin_confidence = 2\n", "graph.min_confidence: Input should be less"),
        (MINIMAL + '[find]\nstrategy = "magic"\n', "find.strategy: "),
        (MINIMAL + '[find.strategy]\nname = "mine"\ndepth = 0\n', "'depth' is 0"),
        (
            MINIMAL + '[find.strategy]\nname = "mine"\nindexes = ["fine"]\n',
            "find.strategy: no index 'fine'; expected one of full",
        ),
        (MINIMAL + "[golden]\n", "golden.queries: missing"),
        (f'{RUN}engine = "proceses"', "did you mean 'processes'?"),
        (f'{RUN}engine = "ray"', "'local', 'processes' or 'dask'"),
        (f'{RUN}engine = "processes"\nworkers = 0', "run.workers: Input should be greater"),
        (f"{RUN}workers = 2", 'engine = "local" has none; set engine to "processes"'),
        (f'{RUN}engine = "dask"', 'the scheduler of engine = "dask", as in tcp://scheduler:8786'),
        (f'{RUN}engine = "dask"\naddress = "scheduler"', "run.address: "),
        (MINIMAL + "[bord]\n", "bord: no such setting; did you mean 'board'?"),
        (MINIMAL.replace("functions", "functoins"), "did you mean 'functions'?"),
        (INDEX + 'shape = "mutli"\n', "(got 'mutli'); did you mean 'multi'?"),
    ],
)
def test_a_problem_names_the_setting(load, text, expected):
    assert expected in problems(load, text)


def test_problems_of_published_prompts_are_problems_of_the_configuration(load, tmp_path):
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts/grade.md").write_text('+++\nversion = "1"\n+++\n# system\n{{ tool }}\n')
    (tmp_path / "prompts/grades.md").write_text("")

    message = problems(load, MINIMAL)

    assert "grade.md:5: unknown value `tool`" in message
    assert "grades.md: no prompt has that name; did you mean 'grade.md'?" in message


@pytest.mark.parametrize("text", ["[board\n", "a = \n", "= 5"])
def test_invalid_toml_is_reported_with_its_place(load, text):
    assert re.search(r"pegboard\.toml cannot be read as TOML: .*line 1", problems(load, text))


def test_a_file_that_cannot_be_read_is_reported(tmp_path):
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    for path in (tmp_path, tmp_path / "bytes.toml"):
        with pytest.raises(ConfigurationError, match="cannot be read as TOML"):
            load_configuration(path)
    with pytest.raises(ConfigurationError, match=r"No configuration at .*/none.toml.* -c .*init"):
        load_configuration(tmp_path / "none.toml")


def test_loading_a_configuration_sets_the_storage_options_of_its_board_only(load, monkeypatch):
    monkeypatch.setenv("THE_KEY", "abcd1234")
    text = MINIMAL.replace('"board"', '"s3://bucket/board"')
    storage = '[board.storage]\naws_access_key_id = "${THE_KEY}"\nallow_http = true\n\n[catalogs'
    configuration = load(text.replace("[catalogs", storage))

    assert configuration.board.storage == {"aws_access_key_id": "${THE_KEY}", "allow_http": "true"}
    for uri in ("s3://bucket/board", "s3://bucket/board/", "s3://bucket/board/lake"):
        assert storage_options(uri)["aws_access_key_id"] == "abcd1234"
    assert "aws_access_key_id" not in storage_options("s3://bucket/other")
    load(text)
    assert "aws_access_key_id" not in storage_options("s3://bucket/board")


@pytest.mark.parametrize("value", ['"hunter2"', '"${A}hunter2"', "[1]"])
def test_a_secret_in_plain_text_is_rejected_and_not_shown(load, value):
    storage = ("aws_secret_access_key", "AZURE_STORAGE_SAS_TOKEN", "connection_string", "password")
    for option in storage:
        message = problems(load, f"{MINIMAL}[board.storage]\n{option} = {value}\n")
        assert f"board.storage: {option}: secrets are not allowed in the file" in message
        assert f'{option} = "${{NAME_OF_THE_VARIABLE}}"' in message
        assert "hunter2" not in message
    for option in ("api_key", "API_KEY", "token", "aws_secret_access_key", "client_secret"):
        message = problems(load, f"{INDEX}options = {{ {option} = {value} }}\n")
        assert f"indexes.0.options: {option}: secrets are read from the environment" in message
        assert "hunter2" not in message


@pytest.mark.parametrize(
    ("products", "expected"),
    [
        ("", MEASURED_PRODUCTS),
        ('products = ["topics", "questions", "topics"]', ("questions", "topics")),
    ],
)
def test_products_are_sorted_by_their_dependencies(load, products, expected):
    settings = load(f'{MINIMAL}[enrich]\nmodel = "openai/gpt-4o-mini"\n{products}').enrich

    assert settings.products == expected
    assert (settings.incomplete, settings.budget_usd) == ("stop", None)


@pytest.mark.parametrize(
    "headers", ['"Bearer hunter2-hunter2"', "{ X-Any = [4711, 'hunter2-hunter2'] }"]
)
def test_an_invalid_value_that_may_be_a_secret_is_not_shown(workshop, headers):
    catalog = '[catalogs.shop]\ntype = "openapi"\nurl = "https://x/y.json"\n'

    with pytest.raises(ConfigurationError, match=r"headers.*\(got a value of type") as caught:
        workshop.configure(catalogs=f"{catalog}headers = {headers}\n")

    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("table", ["enrich", "serve.llm"])
def test_provider_options_hold_no_secret_and_nothing_that_has_a_setting(load, table):
    def options(text):
        return load(f'{MINIMAL}[{table}]\nmodel = "openai/m"\noptions = {text}\n')

    options('{reasoning_effort = "low", extra_headers = {x-api-key = "${GATEWAY_KEY}"}}')
    for text, problem in (
        ('{extra_headers = {x-api-key = "abc-def"}}', "x-api-key: secrets are not allowed"),
        ('{user = "sk-abcdefgh12345678abcd"}', "user: secrets are not allowed"),
        ("{max_tokens = 5}", "max_tokens: not an option; set max_reply_tokens"),
        ('{response_format = "x"}', "response_format: not an option; set structured"),
    ):
        with pytest.raises(ConfigurationError, match=problem) as caught:
            options(text)
        assert "abc" not in str(caught.value)
