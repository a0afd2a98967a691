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
better than it is. Recall at 1 does not suffer, since nothing takes turns.

Reading takes time in proportion to the length, whatever the text is: no pattern can match one
character in two ways, text behind an unclosed quotation mark is not searched again, and what
follows each place is computed for all places at once, from right to left.
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
"""Characters of a request that are looked at. A longer one is a document with a request in it."""
_SENTENCE_ENDS = frozenset("。！？；｡!?;")
_CLOSERS = frozenset(")]}»”’\"'」』》）")
MAX_WORD = 60
"""Characters; what is longer is data, and names no need."""
_BULLETS = frozenset("-*•‣–·+")
_LISTS: dict[str, dict[str, list[str]]] = json.loads(
    resources.files("pegboard.retrieval.rules").joinpath("clause_words.json").read_text("utf-8")
)
TEXTS = {
    name: tuple(text for line in lines for text in line.split(", "))
    for name, lines in (_LISTS["phrases"] | _LISTS["texts"]).items()
}
WORDS = {name: frozenset(" ".join(lines).split()) for name, lines in _LISTS["words"].items()}
"""The closed lists of `clause_words.json`, which says what each is for, by name."""
EMPTY = WORDS["empty"] | WORDS["and"]
SEQUENTIAL, ADDITIVE, FILLERS = (
    frozenset(tuple(text.split()) for text in TEXTS[name])
    for name in ("sequential", "additive", "fillers")
)
Kind = Literal["word", "quoted", "mark", "line"]
MAX_QUOTED = 4_000
"""Characters; a quotation that is longer, or goes on behind an empty line, is taken for a stray
mark.
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
    """The tokens of a text in their order; blanks are left out."""
    tokens: list[Token] = []
    place = 0
    for start, end in _quotations(text):
        tokens += _plain(text, place, start)
        tokens.append(Token("quoted", text[start:end], "", start, end))
        place = end
    tokens += _plain(text, place, len(text))
    return tokens


def _plain(text: str, start: int, end: int) -> Iterator[Token]:
    for match in _TOKEN.finditer(text, start, end):
        group = match.lastgroup
        if group is None:
            continue
        # What ends the sentence is not part of an address.
        word = match[0].rstrip(_TRAILING) if group == "link" else match[0]
        last = match.start() + len(word)
        kind: Kind = "line" if group == "line" else "mark" if group == "mark" else "word"
        yield Token(kind, word, word.lower().replace("’", "'"), match.start(), last)
        for place in range(last, match.end()):
            yield Token("mark", text[place], text[place], place, place + 1)


def _quotations(text: str) -> Iterator[tuple[int, int]]:
    """The spans of quoted text and code, marks included, that do not overlap."""
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
    """Whether a mark that looks the same at both ends begins something: not an apostrophe, not the
    inches of 5".
    """
    if mark not in ('"', "'", "‘"):
        return True
    before = text[place - 1] if place else " "
    after = text[place + 1] if place + 1 < len(text) else " "
    return not before.isalnum() and not after.isspace()


class Reading:
    """A text and what can be said of every place in its tokens.

    Attributes:
        text: the text.
        tokens: its tokens, without the line ends of wrapped text.
        connected: for every token, the one behind the connective that begins with it; the token
            itself where none does.
        content: for every token, the first one from there on that is neither politeness nor a
            connective nor punctuation.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        tokens = tokens_of(text)
        neighbours = zip([None, *tokens], tokens, [*tokens[1:], None], strict=False)
        self.tokens = [
            token
            for before, token, after in neighbours
            if token.kind != "line" or _ends_line(before, token, after)
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
        """The token at a place; None behind the end."""
        return self.tokens[place] if 0 <= place < len(self.tokens) else None

    def joint(self, first: int, place: int) -> tuple[int, bool]:
        """The token behind the commas, conjunctions and connectives at `place`, and whether it
        begins another clause than `first` did.
        """
        head, comma, joined, led = place, False, False, ""
        while token := self.at(head):
            if token.text in _COMMAS:
                comma, head = True, head + 1
            elif token.low in WORDS["and"] or token.low in WORDS["but"]:
                joined, head = True, head + 1
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
        """Whether a clause begins there: with an imperative, a question or a wish.

        Args:
            joined: whether a conjunction or a connective stands before it, or only a comma.
        """
        if self.asks(place):
            return True
        head = self.content[place]
        token, following = self.at(head), self.at(head + 1)
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
        # "and wash the car": no list has all verbs.
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
        """Whether "please", "can you", "is there", "I would", "help me" or the like stands
        there.
        """
        token, following = self.at(place), self.at(place + 1)
        if token is None or following is None:
            return False
        if token.low in WORDS["auxiliaries"]:
            return following.low in WORDS["subjects"]
        if token.low in ("i", "we"):
            return following.low in WORDS["wishes"]
        return token.low in WORDS["asking"] or self._phrase(place, FILLERS) > place

    def states(self, first: int, last: int) -> bool:
        """Whether the clause tells something instead of asking for it: "My account ID is 12", "It
        does not drain".
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
        """Whether a sentence may begin there, behind a full stop."""
        token = self.at(place)
        if token is None or token.kind in ("quoted", "line") or not token.text[0].islower():
            return True
        return token.low in WORDS["verbs"] or self.connected[place] > place or self.asks(place)

    def _connected(self, place: int) -> int:
        behind = max(self._phrase(place, SEQUENTIAL), self._phrase(place, ADDITIVE))
        if behind == place + 1 and self.tokens[place].low in WORDS["also_adjectives"]:
            # "next week" and "the second one" lead nowhere: behind a connective stands a comma or a
            # clause.
            after = self.at(behind)
            leads = after is not None and (
                after.text in (",", "，", ":") or after.low in WORDS["verbs"] or self.asks(behind)
            )
            return behind if leads else place
        return behind

    def _phrase(self, place: int, phrases: frozenset[tuple[str, ...]]) -> int:
        """The token behind the longest of the phrases that begins at `place`; the place itself if
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
        """Whether what stands before a boundary may be a clause: it has a verb with its object,
        unlike "to find and", "search and".
        """
        start = min(self.content[first], place)
        before = self.at(place - 1)
        bare = (
            before is not None
            and before.low in WORDS["verbs"]
            and before.low not in WORDS["naming_verbs"]
        )
        return self._worded[place] - self._worded[start] > 1 and not bare

    def _waits(self, first: int, place: int) -> bool:
        """Whether the clause so far is subordinate and its main clause is to come: "If it
        rains,"
        """
        start = self.content[first]
        if start >= place or self.tokens[start].low not in WORDS["subordinators"]:
            return False
        return self._commas[place] == self._commas[start]


def _ends_line(before: Token | None, line: Token, after: Token | None) -> bool:
    """Whether a line end is more than wrapped text: it leaves a line empty, or a capital letter or
    a list item follows.
    """
    if before is None or after is None or line.text.count("\n") > 1:
        return True
    return before.text != "," and not after.text[0].islower()


def _is_object(token: Token) -> bool:
    return (
        token.kind == "quoted" or token.low in WORDS["determiners"] or not token.text[0].islower()
    )


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
