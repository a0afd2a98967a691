import random
import sys

import pytest

from pegboard.retrieval.requests import Query
from pegboard.retrieval.rules.clauses import MAX_TEXT, Clauses, DummySteps, split_clauses
from tests.pegboard.retrieval.stubs import context, transformed

SEVERAL = {
    "Book a table for two, invite Ana and send her the "
    "map.": ["Book a table for two", "invite Ana", "send her the map"],
    "What's the weather in Oslo? Which trains leave "
    "tonight?": ["What's the weather in Oslo", "Which trains leave tonight"],
    "I'd like to know the price of gold and how it changed last "
    "year": ["know the price of gold", "how it changed last year"],
    "First, export the report. Second, mail it to the board. Finally, archive the old one.": [
        "export the report", "mail it to the board", "archive the old one",
    ],
    "Please do the following:\n1. Rename the file\n2. Compress the folder\n3. Upload both": [
        "Rename the file", "Compress the folder", "Upload both",
    ],
    "* convert the song to mp3\n* cut the first "
    "minute\n": ["convert the song to mp3", "cut the first minute"],
    "Scrape the page at https://example.org/a,b.html?x=1;y=2, then summarise it": [
        "Scrape the page at https://example.org/a,b.html?x=1;y=2", "summarise it",
    ],
    "Create config.yaml with 1,000 users. After that, restart the server at 9.30 a.m. and notify "
    "Dr. Meyer": [
        "Create config.yaml with 1,000 users", "restart the server at 9.30 a.m", "notify Dr. Meyer",
    ],
    'Write "Stop. Then go, and call me" into notes.txt and print it': [
        'Write "Stop. Then go, and call me" into notes.txt', "print it",
    ],
    "Run `git add . && git commit; git push` and tell me what failed": [
        "Run `git add . && git commit; git push`", "tell me what failed",
    ],
    "Create the file 'Today's Work, and more' and delete 'old, then new'": [
        "Create the file 'Today's Work, and more'", "delete 'old, then new'",
    ],
    "If it rains tomorrow, book a taxi and tell "
    "Ana.": ["If it rains tomorrow, book a taxi", "tell Ana"],
    "Look up the capital of Peru, and can you also translate the page?": [
        "Look up the capital of Peru", "translate the page",
    ],
    '"Suggest a course on baking. Also, find a shop '
    'nearby."': ["Suggest a course on baking", "find a shop nearby"],
    "My account is 4711. Show my balance. Then transfer 50 euros to "
    "Ana.": ["Show my balance", "transfer 50 euros to Ana"],
    "Draw a chart of\nthe sales, and mail\nit to "
    "Ben": ["Draw a chart of the sales", "mail it to Ben"],
    "帮我查一下北京的天气，然后订一张去上海的机票。": [
        "查一下北京的天气",
        "然后订一张去上海的机票",
    ],
    "Book a flight. Book a flight. Reserve a hotel.": ["Book a flight", "Reserve a hotel"],
    # A quotation mark that is never closed hides nothing.
    'Show the post with ID "rOBh. Then delete the draft': [
        'Show the post with ID "rOBh', "delete the draft",
    ],
    "東京の天気を調べて、その後、ホテルを予約してください。": [
        "東京の天気を調べて",
        "その後、ホテルを予約してください",
    ],
    "¿Puedes buscar un hotel en Madrid? Luego reserva un taxi, y después envía un correo.": [
        "¿Puedes buscar un hotel en Madrid", "reserva un taxi", "envía un correo",
    ],
    "Traduis ce texte, puis envoie le résultat à Luc. Ensuite, supprime le fichier.": [
        "Traduis ce texte", "envoie le résultat à Luc", "supprime le fichier",
    ],
}  # fmt: skip

SINGLE = [
    "",
    "   \n\n ",
    "...!?",
    "weather",
    "Please help me. Thank you!",
    "Order ice cream from Ben and Jerry",
    "Compare the price and weight of these phones",
    "Find and replace a word in my document",
    "Convert 1,000.50 dollars to euros at 9.30 a.m. on Nov. 3",
    "List hotels in Paris, London, and Rome",
    "Which library can read and write Excel files?",
    "Get the map for the house where we met and the road to it",
    "My washing machine does not drain. It is a Siemens. Please send a technician.",
    "Say 'first do this, then do that'",
    "I need some information. Find the population of Chad.",
    "北京的天气怎么样？",
    "What does this image show?\n" + "iVBORw0KGgo" * 400,
    "word " * (MAX_TEXT // 5) + ". Book a flight. Reserve a hotel.",
]


@pytest.mark.parametrize(("text", "clauses"), SEVERAL.items())
def test_a_request_for_several_things_is_split(text, clauses):
    assert split_clauses(text) == clauses


@pytest.mark.parametrize("text", SINGLE, ids=lambda text: text[:40])
def test_a_request_for_one_thing_has_no_clauses(text):
    assert split_clauses(text) == []


def test_no_more_clauses_than_the_limit():
    text = ". ".join(f"Find the tool number{place}" for place in range(20))

    assert len(split_clauses(text)) == 8
    assert split_clauses(text, limit=2) == ["Find the tool number0", "Find the tool number1"]


PIECES = [
    "find", "the", "map", "and", "then", ",", ".", ";", "?", "!", "\n", "\n\n", '"', "'", "`",
    "```", "“", "”", "„", "1.", "2)", "(a)", "- ",
    "please", "can you", "Ana", "9.30", "1,000", "https://x.org/a;b", "e.g.", "。", "，", "然后",
    "天气", "¿", "it's", "if", "also", "to", "\t",
    "first", "next", "I need", "\u200b", "😀", "é", "٣", "Dr.", "don't forget "
    "to", "as well as", "café", "{", "}", "<b>", "\\", "/etc/x",
]  # fmt: skip


def test_whatever_the_text_clauses_are_pieces_of_it_in_their_order():
    dice = random.Random(0)
    for _ in range(300):
        text = "".join(
            dice.choice(PIECES) + dice.choice(["", " ", " "]) for _ in range(dice.randint(1, 60))
        )

        clauses = split_clauses(text, limit=100)

        flat = " ".join(text.split())
        place = 0
        for clause in clauses:
            assert clause.strip() == clause != ""
            place = flat.find(clause, place)
            assert place >= 0, (clause, text)
        assert len(clauses) != 1, text
        assert len(set(clauses)) == len(clauses), text


HOSTILE = [
    "and find ", "'a ", '"', "`", "“", " ", "a, ", "first ", "if ", "please ", "then ",
    "and then ", "1. ", "x\n", "\n", ".(", "-, ", "a.", "e.g. ",
    "can you help me "
    "", "I'd like to "
    "", "'", ",", "，然后", "天", "((", "a'b ", "https://", "x-", "1,", "« ", "Dr. ", '"a b\n\n',
]  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE)
def test_the_work_grows_with_the_length_of_the_text_and_no_faster(piece):
    def calls(length: int) -> int:
        count = 0

        def counted(*_: object) -> None:
            nonlocal count
            count += 1

        text = (piece * length)[:length]
        sys.setprofile(counted)
        try:
            split_clauses(text)
        finally:
            sys.setprofile(None)
        return count

    assert calls(8_000) < 3 * calls(4_000)

    split_clauses(piece * (100_000 // len(piece)))


def test_clauses_become_steps_with_the_request_in_their_background():
    request = Query("Book a flight and email the strategy to Ana")
    clauses = [Query("Book a flight", 1, "clause"), Query("email the strategy to Ana", 2, "clause")]
    single = Query("Book a flight")
    plain = context("")

    steps = transformed(Clauses(), [request], plain)

    background = [Query(request.text, step, "request", Clauses().background) for step in (1, 2)]
    assert steps == [request, clauses[0], background[0], clauses[1], background[1]]
    assert transformed(Clauses(background=0), [request], plain) == [request, *clauses]
    assert transformed(Clauses(), [single], plain) == [single]


def test_the_last_query_of_the_request_is_split_and_steps_before_stay():
    rewritten = Query("Book a flight; reserve a room", 0, "rewrite")
    queries = [Query("x", 1, "step"), Query("raw"), rewritten]

    split = transformed(Clauses(background=0), queries, context(""))

    assert split[:3] == queries
    assert [(query.text, query.step) for query in split[3:]] == [
        ("Book a flight", 2),
        ("reserve a room", 3),
    ]


def test_dummy_steps_are_parts_of_equal_length_with_nothing_lost():
    def parts(text, steps):
        own = transformed(DummySteps(steps), [Query(text)], context(text))
        return [(part.text, part.step, part.role) for part in own]

    assert parts("one two three four five six seven", 3) == [
        ("one two", 1, "step"), ("three four five", 2, "step"), ("six seven", 3, "step"),
    ]  # fmt: skip
    assert parts("one two", 5) == [("one", 1, "step"), ("two", 2, "step")]
    assert parts("one", 3) == [("one", 0, "request")]
