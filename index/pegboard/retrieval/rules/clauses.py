"""Splits a request into clauses without an LLM; each clause is searched for separately, in addition
to the whole request.

    split_clauses("Book a table for two, invite Ana and send her the map.")
    # ["Book a table for two", "invite Ana", "send her the map"]

A tool's score for a clause is the mean of its scores for the clause and for the whole request; its
score for the request is its best softmax share in any clause or in the whole request
(`Weighted("none")` within a step, `BestScore("softmax")` over the steps). Measured with the
embedded encoder, hybrid search and the default index; recall at 5 / 10 of one search for the whole
request, and of this part:

    Seal-Tools, 700 requests for 1 to 6 tools     .867/.932    .967/.980
    Seal-Tools, the 200 of them for one tool      .980/.980    .980/.980
    MetaTool, 161 for two tools of 199            .891/.944    .898/.950
    MetaTool, 2,792 for one tool of 199           .904/.942    .905/.939
    UltraTool, 191 for tools of 436               .747/.854    .752/.850
    LiveMCPBench, 24 for tools of 527             .449/.488    .429/.488

The combination was chosen among some 25 on these same requests, so its figures are slightly
optimistic. Recall at 1 does not suffer, because steps are not merged round robin.

Parsing takes time linear in the length of any text: no pattern can match one character in two
ways, text after an unclosed quotation mark is not searched again, and what follows each position is
computed for all positions at once, from right to left.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from itertools import accumulate, pairwise
from typing import ClassVar, Literal

from pegboard.errors import QueryError
from pegboard.retrieval.context import Context
from pegboard.retrieval.parts import Part
from pegboard.retrieval.requests import Query

MAX_TEXT = 20_000
"""Maximum number of characters parsed; a longer text is a document that contains a request."""
_SENTENCE_ENDS = frozenset("。！？；｡!?;")
_CLOSERS = frozenset(")]}»”’\"'」』》）")
MAX_WORD = 60
"""Maximum number of characters of a word; longer ones are data and do not name a need."""
_BULLETS = frozenset("-*•‣–·+")
_LISTS: dict[str, dict[str, list[str]]] = json.loads(
    resources.files("pegboard.retrieval.rules").joinpath("clause_words.json").read_text("utf-8")
)
TEXTS = {
    name: tuple(text for line in lines for text in line.split(", "))
    for name, lines in (_LISTS["phrases"] | _LISTS["texts"]).items()
}
WORDS = {name: frozenset(" ".join(lines).split()) for name, lines in _LISTS["words"].items()}
"""The word lists of `clause_words.json`, by name; the file says what each is for."""
EMPTY = WORDS["empty"] | WORDS["and"]
SEQUENTIAL, ADDITIVE, FILLERS = (
    frozenset(tuple(text.split()) for text in TEXTS[name])
    for name in ("sequential", "additive", "fillers")
)
Kind = Literal["word", "quoted", "mark", "line"]
MAX_QUOTED = 4_000
"""Maximum number of characters of a quotation. If it is longer, or continues after an empty line,
its opening mark is ignored.
"""
_COMMAS = frozenset(",，、—–-")
_OPENING = frozenset("([{¿¡<（")
_PHRASES = SEQUENTIAL | ADDITIVE | FILLERS
_NO_VERBS = EMPTY | WORDS["subordinators"]
_LONGEST = max(len(phrase) for phrase in _PHRASES)
_FIRST_WORDS = frozenset(phrase[0] for phrase in _PHRASES)
_TOKEN = re.compile(
    r"(?P<line>\n\s*)"
    r"|(?P<link>(?:https?|ftp|file)://\S+|www\.\S+)"
    # Words with what may stand inside them: don't, 1,000, 9:30, config.yaml, ana@example.org, a/b,
    # C:\x, snake_case, AT&T.
    r"|(?P<word>[\w$€£#@/\\~%](?:[\w'’%$€£#@/\\~+&-]|[.:](?=[\w/\\])|,(?=\d{3}(?!\d)))*)"
    r"|(?P<mark>\S)"
    r"|[^\S\n]+"
)
_CLOSING = {
    mark: re.compile(closing)
    for mark, closing in {
        "```": "```",
        "`": "`",
        '"': '"',
        "“": "[”“\"]",
        "„": "[“”\"]",
        "«": "»",
        "「": "」",
        "『": "』",
        "《": "》",
        # 'Today's work': an apostrophe inside a word closes nothing.
        "'": r"(?<!\s)['’](?!\w)",
        "‘": r"(?<!\s)['’](?!\w)",
    }.items()
}  # fmt: skip
_TRAILING = ".,;:!?)]}，。；！？、）"


@dataclass(frozen=True, slots=True)
class Token:
    """A word, a quotation with its marks, a punctuation mark, or a line end; `low` is its text in
    lower case.
    """

    kind: Kind
    text: str
    low: str
    start: int
    end: int


def tokens_of(text: str) -> list[Token]:
    """Return the tokens of a text in order, without white space."""
    tokens: list[Token] = []
    position = 0
    for start, end in _quotations(text):
        tokens += _unquoted_tokens(text, position, start)
        tokens.append(Token("quoted", text[start:end], "", start, end))
        position = end
    tokens += _unquoted_tokens(text, position, len(text))
    return tokens


def _unquoted_tokens(text: str, start: int, end: int) -> Iterator[Token]:
    for match in _TOKEN.finditer(text, start, end):
        group = match.lastgroup
        if group is None:
            continue
        # Punctuation that ends the sentence is not part of a URL.
        word = match[0].rstrip(_TRAILING) if group == "link" else match[0]
        last = match.start() + len(word)
        kind: Kind = "line" if group == "line" else "mark" if group == "mark" else "word"
        yield Token(kind, word, word.lower().replace("’", "'"), match.start(), last)
        for place in range(last, match.end()):
            yield Token("mark", text[place], text[place], place, place + 1)


def _quotations(text: str) -> Iterator[tuple[int, int]]:
    """Yield the non-overlapping spans of quoted text and code, including their marks."""
    searched: dict[str, int] = {}
    place = 0
    while place < len(text):
        mark = "```" if text.startswith("```", place) else text[place]
        closing = _CLOSING.get(mark)
        if closing is None or place < searched.get(mark, 0) or not _opens(text, place, mark):
            place += 1
            continue
        last = min(len(text), place + MAX_QUOTED)
        if mark != "```":
            paragraph = text.find("\n\n", place, last)
            last = paragraph if paragraph >= 0 else last
        closed = closing.search(text, place + len(mark), min(len(text), last + 1))
        if closed is None:
            searched[mark] = last
            place += len(mark)
        else:
            yield place, closed.end()
            place = closed.end()


def _opens(text: str, place: int, mark: str) -> bool:
    """Whether a mark opens a quotation; an apostrophe and the inches of 5" do not."""
    if mark not in ('"', "'", "‘"):
        return True
    preceding = text[place - 1] if place else " "
    following = text[place + 1] if place + 1 < len(text) else " "
    return not preceding.isalnum() and not following.isspace()


class Reading:
    """A parsed text. Positions are indices of tokens.

    Attributes:
        text: the text.
        tokens: its tokens, without the line ends of wrapped text.
        connected: for every position, the position after the connective that begins there; the
            position itself if none does.
        content: for every position, the first position from there on that is neither politeness,
            a connective nor punctuation.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        tokens = tokens_of(text)
        neighbours = zip([None, *tokens], tokens, [*tokens[1:], None], strict=False)
        self.tokens = [
            token
            for preceding, token, following in neighbours
            if token.kind != "line" or _ends_line(preceding, token, following)
        ]
        count = len(self.tokens)
        self.connected = list(range(count + 1))
        self.content = list(range(count + 1))
        for place in range(count - 1, -1, -1):
            self.connected[place] = self._connected(place)
            behind = max(self._phrase(place, FILLERS), self.connected[place])
            token = self.tokens[place]
            if behind == place and (
                token.kind == "line" or token.low in WORDS["and"] or self._separates(token)
            ):
                behind = place + 1
            self.content[place] = self.content[behind] if behind > place else place
        self._worded = list(
            accumulate((token.kind in ("word", "quoted") for token in self.tokens), initial=0)
        )
        self._commas = list(
            accumulate((token.text in (",", "，") for token in self.tokens), initial=0)
        )

    def at(self, place: int) -> Token | None:
        """Return the token at a position; None outside the text."""
        return self.tokens[place] if 0 <= place < len(self.tokens) else None

    def joint(self, first: int, place: int) -> tuple[int, bool]:
        """Return the position after the commas, conjunctions and connectives at `place`, and
        whether a new clause begins there.

        Args:
            first: the position at which the current clause begins.
        """
        head = place
        comma = joined = False
        led = ""
        while token := self.at(head):
            if token.text in _COMMAS:
                comma = True
                head += 1
            elif token.low in WORDS["and"] or token.low in WORDS["but"]:
                joined = True
                head += 1
            elif self.connected[head] > head:
                behind = self.connected[head]
                led = (
                    "sequential" if self._phrase(head, SEQUENTIAL) == behind else led or "additive"
                )
                head = behind
            else:
                break
        following = self.at(head)
        if following is None or following.kind == "line" or head == place:
            return head, False
        if comma and following.text.startswith(TEXTS["unspaced_connectives"]):
            return head, True
        if not self._enough(first, place):
            return head, False
        if led == "sequential" and (comma or joined):
            return head, True
        waiting = not joined and not led and self._waits(first, place)
        return head, not waiting and self.begins_clause(head, joined=joined or bool(led))

    def begins_clause(self, place: int, *, joined: bool) -> bool:
        """Whether a clause begins at a position: an imperative, a question or a wish.

        Args:
            joined: True after a conjunction or a connective, False after a comma.
        """
        if self.asks(place):
            return True
        head = self.content[place]
        token = self.at(head)
        following = self.at(head + 1)
        if (
            token is None
            or following is None
            or token.kind != "word"
            or following.kind not in ("word", "quoted")
        ):
            return False
        if token.low in WORDS["questions"] or (joined and token.low in WORDS["relatives"]):
            return following.kind == "word"
        if token.low in WORDS["naming_verbs"]:
            return _is_object(following)
        if token.low in WORDS["verbs"]:
            return True
        # "and wash the car": no word list has every verb.
        return (
            joined
            and following.low in WORDS["determiners"]
            and token.text.isascii()
            and token.text.islower()
            and token.text.isalpha()
            and token.low not in _NO_VERBS
            and not token.low.endswith(("ing", "ly", "s"))
        )

    def asks(self, place: int) -> bool:
        """Whether a request begins at a position: "please", "can you", "is there", "I would", "help
        me" or the like.
        """
        token = self.at(place)
        following = self.at(place + 1)
        if token is None or following is None:
            return False
        if token.low in WORDS["auxiliaries"]:
            return following.low in WORDS["subjects"]
        if token.low in ("i", "we"):
            return following.low in WORDS["wishes"]
        return token.low in WORDS["asking"] or self._phrase(place, FILLERS) > place

    def states(self, first: int, last: int) -> bool:
        """Whether a clause is a statement and not a request: "My account ID is 12", "It does not
        drain".
        """
        place = first
        while place < last and self.connected[place] > place:
            place = self.connected[place]
        while place < last and self.tokens[place].kind != "word":
            place += 1
        if place >= last or self.asks(place):
            return False
        head = self.tokens[place].low
        if head in WORDS["stating"]:
            return True
        if (
            head in WORDS["verbs"]
            or head in WORDS["questions"] | WORDS["relatives"] | WORDS["subordinators"]
        ):
            return False
        return any(
            token.low in WORDS["copulas"] for token in self.tokens[place + 1 : min(place + 5, last)]
        )

    def starts_sentence(self, place: int) -> bool:
        """Whether a sentence may begin at a position after a full stop."""
        token = self.at(place)
        if token is None or token.kind in ("quoted", "line") or not token.text[0].islower():
            return True
        return token.low in WORDS["verbs"] or self.connected[place] > place or self.asks(place)

    def _connected(self, place: int) -> int:
        behind = max(self._phrase(place, SEQUENTIAL), self._phrase(place, ADDITIVE))
        if behind == place + 1 and self.tokens[place].low in WORDS["also_adjectives"]:
            # "next week" and "the second one" have no connective: a comma or a clause follows one.
            following = self.at(behind)
            is_connective = following is not None and (
                following.text in (",", "，", ":")
                or following.low in WORDS["verbs"]
                or self.asks(behind)
            )
            return behind if is_connective else place
        return behind

    def _phrase(self, place: int, phrases: frozenset[tuple[str, ...]]) -> int:
        """Return the position after the longest phrase that begins at `place`; `place` itself if
        none does.
        """
        if self.tokens[place].low not in _FIRST_WORDS:
            return place
        lows = tuple(token.low for token in self.tokens[place : place + _LONGEST])
        for length in range(len(lows), 0, -1):
            if lows[:length] in phrases:
                return place + length
        return place

    def _separates(self, token: Token) -> bool:
        return token.kind == "mark" and token.text not in _OPENING

    def _enough(self, first: int, place: int) -> bool:
        """Whether the text before a boundary may be a clause: it has a verb with its object, unlike
        "to find and", "search and".
        """
        start = min(self.content[first], place)
        last_token = self.at(place - 1)
        ends_in_verb = (
            last_token is not None
            and last_token.low in WORDS["verbs"]
            and last_token.low not in WORDS["naming_verbs"]
        )
        return self._worded[place] - self._worded[start] > 1 and not ends_in_verb

    def _waits(self, first: int, place: int) -> bool:
        """Whether the clause so far is subordinate and its main clause follows: "If it rains,"."""
        start = self.content[first]
        if start >= place or self.tokens[start].low not in WORDS["subordinators"]:
            return False
        return self._commas[place] == self._commas[start]


def _ends_line(preceding: Token | None, line: Token, following: Token | None) -> bool:
    """Whether a line end is not mere wrapping: an empty line, a capital letter or a list item
    follows.
    """
    if preceding is None or following is None or line.text.count("\n") > 1:
        return True
    return preceding.text != "," and not following.text[0].islower()


def _is_object(token: Token) -> bool:
    return (
        token.kind == "quoted" or token.low in WORDS["determiners"] or not token.text[0].islower()
    )


def split_clauses(text: str, limit: int = 8) -> list[str]:
    """Return the clauses of a request that are worth searching for separately, in order; an empty
    list if the request is a single clause.

    A clause ends with a sentence, with a list item, and where an imperative, a question or a wish
    follows a comma, "and", "then" or the like. Statements ("My account ID is 12"), politeness and
    clauses that name no need ("I need some information") are left out. Every clause is a verbatim
    piece of the text. Quotations, code, URLs, file names and numbers are never cut.

    Sentence ends, list items and quotation marks are recognised in any language; "then", "also" and
    "finally" in English, German, French, Spanish, Chinese and Japanese; imperatives, statements and
    most politeness in English only.

    Args:
        text: the request, of which the first 20,000 characters are parsed, in linear time.
        limit: the maximum number of clauses; later ones are left out.
    """
    reading = Reading(text[:MAX_TEXT])
    if len(reading.tokens) == 1 and reading.tokens[0].kind == "quoted":
        # Quotation marks around the whole request are not a quotation.
        reading = Reading(reading.tokens[0].text[1:-1])
    clauses: dict[str, None] = {}
    for first, last in _segments(reading):
        if not reading.states(first, last) and (clause := _cleaned(reading, first, last)):
            clauses[clause] = None
    return list(clauses)[:limit] if len(clauses) > 1 else []


def _segments(reading: Reading) -> Iterator[tuple[int, int]]:
    """Yield the spans of tokens between clause boundaries."""
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
    """Return the positions of list items, with the positions after their markers: bullets at line
    starts, and numbers that count from 1.
    """
    bullets: dict[int, int] = {}
    counted: dict[int, int] = {}
    for place, token in enumerate(reading.tokens):
        preceding = reading.at(place - 1)
        following = reading.at(place + 1)
        starts_line = preceding is None or preceding.kind == "line"
        if following is None or token.kind not in ("word", "mark"):
            continue
        if starts_line and token.text in _BULLETS and following.start > token.end:
            bullets[place] = place + 1
        elif token.text in (str(len(counted) + 1), "abcdefghi"[len(counted) : len(counted) + 1]):
            in_bracket = (
                preceding is not None and preceding.text in "(（" and preceding.kind == "mark"
            )
            has_mark = following.start == token.end and following.text in (".", ")", "）", "、")
            if has_mark and reading.at(place + 2):
                counted[place - 1 if in_bracket else place] = place + 2
    return bullets | (counted if len(counted) > 1 else {})


def _ends_sentence(reading: Reading, place: int) -> bool:
    token = reading.tokens[place]
    preceding = reading.at(place - 1)
    following = reading.at(place + 1)
    if following is None:
        return True
    if token.kind == "line":
        return True
    if token.kind == "quoted":
        # He said "Stop." Then ...
        return (
            token.text[-2:-1] in (".", "!", "?", "。")
            and following.kind == "word"
            and following.text[0].isupper()
        )
    if token.kind != "mark":
        return False
    if token.text in _SENTENCE_ENDS:
        return following.text not in _SENTENCE_ENDS | _CLOSERS
    if token.text in _CLOSERS:
        return (
            preceding is not None
            and preceding.text in (".", "!", "?", "。", "！", "？")
            and reading.starts_sentence(place + 1)
        )
    return token.text in (".", "…") and _stops(reading, place, preceding, following)


def _stops(reading: Reading, place: int, preceding: Token | None, following: Token) -> bool:
    """Whether a full stop ends a sentence, and not an abbreviation or a name."""
    touches = following.start == reading.tokens[place].end and following.kind != "line"
    if following.start == place or touches:
        return False
    word = preceding.low if preceding else ""
    if word in WORDS["abbreviations"] or (len(word) == 1 and word.isalpha()):
        capital_verb = following.text[0].isupper() and following.low in WORDS["verbs"]
        return capital_verb or reading.connected[place + 1] > place + 1
    return reading.starts_sentence(place + 1)


def _cleaned(reading: Reading, first: int, last: int) -> str:
    """Return the text of a clause without politeness, connectives and punctuation at its ends; ""
    if it names no need.
    """
    tokens = reading.tokens
    first = min(reading.content[first], last)
    while last > first and (tokens[last - 1].low in WORDS["and"] or _ends_only(tokens[last - 1])):
        last -= 1
    remaining = tokens[first:last]
    if not any(_names(token) for token in remaining):
        return ""
    clause = " ".join(reading.text[remaining[0].start : remaining[-1].end].split())
    while (filler := _unspaced_filler(clause)) and clause != filler:
        clause = clause.removeprefix(filler)
    return clause


def _unspaced_filler(clause: str) -> str:
    """Return the filler at the start of a clause in a script without spaces; "" for none."""
    fillers = TEXTS["unspaced_fillers"]
    return next((filler for filler in fillers if clause.startswith(filler)), "")


def _ends_only(token: Token) -> bool:
    return token.kind == "line" or (token.kind == "mark" and token.text not in ")]}")


def _names(token: Token) -> bool:
    return (
        token.kind == "word"
        and len(token.text) <= MAX_WORD
        and token.low not in EMPTY
        and any(letter.isalpha() for letter in token.text)
    )


def check_background(part: str, background: float) -> None:
    """Raise QueryError if a part's `background`, the weight of the request, is not 0 to 1."""
    if not 0 <= background <= 1:
        raise QueryError(f"{part} has background = {background}, expected 0 to 1.")


@dataclass(frozen=True, slots=True)
class Clauses(Part):
    """Searches for each clause of a request separately, without an LLM.

    The request supplies what a clause leaves unsaid ("send it to Ana"): every step also searches
    for the whole request.

    Attributes:
        limit: the maximum number of clauses.
        background: the weight, 0 to 1, of the request beside each clause, whose weight is 1; with
            0, the request is not searched for.
    """

    limit: int = 8
    background: float = 1.0
    part: ClassVar[str] = "clauses"

    def __post_init__(self) -> None:
        Part.__post_init__(self)
        check_background(self.part, self.background)

    async def transform(self, queries: Sequence[Query], context: Context) -> list[Query]:
        """Add steps 1, 2, ... for the clauses of the request, which is the last query of step 0.
        The queries are unchanged if it is a single clause.
        """
        request = next((query for query in reversed(queries) if query.step == 0), None)
        clauses = split_clauses(request.text, self.limit) if request else []
        if request is None or not clauses:
            return list(queries)
        steps = list(queries)
        next_step = max(query.step for query in queries) + 1
        for step, clause in enumerate(clauses, start=next_step):
            steps.append(Query(clause, step, "clause"))
            if self.background:
                steps.append(replace(request, step=step, weight=self.background))
        return steps


@dataclass(frozen=True, slots=True)
class DummySteps(Part):
    """Cuts the request into parts of equal length in words: the baseline of Retrieval-Plan-Select
    (algorithm 1, line 3) for a decomposition that understands the request.

    Attributes:
        steps: the number of parts.
    """

    steps: int = 3
    part: ClassVar[str] = "dummy-steps"

    async def transform(self, queries: Sequence[Query], context: Context) -> list[Query]:
        """Return the parts as steps 1, 2, ...; a request of one word is unchanged."""
        request = next((query for query in reversed(queries) if query.step == 0), None)
        words = request.text.split() if request else []
        count = min(self.steps, len(words))
        if count < 2:
            return list(queries)
        bounds = [round(number * len(words) / count) for number in range(count + 1)]
        texts = [" ".join(words[start:end]) for start, end in pairwise(bounds)]
        next_step = max(query.step for query in queries) + 1
        earlier_steps = [query for query in queries if query.step]
        new_steps = [Query(text, step, "step") for step, text in enumerate(texts, start=next_step)]
        return earlier_steps + new_steps
