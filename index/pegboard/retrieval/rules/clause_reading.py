"""Reads a request: its words, punctuation and quotations, where a clause begins among them, and
which of them say nothing about the need.

Reading takes time in proportion to the length, whatever the text is: no pattern can match one
character in two ways, text behind an unclosed quotation mark is not searched again, and what
follows each place is computed for all places at once, from right to left.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from itertools import accumulate
from typing import Literal

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
