"""The language of texts and catalogs, and what to set where an index does not fit it."""

import json
from pathlib import Path

import pytest

import pegboard
from pegboard.encoders import DEFAULT_ENCODER
from pegboard.text.languages import IndexLanguages, language_of, main_language
from pegboard.text.words import stop_word_languages

CATALOGS = json.loads(Path(__file__).with_name("other_languages.json").read_text("utf-8"))
"""A Chinese and a German catalog, each with requests and their right tools."""
TEXTS = {
    "english": "create user. Creates a user in the team. Arguments: name: the user's name",
    "german": "create user. Legt einen Benutzer im Team an. Arguments: name: Name des Benutzers",
    "french": "create user. Crée un utilisateur dans l'équipe. Arguments: name: le nom",
    "spanish": "create user. Crea un usuario en el equipo. Arguments: name: el nombre del usuario",
    "italian": "create user. Crea un utente nel gruppo. Arguments: name: il nome dell'utente",
    "portuguese": "create user. Cria um usuário na equipe. Arguments: name: o nome do usuário",
    "dutch": "create user. Maakt een gebruiker aan voor het team. Arguments: name: de naam",
    "swedish": "create user. Skapar en användare som är med i laget och får dess rättigheter",
    "danish": "create user. Opretter en bruger af holdet, som ikke er blevet oprettet før",
    "norwegian": "create user. Oppretter en bruker av laget, som ikke er blitt opprettet før",
    "finnish": "create user. Luo käyttäjän, joka on myös tiimin jäsen. Arguments: name: sen nimi",
    "hungarian": "create user. Létrehoz egy felhasználót a csapatban. Arguments: name: az ő neve",
    "polish": "create user. Tworzy użytkownika w zespole. Arguments: name: nazwa, która się pojawi",
    "czech": "create user. Vytvoří uživatele, který je v týmu. Arguments: name: jméno, jak se píše",
    "romanian": "create user. Creează un utilizator în echipă. Arguments: name: cum se numește",
    "turkish": "create user. Takım için bir kullanıcı oluşturur. Arguments: name: ve adı",
    "indonesian": "create user. Membuat pengguna di dalam tim. Arguments: name: nama yang dipakai",
    "russian": "create user. Создаёт пользователя в команде. Arguments: name: имя, которое видно",
    "chinese": "create user. 在团队中创建用户。 Arguments: name: 用户的名称",
    "japanese": "create user. チームにユーザーを作成します。 Arguments: name: 名前",
    "korean": "create user. 팀에 사용자를 만듭니다. Arguments: name: 사용자 이름",
    "thai": "create user. สร้างผู้ใช้ในทีม Arguments: name: ชื่อผู้ใช้",
    "greek": "create user. Δημιουργεί έναν χρήστη στην ομάδα. Arguments: name: όνομα",
}


@pytest.mark.parametrize("language", TEXTS)
def test_a_text_has_the_language_of_its_script_or_its_function_words(language):
    assert language_of(TEXTS[language]) == language


def test_every_list_of_stop_words_is_tried():
    assert set(stop_word_languages()) <= set(TEXTS)


@pytest.mark.parametrize("text", ["", "GET /v2/users", "listCommits", "42 🙂", "car rental"])
def test_a_text_without_function_words_has_no_language(text):
    assert language_of(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "get_op_by_door",
        "getOpOf",
        "A_to_Z_Letter_Feed",
        "post /lifecycle/many-to-one",
        "getDocument Retrieve a document (meta-data only, no content)",
        "deleteComment Delete a comment",
        "updateDataSource Update a nsx-v manager data source",
        "getClient OAuth client view",
    ],
)
def test_english_operation_names_are_not_taken_for_another_language(text):
    assert language_of(text) in (None, "english")


@pytest.mark.parametrize(
    ("counts", "language"),
    [
        ({"german": 6, "english": 4, None: 10}, "german"),
        ({"german": 5, "english": 5}, "english"),
        ({"german": 1, None: 99}, "english"),
        ({None: 9}, "english"),
        ({}, "english"),
    ],
)
def test_a_catalog_is_in_the_language_of_most_of_its_texts(counts, language):
    assert main_language(counts) == language


def languages(**texts: list[str]) -> IndexLanguages:
    return IndexLanguages.of(texts)


def test_what_to_set_names_the_catalogs_the_encoder_and_the_language():
    german = languages(kasse=[TEXTS["german"]] * 3, git=[TEXTS["english"]])

    encoder, language = german.advice("full", DEFAULT_ENCODER, "english")
    assert f"index 'full': {DEFAULT_ENCODER} knows English only" in encoder
    assert "'kasse' (German)" in encoder
    assert "'git'" not in encoder
    assert "fastembed/sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2" in encoder
    assert language.endswith('Set language = "german" under [[indexes]]')
    assert german.understood(DEFAULT_ENCODER) == 0.25


def test_an_index_that_fits_its_texts_needs_no_advice():
    german = languages(kasse=[TEXTS["german"]])
    chinese = languages(kasse=[TEXTS["chinese"]])
    hosted = "openai/text-embedding-3-small"

    assert list(german.advice("full", hosted, "german")) == []
    assert german.understood(hosted) == 1
    assert list(chinese.advice("full", hosted, "english")) == []
    for fitting in (languages(git=[TEXTS["english"]]), languages()):
        assert list(fitting.advice("full", DEFAULT_ENCODER, "english")) == []
    assert languages().understood(DEFAULT_ENCODER) == 1


def test_a_build_records_the_languages_and_says_what_to_set(workshop):
    german = workshop.tool("kasse_oeffnen", "Öffnet die Kasse für den Tag, an dem sie zu war.")
    workshop.servers({"laden": [german]})
    index = f'[[indexes]]\nname = "full"\nencoder = "{DEFAULT_ENCODER}"\n'

    run = workshop.run(workshop.configure(index))

    entry = run.release.manifest["indexes"]["full"]
    assert (entry["language"], entry["understood"]) == ("english", 0.0)
    assert len(run.spec.advice) == 2


@pytest.mark.parametrize(
    ("catalog", "first", "among_five"), [("chinese", 32, 36), ("german", 20, 24)]
)
def test_requests_in_other_languages_are_answered_by_words(workshop, catalog, first, among_five):
    language, tools, requests = CATALOGS[catalog].values()
    workshop.servers({"office": [workshop.tool(name, text, **own) for name, text, own in tools]})
    index = f'[[indexes]]\nencoder = "{DEFAULT_ENCODER}"\nlanguage = "{language}"\n'

    workshop.run(workshop.configure(index))

    board = pegboard.open(workshop.uri)
    answers = [[hit.tool.name for hit in board.find(request, 5)] for request, _ in requests]
    pairs = list(zip(answers, [right for _, right in requests], strict=True))
    assert sum(right in names[:1] for names, right in pairs) >= first
    assert sum(right in names for names, right in pairs) >= among_five
