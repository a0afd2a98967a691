"""A request as words, punctuation, quotations and line ends, each with its place: what `clauses`
looks for clause boundaries in.

Every step is linear in the length of the text: no pattern can match one character in two ways, and
where a quotation mark is not closed, the text behind it is not searched a second time.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Kind = Literal["word", "quoted", "mark", "line"]
MAX_QUOTED = 4_000
"""Characters; a quotation that is longer, or goes on behind an empty line, is taken for a stray
mark.
"""

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
