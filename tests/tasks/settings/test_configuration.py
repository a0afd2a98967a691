"""pegboard.toml: defaults, and all problems in one message."""

import re
from pathlib import Path

import pytest

from pegboard.errors import ConfigurationError
from pegboard.store.storage import storage_options
from tasks.settings.configuration import PARTS, load_configuration

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

    assert (index.name, index.encoder, index.shape, index.questions, index.options, index.table) == (
        "full", "local/all-MiniLM-L6-v2", "centroid", 10, {}, "emb_full",
    )  # fmt: skip
    assert index.parts == ("name", "description", "arguments", "questions", "topics")
    assert (configuration.default, configuration.board.channel, list(configuration.catalogs)) == (
        "full", "live", ["tools"],
    )  # fmt: skip
    assert configuration.uri == str(tmp_path / "board")


def test_the_examples_of_the_readme_load(load):
    examples = re.findall(r"```toml\n(.*?)```", README.read_text("utf-8"), re.DOTALL)

    assert [list(load(example).catalogs) for example in examples if "[board]" in example] != []


@pytest.mark.parametrize("uri", ["s3://bucket/board", "az://container/board", "gs://bucket/a/b"])
def test_an_address_is_taken_as_it_is(load, uri):
    assert load(MINIMAL.replace('"board"', f'"{uri}"')).uri == uri


def test_a_folder_counts_from_that_of_the_file_wherever_one_stands(load, tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")

    assert load(MINIMAL.replace('"board"', '"../boards/one"')).uri == str(
        tmp_path.parent / "boards" / "one"
    )
    assert load_configuration("../pegboard.toml").base == tmp_path


def test_indexes_are_read_with_their_options(load):
    configuration = load(
        MINIMAL
        + (
            '[[indexes]]\nname = "one"\nencoder = "openai/x"\noptions = { dimensions = 256, '
            'api_key_env = "KEY" }\n'
        )
        + (
            f'[[indexes]]\nname = "two"\nembedder = "local/y"\nshape = "multi"\nparts = '
            f"{list(PARTS)}\nquestions = 0\n"
        )
    )

    one, two = configuration.indexes
    assert (one.encoder, one.options) == ("openai/x", {"dimensions": 256, "api_key_env": "KEY"})
    assert (two.encoder, two.shape, two.parts, two.questions) == ("local/y", "multi", PARTS, 0)
    assert configuration.default == "one"
    assert configuration.index("two") == two


def test_the_default_index_may_be_named(load):
    text = (
        'default_index = "two"\n'
        + MINIMAL
        + '[[indexes]]\nname = "one"\n[[indexes]]\nname = "two"\n'
    )

    assert load(text).default == "two"


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
        """,
    )

    assert message.splitlines()[0].endswith("pegboard.toml has 12 problems:")
    for line in (
        "catalogs.bad name: expected a name of letters, digits",
        "catalogs.odd.type: There is no source of type 'nosuch'. Installed types: functions,",
        "catalogs.loose.path: it is missing",
        "catalogs.loose.pth: there is no such setting",
        "catalogs.untyped.type: expected the kind of source",
        "board.uri: it is missing",
        "board.chanel: there is no such setting",
        "indexes.0.parts.0: Input should be 'name'",
        "indexes.0.shape: Input should be 'centroid', 'single' or 'multi' (got 'double')",
        "indexes.0.questions: Input should be greater than or equal to 0 (got -1)",
        "colour: there is no such setting",
    ):
        assert f"\n  - {line}" in message
    assert message.splitlines()[-1] == "`pegboard init --stdout` prints a commented example."


@pytest.mark.parametrize("name", ["a/b", "a b", "-a", ".a", "天気", "a" * 65, "", "a'b", "../up"])
def test_a_catalog_with_an_impossible_name_is_refused(load, name):
    message = problems(load, MINIMAL.replace("[catalogs.tools]", f'[catalogs."{name}"]'))

    assert (
        f"catalogs.{name}: expected a name of letters, digits, '.', '_' and '-', at most 64"
        in message
    )


@pytest.mark.parametrize("name", ["Full", "1st", "a-b", "a b", "a" * 41, "天気", "a.b", ""])
def test_an_index_with_an_impossible_name_is_refused(load, name):
    assert "An index cannot be named" in problems(load, MINIMAL + f'[[indexes]]\nname = "{name}"\n')


@pytest.mark.parametrize(
    "option", ["api_key", "API_KEY", "token", "aws_secret_access_key", "client_secret"]
)
def test_a_secret_in_the_options_of_an_index_is_refused_without_being_shown(load, option):
    message = problems(
        load, MINIMAL + f'[[indexes]]\nname = "a"\noptions = {{ {option} = "hunter2" }}\n'
    )

    assert f"indexes.0.options: {option}: secrets are read from the environment" in message
    assert "hunter2" not in message


@pytest.mark.parametrize("option", ["max_tokens", "api_key_env"])
def test_an_option_that_only_sounds_like_a_secret_is_taken(load, option):
    assert load(MINIMAL + f'[[indexes]]\nname = "a"\noptions = {{ {option} = 5 }}\n').index(
        "a"
    ).options == {option: 5}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "catalogs: expected at least one source"),
        ('[board]\nuri = "b"\n', "catalogs: expected at least one source"),
        ('catalogs = 5\n[board]\nuri = "b"\n', "catalogs: expected at least one source"),
        ("indexes = []\n" + MINIMAL, "indexes: expected at least one, or leave it out"),
        (
            MINIMAL + '[[indexes]]\nname = "a"\n[[indexes]]\nname = "a"\n',
            "indexes: two are named 'a'",
        ),
        (
            'default_index = "b"\n' + MINIMAL,
            "default_index: there is no index 'b'; expected one of ['full']",
        ),
        ('file = "x"\n' + MINIMAL, "file: there is no such setting"),
        (
            MINIMAL + "[[indexes]]\nparts = []\n",
            "indexes.0.parts: Tuple should have at least 1 item",
        ),
    ],
)
def test_a_mistake_is_said(load, text, expected):
    assert expected in problems(load, text)


@pytest.mark.parametrize("text", ["[board\n", "a = \n", "= 5"])
def test_what_is_no_toml_is_said_with_its_place(load, text):
    assert re.search(r"pegboard\.toml cannot be read as TOML: .*line 1", problems(load, text))


def test_a_file_that_is_not_there_is_said(tmp_path):
    with pytest.raises(
        ConfigurationError,
        match=r"no configuration at .*pegboard.toml. Give one with -c, or .*init",
    ):
        load_configuration(tmp_path / "pegboard.toml")


def test_a_folder_or_other_bytes_in_place_of_the_file_are_said(tmp_path):
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    for path in (tmp_path, tmp_path / "bytes.toml"):
        with pytest.raises(ConfigurationError, match="cannot be read as TOML"):
            load_configuration(path)


def test_what_a_store_wants_to_know_is_used_for_the_board_from_then_on(load, monkeypatch):
    monkeypatch.setenv("THE_KEY", "abcd1234")
    text = MINIMAL.replace('"board"', '"s3://kept/board"')
    configuration = load(
        text.replace(
            "[catalogs",
            '[board.storage]\naws_access_key_id = "${THE_KEY}"\nallow_http = true\n\n[catalogs',
        )
    )

    assert configuration.board.storage == {"aws_access_key_id": "${THE_KEY}", "allow_http": "true"}
    for uri in ("s3://kept/board", "s3://kept/board/", "s3://kept/board/lake"):
        assert storage_options(uri)["aws_access_key_id"] == "abcd1234"
    assert "aws_access_key_id" not in storage_options("s3://kept/other")
    load(text)
    assert "aws_access_key_id" not in storage_options("s3://kept/board")


@pytest.mark.parametrize(
    "option",
    [
        "aws_secret_access_key",
        "aws_access_key_id",
        "AZURE_STORAGE_SAS_TOKEN",
        "connection_string",
        "password",
    ],
)
@pytest.mark.parametrize("value", ['"hunter2"', '"${A}hunter2"', "[1]"])
def test_a_secret_of_the_store_in_plain_text_is_refused_without_being_shown(load, option, value):
    message = problems(load, MINIMAL + f"[board.storage]\n{option} = {value}\n")

    assert f"board.storage: {option}: a secret does not stand in a file" in message
    assert f'{option} = "${{NAME_OF_THE_VARIABLE}}"' in message
    assert "hunter2" not in message


def test_what_is_kept_has_defaults_and_bounds(load):
    assert load(MINIMAL).board.keep is None
    keep = load(MINIMAL + "[board.keep]\nreleases = 3\n").board.keep
    assert keep is not None
    assert (keep.releases, keep.days, keep.grace_hours) == (3, 30, 24)

    message = problems(load, MINIMAL + "[board.keep]\nreleases = 0\ndays = -1\ngrace_hours = 0\n")
    for name in ("releases", "days", "grace_hours"):
        assert f"board.keep.{name}: Input should be greater than" in message


def test_what_a_release_says_of_dependencies_plans_and_scores_has_defaults(load):
    plain = load(MINIMAL)
    full = load(
        MINIMAL
        + "[graph]\ninfer = false\nmin_confidence = 0.7\n"
        + '[find]\nplan = "search"\n'
        + '[golden]\nqueries = "golden.jsonl"\nunanswerable = "chat.jsonl"\n'
    )

    assert (plain.graph.infer, plain.graph.min_confidence, plain.find.strategy, plain.golden) == (
        True,
        0.5,
        None,
        None,
    )
    assert (full.graph.infer, full.graph.min_confidence, full.find.strategy) == (
        False,
        0.7,
        "search",
    )
    assert (full.golden.queries, full.golden.unanswerable) == ("golden.jsonl", "chat.jsonl")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "[graph]\nmin_confidence = 2\n",
            "graph.min_confidence: Input should be less than or equal to 1 (got 2)",
        ),
        ("[graph]\ninfer = 3\n", "graph.infer: Input should be a valid boolean"),
        ("[graph]\nlimit = 3\n", "graph.limit: there is no such setting"),
        ('[find]\nplan = "magic"\n', "find.strategy: There is no strategy 'magic'"),
        (
            '[find.strategy]\nname = "mine"\ndepth = 0\n',
            "find.strategy: The strategy cannot be used: 'depth' is 0",
        ),
        (
            '[find.strategy]\nname = "mine"\nindexes = ["fine"]\n',
            "find.strategy: there is no index 'fine'; expected one of ['full']",
        ),
        ("[golden]\n", "golden.queries: it is missing"),
    ],
)
def test_what_is_wrong_with_them_is_named(load, text, problem):
    assert problem in problems(load, MINIMAL + text)
